import { type AllocatedEviction, evictAllocated } from '../../discovery/allocation/evict-allocated.js';
import { groupPath } from '../../discovery/tree-paths.js';
import type { Settings, ZooKeeperSettings } from '../../settings/settings.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';
import type { Diagnosis } from '../doctor/diagnosis.js';
import type { ZooKeeperDiagnosis } from '../doctor/zookeeper-diagnosis.js';
import { ExitCode } from '../exit-codes.js';
import type { Io } from '../terminal/io.js';
import { formatSetting } from '../terminal/text.js';
import { complain, say } from './store-command.js';
import { onZooKeeper } from './zookeeper-command.js';

// `init`, `release` and `doctor` where node ids come from ZooKeeper alone.

/** The settings of a command that is about node ids from ZooKeeper alone. */
export type AllocatedSettings = Settings & { readonly zookeeper: ZooKeeperSettings };

/** The settings, where node ids come from ZooKeeper alone; undefined where they are leased from a store. */
export function allocatedSettings(settings: Settings): AllocatedSettings | undefined {
  const { provider, zookeeper } = settings;
  return provider === 'zookeeper' && zookeeper !== undefined ? { ...settings, zookeeper } : undefined;
}

/** What `doctor --json` prints where node ids come from ZooKeeper alone: the fields of {@link Diagnosis}, with nothing to say of a store. */
export interface AllocatedDiagnosis extends Omit<Diagnosis, 'store'> {
  readonly store: null;
  readonly zookeeper: ZooKeeperDiagnosis;
}

/** The diagnosis of ZooKeeper as that of everything that the node ids rest on. */
export function allocatedDiagnosis(zookeeper: ZooKeeperDiagnosis): AllocatedDiagnosis {
  const nothing = { findings: [], latencyMs: null, clockOffsetMs: null, cluster: null, cost: null, damaged: [] };
  return { store: null, ok: zookeeper.ok, ...nothing, zookeeper };
}

/** `nodelease init --provider zookeeper`: makes the first group of node ids, and what is above it. Resolves to the exit code. */
export function initAllocatedCommand(settings: AllocatedSettings, io: Io): Promise<number> {
  return onZooKeeper(settings, io, (zookeeper, signal) => initAllocated(zookeeper, settings.zookeeper.connect.text, io, signal));
}

/**
 * Makes the first group, the chroot included, ahead of the first run: for whoever gives that no right to do so.
 *
 * @throws {ZooKeeperError} when there is no answer, or it may not be made
 */
async function initAllocated(zookeeper: ZooKeeper, where: string, io: Io, signal: AbortSignal): Promise<number> {
  const path = groupPath(0);
  await zookeeper.whenConnected({ signal });
  if ((await zookeeper.children(path, { signal })) !== undefined) say(io, `${path} is there already at ${where}: nothing to do`);
  else {
    await zookeeper.ensurePath(path, { signal });
    say(io, `made ${path} at ${where}: the first group of node ids`);
  }
  return ExitCode.ok;
}

/** What somebody who did not say `--force` is told. */
export function whyForceAllocated(id: number): string {
  return (
    `release takes node id ${id} away from its holder, whose command is killed; others get it when the holder's session has ended. ` +
    'It is not a way to stop a task: for that, send it SIGTERM. Add --force to do it'
  );
}

/** `nodelease release ID --force --provider zookeeper`: takes a node id away from its holder. Resolves to the exit code. */
export function releaseAllocatedCommand(id: number, settings: AllocatedSettings, io: Io): Promise<number> {
  return onZooKeeper(settings, io, (zookeeper, signal) => releaseAllocated(zookeeper, id, io, signal));
}

/**
 * Takes the node id away, and says what comes of it.
 *
 * @throws {ZooKeeperError} when there is no answer, or the znode may not be changed
 */
async function releaseAllocated(zookeeper: ZooKeeper, id: number, io: Io, signal: AbortSignal): Promise<number> {
  const { timeoutMs } = await zookeeper.whenConnected({ signal });
  const eviction = await evictAllocated({ zookeeper, clock: io.clock, signal }, id);
  if (eviction.kind === 'not-allocated') {
    complain(io, `node id ${id}: ${whyNot(eviction)}: left as it is`);
    return ExitCode.storeUnusable;
  }
  for (const line of outcome(id, eviction, timeoutMs)) say(io, line);
  return ExitCode.ok;
}

/** @param timeoutMs what the servers granted to this session, for want of the holder's */
function outcome(id: number, eviction: Exclude<AllocatedEviction, { kind: 'not-allocated' }>, timeoutMs: number): string[] {
  if (eviction.kind === 'free') return [`node id ${id} is not held: it is free, nothing was changed`];
  const { version, taskId = 'that came to hold it just now' } = eviction;
  if (eviction.kind === 'ended') {
    return [`node id ${id} is not held any more by task ${taskId} (version ${version}), whose session has just ended: nothing was changed`];
  }
  const taken = `node id ${id} ${eviction.earlier ? 'was taken away before' : 'is taken away'} from task ${taskId} (version ${version})`;
  return [
    eviction.earlier ? `${taken}, whose session has not ended yet: nothing was changed` : taken,
    `the task stops at its next heartbeat, others may take the id when its session has ended: right after that, or, if the task does not answer, ` +
      `${formatSetting(timeoutMs)} after its last sign of life (its session's time-out, taken to be that of this one)`,
  ];
}

function whyNot({ path, why }: Extract<AllocatedEviction, { kind: 'not-allocated' }>): string {
  if (why === 'persistent') return `${path} is persistent, and goes with nobody's session`;
  return `${path} is not of a task that has its node id from ZooKeeper (where it mirrors a lease in a store, release that)`;
}
