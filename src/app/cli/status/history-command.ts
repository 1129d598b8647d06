import { ConfigError } from '../../../core/base/errors.js';
import type { TimesChange } from '../../../core/lease/model/cluster-config.js';
import { MAX_NODE_IDS } from '../../../core/lease/model/lease-state.js';
import { whileStoreIsBusy } from '../../../core/lease/session/store-retry.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import { parseInteger } from '../../../core/settings/setting.js';
import { ClusterReader } from '../../../node/monitor/cluster-reader.js';
import type { ListedCluster } from '../../../node/monitor/listed-cluster.js';
import { tenuresOf } from '../../../node/monitor/tenures.js';
import { type Asker, answer, fail, withRows } from '../../kit/answer.js';
import { type Call, onStore } from '../../kit/call.js';
import { ProgressLine } from '../../kit/terminal/progress-line.js';
import { formatTime, timesText } from '../../kit/terminal/text.js';

const DAY_MS = 86_400_000;

/** What `history` shows: of all ids or one, all tenures or those at a time. */
interface HistoryRequest {
  readonly only?: number | undefined;
  /** Milliseconds since the Unix epoch. */
  readonly at?: number | undefined;
}

/** `nodelease history [ID]`: who held which node id, the newest tenure first, or who held it at a time. */
export function historyCommand(call: Call<{ readonly at?: string }>, id?: string): Promise<number> {
  const { options, io } = call;
  const request: HistoryRequest = {
    only: id === undefined ? undefined : parseInteger(id, 'node id', 0, MAX_NODE_IDS - 1),
    at: options.at === undefined ? undefined : parseTime(options.at, io.clock.now()),
  };
  return onStore(call, (session) => showHistory(session, request, call));
}

/** Reads the lease objects, and shows their tenures. @throws {StoreError} */
export async function showHistory(
  session: StoreSession,
  { only, at }: HistoryRequest,
  call: Asker,
): Promise<number> {
  const { io } = call;
  const progress = new ProgressLine(io, 'reading lease objects', true);
  const reader = new ClusterReader(session, io.clock, progress.update);
  const choose = ({ leases }: ListedCluster) =>
    leases.map((_, id) => id).filter((id) => only === undefined || id === only);
  const scan = await whileStoreIsBusy(io)(() => reader.scan(undefined, choose)).finally(progress.end);
  if (scan.hints === undefined)
    return fail(io, 'CLUSTER_MISSING', `there is no cluster at ${session.store.url}`);
  const { size, tuned = [] } = scan.hints.cluster;
  if (only !== undefined && only >= size)
    throw new ConfigError('node id', only, `a node id from 0 to ${size - 1}`);
  const all = scan.nodes.map(tenuresOf);
  const nodes = all.map(({ id, tenures, knownSince }) => ({
    id,
    knownSince,
    tenures: tenures.filter(
      ({ acquiredAt, endedAt }) =>
        at === undefined || ((acquiredAt ?? 0) <= at && at < (endedAt ?? Number.POSITIVE_INFINITY)),
    ),
  }));
  const rows = nodes.flatMap(({ id, tenures }) =>
    tenures.map(({ version, taskId, acquiredAt, endedAt, end }) => [
      `${id}`,
      `${version}`,
      taskId,
      formatTime(acquiredAt),
      formatTime(endedAt),
      end ?? '',
    ]),
  );
  // What was before the oldest known tenure has been forgotten.
  const lost = all.flatMap(({ id, tenures, knownSince }) => {
    if (at === undefined || (knownSince !== null && at >= knownSince)) return [];
    const known = `what is known begins at ${formatTime(knownSince)}, version ${tenures.at(-1)?.version}`;
    return [
      knownSince === null
        ? `node id ${id}: its tenures until then are not known`
        : `node id ${id}: earlier tenures are forgotten; ${known}`,
    ];
  });
  const none = `no tenure is known${at === undefined ? '' : ` at ${formatTime(at)}`}`;
  return answer(call, {
    report: { nodes, tuned },
    tables: withRows(
      [[['ID', 'right'], ['VERSION', 'right'], ['TASK', 12], 'FROM', 'UNTIL', 'END'], rows],
      [['TUNED', 'FROM', 'TO'], at === undefined ? tuned.map(changeRow) : []],
    ),
    lines: [...(rows.length > 0 ? [] : [none]), ...lost],
  });
}

function changeRow({ at, from, to }: TimesChange) {
  return [formatTime(at), timesText(from), timesText(to)];
}

/** A time of the last 24 hours, `02:14` or `02:14:30`, or a date with or without a time; in UTC without a zone. */
function parseTime(text: string, now: number): number {
  const isTime = /^\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text);
  const full = isTime ? `${new Date(now).toISOString().slice(0, 10)}T${text}` : text;
  const [, date = '', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/i.exec(full) ?? [];
  const time = Date.parse(full === date || full.endsWith(zone) ? full : `${full}${zone}`);
  // Date.parse alone would take February 30, too.
  if (Number.isNaN(time) || !new Date(date).toJSON()?.startsWith(date))
    throw new ConfigError('--at', text, 'a time such as 02:14 in UTC, or 2026-11-26T02:14:00Z');
  if (!isTime && time > now) throw new ConfigError('--at', text, 'a time that has passed');
  return time > now ? time - DAY_MS : time;
}
