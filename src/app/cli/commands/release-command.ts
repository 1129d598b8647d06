import { refuseForeign } from '../../../core/lease/model/foreign-cluster.js';
import { LeaseUnreadableError } from '../../../core/lease/model/lease-codec.js';
import { MAX_NODE_IDS, takenAfterMs } from '../../../core/lease/model/lease-state.js';
import { evictHolder } from '../../../core/lease/operate/evict.js';
import { readCluster } from '../../../core/lease/session/cluster-store.js';
import { whileStoreIsAway, whileStoreIsBusy } from '../../../core/lease/session/store-retry.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import { parseInteger } from '../../../core/settings/setting.js';
import { nothingAt } from '../../../core/store/lock-url.js';
import { evictAllocated } from '../../../zookeeper/discovery/allocation/evict-allocated.js';
import { type Asker, answer, fail } from '../../kit/answer.js';
import { type Call, onAllocated, onStore, onZooKeeper, type ZooKeeperCall } from '../../kit/call.js';
import { UsageError } from '../../kit/io.js';
import { formatSetting } from '../../kit/terminal/text.js';

/** `nodelease release ID --force`: takes a node id away from its holder. */
export function releaseCommand(call: Call<{ force?: boolean }>, text: string): Promise<number> {
  const id = parseInteger(text, 'node id', 0, MAX_NODE_IDS - 1);
  const allocated = onAllocated(call);
  if (!call.options.force) {
    const effect = allocated
      ? "whose command is killed; others get it when the holder's session has ended"
      : 'who notices at its next renewal only; others get it when duration and grace have passed';
    const advice = 'It is not a way to stop a task: for that, send it SIGTERM. Add --force to do it';
    throw new UsageError(`release takes node id ${id} away from its holder, ${effect}. ${advice}`);
  }
  if (allocated === undefined) return onStore(call, (session) => releaseId(session, id, call));
  return releaseAllocated(id, allocated);
}

/** The answer of `--json`. Each field is present, and null without a value. */
interface ReleaseReport {
  /** The store's URL; null where ZooKeeper gives out the node ids. */
  readonly store: string | null;
  readonly id: number;
  /** Whether this call took the node id from its holder. */
  readonly evicted: boolean;
  readonly taskId: string | null;
  /** The version of the lease, or with ZooKeeper that of the holder. */
  readonly version: number | null;
  /** How long until others may take the node id at the latest, in milliseconds. */
  readonly freeInMs: number | null;
}

const notEvicted = (id: number, store: string | null): ReleaseReport => ({
  store,
  id,
  evicted: false,
  taskId: null,
  version: null,
  freeInMs: null,
});

const show = (call: Asker, report: ReleaseReport, ...lines: readonly string[]) =>
  answer(call, { report, lines });

/**
 * Takes the node id away, and says what comes of it (rule 9).
 * @throws {ConfigError} when the cluster has no such node id, {StoreUnusableError}, {StoreError}
 */
export async function releaseId(session: StoreSession, id: number, call: Asker): Promise<number> {
  const { io } = call;
  const { url: store } = session.store;
  const report = notEvicted(id, store);
  const cluster = await whileStoreIsBusy(io)(() => readCluster(session));
  if (cluster === undefined) {
    await refuseForeign(session, (await session.list()).objects);
    return fail(io, 'CLUSTER_MISSING', nothingAt(store));
  }
  const { graceMs, bootstrapped, size } = cluster.config;
  try {
    const eviction = await evictHolder(session, id, cluster, whileStoreIsAway(io));
    if (eviction.kind === 'evicted') {
      const { taskId, version, durationMs } = eviction;
      const freeInMs = id < size ? durationMs && takenAfterMs(durationMs, graceMs) : null;
      const next =
        freeInMs === null
          ? 'no task may take the id: it is no longer in the cluster'
          : `others may take the id in ${formatSetting(freeInMs)} at the latest`;
      return show(
        call,
        { ...report, evicted: true, taskId, version, freeInMs },
        `node id ${id} is taken away from task ${taskId}: its version is ${version} now`,
        `the task stops at its next renewal, ${next}`,
      );
    }
    if (eviction.kind === 'ended') {
      const { taskId, version } = eviction;
      const text = `node id ${id} is not held any more by task ${taskId}: another task has just acquired it, nothing was changed`;
      return show(call, { ...report, taskId, version }, text);
    }
    const { state } = eviction;
    const why =
      state === 'absent' && bootstrapped
        ? ', and cannot be: its lease object is absent (nodelease init --repair restores it)'
        : `: it is ${state === 'absent' ? 'vacant' : state}, nothing was changed`;
    return show(call, report, `node id ${id} is not held${why}`);
  } catch (error) {
    if (!(error instanceof LeaseUnreadableError)) throw error;
    const text = `node id ${id}: ${error.message}: left as it is (nodelease init --repair restores it)`;
    return fail(io, error.code, text);
  }
}

/**
 * Takes away a node id that ZooKeeper has given out, and says what comes of it.
 * @throws {ZooKeeperError} also when it may not be changed
 */
function releaseAllocated(id: number, call: ZooKeeperCall): Promise<number> {
  const { io } = call;
  return onZooKeeper(call, async (zookeeper, signal) => {
    const none = notEvicted(id, null);
    // What the servers grant to this session is taken for what they have granted to the holder's.
    const { timeoutMs } = await zookeeper.whenConnected({ signal });
    const eviction = await evictAllocated({ zookeeper, clock: io.clock, signal }, id);
    if (eviction.kind === 'not-allocated') {
      const { path, why } = eviction;
      const foreign =
        'is not of a task that has its node id from ZooKeeper (where it mirrors a lease in a store, release that)';
      const reason = why === 'persistent' ? 'is persistent, and goes with the session of no task' : foreign;
      return fail(io, 'ZOOKEEPER_FAILED', `node id ${id}: ${path} ${reason}: left as it is`);
    }
    if (eviction.kind === 'free')
      return show(call, none, `node id ${id} is not held: it is free, nothing was changed`);
    const { version, taskId } = eviction;
    const holder = `task ${taskId ?? 'that came to hold it just now'} (version ${version})`;
    const report = { ...none, taskId: taskId ?? null, version };
    if (eviction.kind === 'ended') {
      const ended = `is not held any more by ${holder}, whose session has just ended`;
      return show(call, report, `node id ${id} ${ended}: nothing was changed`);
    }
    const done = eviction.earlier
      ? `node id ${id} was taken away before from ${holder}, whose session has not ended yet: nothing was changed`
      : `node id ${id} is taken away from ${holder}`;
    const next =
      `the task stops at its next heartbeat, others may take the id when its session has ended: right after that, or, if the task does not answer, ` +
      `${formatSetting(timeoutMs)} after its last sign of life (its session's time-out, taken to be that of this one)`;
    return show(call, { ...report, evicted: !eviction.earlier, freeInMs: timeoutMs }, done, next);
  });
}
