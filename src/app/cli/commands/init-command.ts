import { orAborted } from '../../../core/base/abort.js';
import { concurrently, REQUESTS_AT_ONCE } from '../../../core/base/concurrently.js';
import { SETTLING } from '../../../core/lease/model/cluster-config.js';
import type { LeaseEvent } from '../../../core/lease/model/lease.js';
import {
  type InitializeReport,
  initializeCluster,
  type Repair,
  repairCluster,
} from '../../../core/lease/operate/initialize.js';
import { declareRestored } from '../../../core/lease/operate/restored.js';
import { whileStoreIsBusy } from '../../../core/lease/session/store-retry.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import { locksUrl, nothingAt, refuseLock } from '../../../core/store/lock-url.js';
import { lockNames } from '../../../node/locks/read-locks.js';
import { ClusterReader } from '../../../node/monitor/cluster-reader.js';
import { damageOf } from '../../../node/monitor/listed-cluster.js';
import { groupPath } from '../../../zookeeper/discovery/layout.js';
import { answer, complain, fail, say, sayJson } from '../../kit/answer.js';
import {
  type Call,
  interruptible,
  onAllocated,
  onStore,
  onStoreAt,
  onZooKeeper,
  type ZooKeeperCall,
} from '../../kit/call.js';
import { ExitCode, type Io, UsageError } from '../../kit/io.js';
import { ProgressLine } from '../../kit/terminal/progress-line.js';
import { formatCluster, formatDuration, pluralize, settingText } from '../../kit/terminal/text.js';
import { clusterPart } from '../../products.js';
import type { Settings } from '../../settings/settings.js';

/** The options of `init`, as they are on the command line. */
interface InitOptions {
  /** Restores damaged lease objects, instead of creating missing ones. */
  readonly repair?: boolean;
  /** A version that no tenure of a damaged node id has exceeded, for node ids whose versions are unknown. */
  readonly aboveVersion?: number;
  /** Notes that the store has been restored, where it does not tell so itself. */
  readonly restored?: boolean;
}

/** How many damaged node ids are named; the others are counted. */
const NAMED = 100;

/** `nodelease init`: creates the cluster's settings and all lease objects, or restores damaged ones. */
export function initCommand(call: Call<InitOptions>): Promise<number> {
  const { options, settings, io } = call;
  const { repair: repairs = false, aboveVersion, restored } = options;
  if (aboveVersion !== undefined && !repairs)
    throw new UsageError('--above-version is of use with --repair only');
  const allocated = onAllocated(call);
  if (allocated) return makeFirstGroup(allocated);
  if (restored && repairs)
    throw new UsageError('--restored and --repair cannot be combined: one after the other');
  if (restored) return onStore(call, (session) => noteRestored(session, call));
  if (!repairs) refuseLock(settings.store);
  return onStore(call, (session) =>
    repairs ? repair(session, aboveVersion, io, options) : initialize(session, settings, io, options),
  );
}

/** Notes in the settings of the cluster and of all locks that the store has been restored (rule 10). */
async function noteRestored(session: StoreSession, call: Call): Promise<number> {
  const { settings, io } = call;
  const { url: store } = session.store;
  const note = (at: StoreSession) => declareRestored({ ...io, session: at });
  const cluster = await note(session);
  const [allLocks, names] = await onStoreAt(
    call,
    locksUrl(settings.store),
    async (at) => [await note(at), await lockNames(at)] as const,
  );
  await concurrently(names, REQUESTS_AT_ONCE, (name) =>
    onStoreAt(call, locksUrl(settings.store, name), note),
  );
  if (!cluster && !allLocks && names.length === 0) return fail(io, 'CLUSTER_MISSING', nothingAt(store));
  const part = cluster && (await (await clusterPart()).readPart(session, cluster.config, {}));
  const what = [...(cluster ? ['the cluster'] : []), pluralize(names.length, 'lock')].join(' and ');
  return answer(call, {
    report: { store, cluster: cluster !== undefined, locks: names.length },
    lines: [`${store}: ${what} noted: ${SETTLING}`, ...(part ? [part.finding.detail] : [])],
  });
}

/**
 * Makes the first group of node ids from ZooKeeper, the chroot included: for tasks that have no right to do
 * so.
 * @throws {ZooKeeperError}
 */
function makeFirstGroup(call: ZooKeeperCall): Promise<number> {
  const { text: where } = call.settings.zookeeper.connect;
  const path = groupPath(0);
  return onZooKeeper(call, async (zookeeper, signal) => {
    const created = (await zookeeper.children(path, { signal })) === undefined;
    if (created) await zookeeper.ensurePath(path, { signal });
    const line = created
      ? `made ${path} at ${where}: the first group of node ids`
      : `${path} is there already at ${where}: nothing to do`;
    return answer(call, { report: { zookeeper: where, path, created }, lines: [line] });
  });
}

/**
 * Creates what is missing. A remote store that has not passed a probe is probed first, for longer where it
 * has failed one.
 *
 * @throws {StoreUnusableError} when the probe finds a fault
 * @throws {StoreError}
 * @throws {Interrupted} when a signal arrives: objects that were written stay; the next call continues from
 * there
 */
