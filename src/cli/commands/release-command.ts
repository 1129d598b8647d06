import { LeaseUnreadableError } from '../../lease/model/lease-codec.js';
import { MAX_NODE_IDS } from '../../lease/model/lease-state.js';
import { evictHolder } from '../../lease/operate/evict.js';
import { readCluster } from '../../lease/session/cluster-store.js';
import type { StoreSession } from '../../lease/session/store-session.js';
import type { Settings } from '../../settings/settings.js';
import { parseInteger } from '../../settings/values.js';
import { ExitCode } from '../exit-codes.js';
import type { Io } from '../terminal/io.js';
import { formatSetting } from '../terminal/text.js';
import { allocatedSettings, releaseAllocatedCommand, whyForceAllocated } from './allocated-commands.js';
import { complain, onStore, say } from './store-command.js';

/** The refusal of a call without `--force`. */
export function whyForce(id: number, { provider }: Pick<Settings, 'provider'>): string {
  if (provider === 'zookeeper') return whyForceAllocated(id);
  return (
    `release takes node id ${id} away from its holder, who notices at its next renewal only; others get it when duration and grace have passed. ` +
    'It is not a way to stop a task: for that, send it SIGTERM. Add --force to do it'
  );
}

/** `nodelease release ID --force`: takes a node id away from its holder. Resolves to the exit code. */
export function releaseCommand(id: number, settings: Settings, io: Io): Promise<number> {
  const allocated = allocatedSettings(settings);
  if (allocated !== undefined) return releaseAllocatedCommand(id, allocated, io);
  return onStore(settings, io, (session) => releaseId(session, id, io));
}

/**
 * Takes the node id away, and says what comes of it (rule 9).
 *
 * @throws {ConfigError} when the cluster has no such node id
 * @throws {StoreError} when the store gives no answer
 */
export async function releaseId(session: StoreSession, id: number, io: Io): Promise<number> {
  const cluster = await readCluster(session);
  if (cluster === undefined) {
    say(io, `there is no cluster at ${session.store.url}: node id ${id} is not held`);
    return ExitCode.ok;
  }
  const { durationMs, graceMs, bootstrapped, size } = cluster.config;
  try {
    const eviction = await evictHolder(session, id, cluster);
    if (eviction.kind === 'evicted') {
      say(io, `node id ${id} is taken away from task ${eviction.taskId}: its version is ${eviction.version} now`);
      const next =
        id < size
          ? `others may take the id in ${formatSetting(durationMs + graceMs)} at the latest`
          : 'nobody may take the id: the cluster has it no more';
      say(io, `the task stops at its next renewal, ${next}`);
    } else if (eviction.state === 'absent' && bootstrapped) {
      say(io, `node id ${id} is not held, and cannot be: its lease object is absent (nodelease init --repair restores it)`);
    } else say(io, `node id ${id} is not held: it is ${eviction.state === 'absent' ? 'vacant' : eviction.state}, nothing was changed`);
    return ExitCode.ok;
  } catch (error) {
    if (!(error instanceof LeaseUnreadableError)) throw error;
    complain(io, `node id ${id}: ${error.message}: left as it is (nodelease init --repair restores it)`);
    return ExitCode.storeUnusable;
  }
}

/** Reads the node id. @throws {ConfigError} when no cluster could have it */
export function parseNodeId(text: string): number {
  return parseInteger(text, 'node id', 0, MAX_NODE_IDS - 1);
}
