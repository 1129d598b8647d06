import { evictAllocated } from '../../discovery/allocation/evict-allocated.js';
import { refuseForeign } from '../../lease/model/foreign-cluster.js';
import { LeaseUnreadableError } from '../../lease/model/lease-codec.js';
import { MAX_NODE_IDS } from '../../lease/model/lease-state.js';
import { evictHolder } from '../../lease/operate/evict.js';
import { readCluster } from '../../lease/session/cluster-store.js';
import type { StoreSession } from '../../lease/session/store-session.js';
import { parseInteger } from '../../settings/values.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';
import { ExitCode, UsageError } from '../exit-codes.js';
import { complain, say } from '../kit/answer.js';
import type { Call } from '../kit/command-row.js';
import { onAllocated, onZooKeeper } from '../kit/on-zookeeper.js';
import { onStore } from '../kit/reported.js';
import type { Io } from '../terminal/io.js';
import { formatSetting } from '../terminal/text.js';

/** `nodelease release ID --force`: takes a node id away from its holder. */
export function releaseCommand(call: Call<{ force?: boolean }>, text: string): Promise<number> {
  const { options, io } = call;
  const id = parseInteger(text, 'node id', 0, MAX_NODE_IDS - 1);
  const allocated = onAllocated(call);
  if (!options.force) {
    const effect = allocated
      ? "whose command is killed; others get it when the holder's session has ended"
      : 'who notices at its next renewal only; others get it when duration and grace have passed';
    const advice = 'It is not a way to stop a task: for that, send it SIGTERM. Add --force to do it';
    throw new UsageError(`release takes node id ${id} away from its holder, ${effect}. ${advice}`);
  }
  if (allocated === undefined) return onStore(call, (session) => releaseId(session, id, io));
  return onZooKeeper(allocated, (zookeeper, signal) => releaseAllocated(zookeeper, id, io, signal));
}

/**
 * Takes the node id away, and says what comes of it (rule 9).
 * @throws {ConfigError} when the cluster has no such node id, {StoreUnusableError}, {StoreError}
 */
export async function releaseId(session: StoreSession, id: number, io: Io): Promise<number> {
  const cluster = await readCluster(session);
  if (cluster === undefined) {
    await refuseForeign(session, (await session.list()).objects);
    say(io, `there is no cluster at ${session.store.url}: node id ${id} is not held`);
    return ExitCode.ok;
  }
  const { durationMs, graceMs, bootstrapped, size } = cluster.config;
  try {
    const eviction = await evictHolder(session, id, cluster);
    if (eviction.kind === 'evicted') {
      const { taskId, version } = eviction;
      say(io, `node id ${id} is taken away from task ${taskId}: its version is ${version} now`);
      const next =
        id < size
          ? `others may take the id in ${formatSetting(durationMs + graceMs)} at the latest`
          : 'no task may take the id: the cluster has it no more';
      say(io, `the task stops at its next renewal, ${next}`);
    } else {
      const { state } = eviction;
      const why =
        state === 'absent' && bootstrapped
          ? ', and cannot be: its lease object is absent (nodelease init --repair restores it)'
          : `: it is ${state === 'absent' ? 'vacant' : state}, nothing was changed`;
      say(io, `node id ${id} is not held${why}`);
    }
    return ExitCode.ok;
  } catch (error) {
    if (!(error instanceof LeaseUnreadableError)) throw error;
    complain(io, `node id ${id}: ${error.message}: left as it is (nodelease init --repair restores it)`);
    return ExitCode.storeUnusable;
  }
}

/**
 * Takes away a node id that ZooKeeper has given out, and says what comes of it.
 * @throws {ZooKeeperError} also when it may not be changed
 */
async function releaseAllocated(
  zookeeper: ZooKeeper,
  id: number,
  io: Io,
  signal: AbortSignal,
): Promise<number> {
  // What the servers grant to this session is taken for what they have granted to the holder's.
  const { timeoutMs } = await zookeeper.whenConnected({ signal });
  const eviction = await evictAllocated({ zookeeper, clock: io.clock, signal }, id);
  if (eviction.kind === 'not-allocated') {
    const { path, why } = eviction;
    const foreign =
      'is not of a task that has its node id from ZooKeeper (where it mirrors a lease in a store, release that)';
    const reason = why === 'persistent' ? 'is persistent, and goes with the session of no task' : foreign;
    complain(io, `node id ${id}: ${path} ${reason}: left as it is`);
    return ExitCode.storeUnusable;
  }
  if (eviction.kind === 'free') {
    say(io, `node id ${id} is not held: it is free, nothing was changed`);
    return ExitCode.ok;
  }
  const { version, taskId = 'that came to hold it just now' } = eviction;
  const holder = `task ${taskId} (version ${version})`;
  if (eviction.kind === 'ended') {
    say(
      io,
      `node id ${id} is not held any more by ${holder}, whose session has just ended: nothing was changed`,
    );
    return ExitCode.ok;
  }
  if (eviction.earlier)
    say(
      io,
      `node id ${id} was taken away before from ${holder}, whose session has not ended yet: nothing was changed`,
    );
  else say(io, `node id ${id} is taken away from ${holder}`);
  say(
    io,
    `the task stops at its next heartbeat, others may take the id when its session has ended: right after that, or, if the task does not answer, ` +
      `${formatSetting(timeoutMs)} after its last sign of life (its session's time-out, taken to be that of this one)`,
  );
  return ExitCode.ok;
}