export async function initialize(
  session: StoreSession,
  wanted: Pick<Settings, 'clusterName' | 'nodes' | 'durationMs' | 'graceMs'>,
  io: Io,
  { json }: Call['options'] = {},
): Promise<number> {
  const onEvent = (event: LeaseEvent) => {
    if (event.type !== 'setting-overruled') return;
    const { setting } = event;
    const [own, stored] = [event.own, event.stored].map((value) => settingText(setting, value));
    complain(
      io,
      `warning: --${setting} ${own} is overruled: the cluster exists, and its stored ${stored} counts`,
    );
  };
  const report = await withProgress('writing lease objects', io, (onProgress, signal) =>
    initializeCluster({ ...io, session, wanted, signal, onProgress, thorough: true }, onEvent),
  );
  const { size, peak, durationMs, graceMs } = report.cluster.config;
  const { url: store } = session.store;
  if (!json) for (const line of outcome(store, report)) say(io, line);
  // Objects that were all created by this very call are known to be sound.
  const damage = report.created.length === peak ? [] : await damageIn(session, report, io);
  if (json)
    sayJson(io, {
      store,
      created: report.clusterCreated,
      nodes: size,
      durationMs,
      graceMs,
      written: report.created.length,
      damaged: damage.map(({ id, problem }) => ({ id, problem })),
    });
  for (const { id, problem } of damage.slice(0, NAMED)) complain(io, `node id ${id}: ${problem}`);
  if (damage.length === 0) return ExitCode.ok;
  if (damage.length > NAMED) complain(io, `and ${damage.length - NAMED} more`);
  const text = `${damage.length} of ${peak} node ids cannot be used: nodelease init --repair restores them`;
  return fail(io, 'CLUSTER_DAMAGED', text);
}

/** The node ids that cannot be used, and why. */
async function damageIn(
  session: StoreSession,
  { cluster, damaged }: InitializeReport,
  io: Io,
): Promise<{ readonly id: number; readonly problem: string }[]> {
  const { nodes, hints } = await withProgress('reading lease objects', io, (onProgress, signal) =>
    whileStoreIsBusy({ ...io, signal })(() => new ClusterReader(session, io.clock, onProgress).scan(signal)),
  );
  const found = hints === undefined ? [] : damageOf({ cluster: hints.cluster, nodes });
  // Node ids that the cluster has given up had an object as well, and need it when the cluster grows again.
  const lost = damaged.filter((id) => id >= cluster.config.size);
  const problem = 'lease object is absent although the cluster had this node id';
  return [...found, ...lost.map((id) => ({ id, problem }))];
}

/** Shows the progress of `work`, and lets a signal end it. */
function withProgress<T>(
  what: string,
  io: Io,
  work: (onProgress: ProgressLine['update'], signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { update, end } = new ProgressLine(io, what);
  // Not all requests under way heed the signal.
  return interruptible(io, (signal) => orAborted(work(update, signal), signal)).finally(end);
}

function outcome(url: string, { cluster: { config }, clusterCreated, created }: InitializeReport): string[] {
  const written = `${pluralize(created.length, 'lease object')} written`;
  const settings = formatCluster(config);
  if (clusterCreated)
    return [`created a cluster of ${config.size} node ids at ${url} (${settings})`, written];
  const existing = `the cluster at ${url} has ${config.size} node ids (${settings})`;
  return created.length > 0 ? [existing, written] : [`${existing}: nothing to do`];
}

/** Restores damaged lease objects. @throws {StoreUnusableError} when there is no cluster, {StoreError} */
export async function repair(
  session: StoreSession,
  aboveVersion: number | undefined,
  io: Io,
  { json }: Call['options'] = {},
): Promise<number> {
  const onWait = (ms: number) =>
    complain(io, `watching damaged lease objects for ${formatDuration(ms)}: somebody may hold them`);
  const repairs = await repairCluster({ session, clock: io.clock, aboveVersion, onWait });
  const isRestored = repairs.every(({ version }) => version !== undefined);
  const mended = isRestored ? await (await clusterPart()).repairPart(session, io) : undefined;
  const { url: store } = session.store;
  if (json)
    sayJson(io, {
      store,
      ...(mended && { [mended.finding.id]: mended.report }),
      repairs: repairs.map(({ id, problem, version = null, kept = null }) => ({
        id,
        problem,
        version,
        kept,
      })),
    });
  else if (mended) say(io, mended.finding.detail);
  else if (repairs.length === 0) say(io, `no lease object at ${store} is damaged: nothing to do`);
  for (const done of repairs) if (!json || done.version === undefined) sayRepair(done, io);
  return isRestored ? ExitCode.ok : ExitCode.storeUnusable;
}

const WHY_KEPT: Readonly<Record<NonNullable<Repair['kept']>, string>> = {
  recent:
    'it was written within the last duration and grace, so that a task may hold it: stop what writes there, and try again after that time',
  unknown:
    'nothing is known of its versions: add --above-version N, where N is at least the highest version that was ever used',
  changed: 'it changed meanwhile: try again',
};

function sayRepair({ id, problem, version, kept = 'changed' }: Repair, io: Io) {
  const what = problem.startsWith('lease object') ? problem : `lease object ${problem}`;
  if (version !== undefined) say(io, `node id ${id}: ${what}: restored at version ${version}`);
  else fail(io, 'CLUSTER_DAMAGED', `node id ${id}: ${what}: not restored, ${WHY_KEPT[kept]}`);
}
