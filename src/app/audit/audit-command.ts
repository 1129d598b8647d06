import { CLUSTER_KEY } from '../../core/lease/model/cluster-config.js';
import { findForeign, foreignError } from '../../core/lease/model/foreign-cluster.js';
import { whileStoreIsAway } from '../../core/lease/session/store-retry.js';
import type { StoreSession } from '../../core/lease/session/store-session.js';
import { type PastObject, StoreError } from '../../core/store/lease-store.js';
import { answer, complain, fail, sayJson, withRows } from '../kit/answer.js';
import { type Call, interruptible, onStore } from '../kit/call.js';
import { ExitCode, exitCodeOfSignal } from '../kit/io.js';
import { formatDuration, pluralize } from '../kit/terminal/text.js';
import { Audit, folderOf } from './audit.js';

type AuditCall = Call<{ readonly tenures?: boolean }>;

/** `nodelease audit`: a verdict on what was written to the objects of a store. */
export function auditCommand(call: AuditCall): Promise<number> {
  return onStore(call, (session) => interruptible(call.io, (signal) => judge(session, call, signal)));
}

async function judge(session: StoreSession, call: AuditCall, signal: AbortSignal): Promise<number> {
  const { options, io } = call;
  const { store } = session;
  const history = (prefix: string, wants: (key: string) => boolean) => {
    const states = store.history?.(prefix, { signal, wants, retry: whileStoreIsAway({ ...io, signal }) });
    if (states !== undefined) return states;
    const detail = 'cannot be audited: s3:// with versioning and etcd:// alone keep what a write replaces';
    throw new StoreError(`${store.url}: ${detail}`, { fault: 'unsupported', outcome: 'not-applied' });
  };
  const audit = new Audit((tenure) => {
    if (options.tenures) sayJson(io, tenure);
  });
  const enter = async (folder: string) => {
    const settings: PastObject[] = [];
    const key = folder + CLUSTER_KEY;
    for await (const state of history(key, (each) => each === key)) settings.push(state);
    audit.enter(folder, settings);
    return settings.length > 0;
  };
  if (!(await enter(''))) {
    const foreign = await findForeign(session, (await session.list({ signal })).objects, { signal });
    if (foreign) throw foreignError(store.url, foreign.found);
  }
  for await (const state of history('', (key) => folderOf(key) !== undefined)) {
    const folder = folderOf(state.key) ?? '';
    if (audit.needs(folder)) await enter(folder);
    audit.add(state);
    if (options.tenures && !(await io.taken())) return exitCodeOfSignal('SIGPIPE');
  }
  audit.finish();
  const count = Object.values(audit.counts).reduce((sum, each) => sum + each, 0);
  // A store may have locks only.
  if (audit.versions + count === 0) return fail(io, 'CLUSTER_MISSING', `there is no cluster at ${store.url}`);
  const rows = audit.breaches.map(({ breach, key, at, detail }) => [key, shown(at), breach, detail]);
  const table = [['OBJECT', 'TIME', 'BREACH', ['WHAT', 20]], rows] as const;
  const outages = audit.outages();
  const report = { store: store.url, ok: count === 0, ...audit, outages };
  answer(call, {
    report,
    tables: withRows(table),
    lines: [...auditLines(audit), ...(count === 0 ? ['no breach'] : [])],
  });
  if (count === 0) return ExitCode.ok;
  complain(io, `${store.url}: ${count} ${count === 1 ? 'breach' : 'breaches'}`);
  return ExitCode.nothing;
}

/** What was judged, in numbers, for people. */
export function auditLines(audit: Audit): string[] {
  const { versions, kept, lost, tenures, takeOvers, longestGap } = audit;
  const outages = audit.outages();
  const [longest] = outages;
  const isTimed = Number.isFinite(audit.from);
  const { count, undecided, shortestMs, longestMs } = takeOvers;
  const range = `, ${formatDuration(shortestMs)} to ${formatDuration(longestMs)} after the last write`;
  return [
    `${pluralize(versions, 'object version')}${isTimed ? ` from ${shown(audit.from)} to ${shown(audit.to)}` : ', without times'}`,
    ...(kept === 0
      ? ['the store keeps no versions: the present objects are judged, and the history in them']
      : []),
    ...(lost > 0 ? [`what is kept has gaps: ${pluralize(lost, 'tenure')} or more are missing`] : []),
    `tenures: ${Object.entries(tenures)
      .map(([end, number]) => `${number} ${end}`)
      .join(', ')}`,
    `${pluralize(count, 'take-over')}${isTimed && count > 0 ? range : ''}, ${undecided} undecided`,
    ...(longestGap.ms > 0
      ? [
          `longest pause of a tenure: ${formatDuration(longestGap.ms)} of ${formatDuration(longestGap.durationMs)}, ${longestGap.key} until ${shown(longestGap.at)}`,
        ]
      : []),
    `${pluralize(outages.length, 'outage')}${longest ? `, the longest for ${formatDuration(longest.to - longest.from)} from ${shown(longest.from)}, ${longest.holders} holders` : ''}`,
  ];
}

const shown = (at: number) => (Number.isFinite(at) ? new Date(at).toISOString() : 'unknown');
