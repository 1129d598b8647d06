import { locksUrl } from '../../../core/store/lock-url.js';
import { locksReader } from '../../../node/locks/read-locks.js';
import type { TickReport } from '../../../node/wire/cluster-snapshot.js';
import { type Column, tableLines } from '../../kit/answer.js';
import { type Call, onStore } from '../../kit/call.js';
import { type ShowOptions, type StatusView, show } from '../../kit/show.js';
import { formatDuration, formatTime, printable } from '../../kit/terminal/text.js';

const COLUMNS: readonly Column[] = [
  ['LOCK', 12],
  'STATE',
  ['HOLDER', 12],
  ['TOKEN', 'right'],
  'SINCE',
  'UNTIL',
];
/** Where a lock has ticks. */
const TICKS: readonly Column[] = ['LAST TICK', 'OUTCOME'];

/** `nodelease status --locks`: shows who holds which lock of the store. */
export function locksStatus({ settings, ...call }: Call<ShowOptions>): Promise<number> {
  const store = locksUrl(settings.store);
  return onStore({ ...call, settings: { ...settings, store } }, (session) => {
    const read = locksReader(session);
    const reading = async (signal?: AbortSignal) => {
      const locks = await read(signal);
      const columns = locks.some(({ once }) => once) ? [...COLUMNS, ...TICKS] : COLUMNS;
      const rows = locks.map(({ name, state, holder, token, since, until, problem, once }) => [
        name,
        [holder && state, problem].filter(Boolean).join(', ') || state,
        holder ?? '',
        `${token}`,
        formatTime(since),
        formatTime(until),
        ...(once ? [formatTime(once.tick), outcomeOf(once, state === 'held')] : ['', '']),
      ]);
      return {
        report: () => ({ store: settings.store, locks }),
        lines: (...[screen, max]: Parameters<StatusView['lines']>) =>
          rows.length > 0
            ? tableLines([[columns, rows]], [], screen).slice(0, max)
            : [printable(`There is no lock at ${store}.`)],
      };
    };
    return show(reading, { ...call.options, all: true }, call.io);
  });
}

function outcomeOf({ outcome, startedAt, endedAt }: TickReport, isHeld: boolean): string {
  if (endedAt === undefined) return isHeld ? 'running' : 'unknown';
  return `${outcome} after ${formatDuration(endedAt - startedAt)}`;
}
