import type { Clock } from '../../clock.js';
import { clusterNodeIdOf } from '../../id/cluster-node-id.js';
import type { Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault } from '../../zookeeper/zookeeper-error.js';
import { encodeAssignment } from '../assignment.js';
import { claimPath, versionOf } from './id-claim.js';

/** What a znode says of the tenure of a node id from ZooKeeper alone. */
export interface AllocatedTenure {
  /** `evicted`: taken away by force, and kept off the others until the session of its holder has ended. */
  readonly state: 'held' | 'evicted';
  readonly taskId: string;
}

/** What an operator's force-release of a node id from ZooKeeper alone came to. */
export type AllocatedEviction =
  /** The znode carries the mark; the id is free when the session that made it has ended. */
  | {
      readonly kind: 'evicted';
      /** Whom it was taken from; undefined where another task came to hold it in the very instant. */
      readonly taskId: string | undefined;
      /** Of the tenure that this ends. */
      readonly version: number;
      /** True: somebody had done so before, and nothing was written. */
      readonly earlier: boolean;
    }
  /** Nobody held the id: nothing was written. */
  | { readonly kind: 'free' }
  /** The holder that was to be evicted is gone by itself; somebody else may hold the id by now, and was left alone. */
  | { readonly kind: 'ended'; readonly taskId: string; readonly version: number }
  /** What stands there is not the claim of an id: nothing was written. */
  | {
      readonly kind: 'not-allocated';
      readonly path: string;
      /** `persistent`: it goes with no session. `foreign`: it mirrors a lease in a store, or is somebody's own. */
      readonly why: 'persistent' | 'foreign';
    };

export interface EvictAllocatedOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** A holder changes its znode when the width of ids does; more changes in a row than this mean something else. */
const ATTEMPTS = 10;

/**
 * Takes a node id from its holder without ever letting two have it (rule 9). The holder's znode stays where it is, so that nobody can claim
 * the id; what goes is the mark in its data by which the holder knows it for its own, and the time of the eviction comes in its place. A holder
 * that is connected learns of it by its watch, or else with its next heartbeat, every sixth of its session's time-out; it loses the id as
 * `taken`, ends its work, and then its session, which frees the id. One that is cut off stops at half of its time-out, as always, and one
 * that is stopped or dead goes with its session, when the servers have not heard of it for the whole time-out.
 *
 * Not guaranteed: that the holder which is evicted is the one that was seen, where one session ends and the next task claims the same id
 * between a read and the write after it, some milliseconds. Then the next task is the one that loses the id, and the result says its version.
 *
 * @throws {ConfigError} when the node id is out of range
 * @throws {ZooKeeperError} when ZooKeeper gives no answer, or denies it
 */
export async function evictAllocated({ zookeeper, clock, signal }: EvictAllocatedOptions, nodeId: number): Promise<AllocatedEviction> {
  const path = claimPath(clusterNodeIdOf(nodeId));
  let seen: { readonly taskId: string; readonly version: number } | undefined;
  for (let attempt = 1; ; attempt += 1) {
    const znode = await zookeeper.read(path, { signal });
    if (znode === undefined) return seen === undefined ? { kind: 'free' } : { kind: 'ended', ...seen };
    const version = versionOf(path, znode);
    if (seen !== undefined && seen.version !== version) return { kind: 'ended', ...seen };
    if (znode.stat.owner === undefined) return { kind: 'not-allocated', path, why: 'persistent' };
    const tenure = readTenure(znode.data.toString('utf8'));
    if (tenure === undefined) return { kind: 'not-allocated', path, why: 'foreign' };
    const { taskId } = tenure;
    // A mark that is there after an attempt of ours is as good as ours: an answer may have been lost (rule 5).
    if (tenure.state === 'evicted') return { kind: 'evicted', taskId, version, earlier: seen === undefined };
    seen = { taskId, version };
    try {
      const stat = await zookeeper.setData(path, evictedData(znode, nodeId, version, clock.now()), znode.stat.version, { signal });
      const hit = versionOf(path, { ...znode, stat });
      return { kind: 'evicted', taskId: hit === version ? taskId : undefined, version: hit, earlier: false };
    } catch (error) {
      if (attempt === ATTEMPTS || !isFault(error, 'bad-version', 'no-node', 'connection-loss', 'timeout')) throw error;
    }
  }
}

/**
 * What a znode's data says of the tenure that it stands for. Never throws.
 *
 * @returns undefined where it is not of a node id from ZooKeeper alone
 */
export function readTenure(data: string): AllocatedTenure | undefined {
  const { taskId, nonce, evictedAt } = fieldsOf(data);
  if (typeof taskId !== 'string') return undefined;
  if (typeof nonce === 'string') return { state: 'held', taskId };
  return typeof evictedAt === 'number' ? { state: 'evicted', taskId } : undefined;
}

/** All that the holder said, but the mark of its tenure: until its work has ended, it may use what it announces. */
function evictedData({ data }: Znode, nodeId: number, version: number, now: number): string {
  const { nonce: _, taskId, ...more } = fieldsOf(data.toString('utf8'));
  return encodeAssignment({ ...more, taskId: String(taskId), nodeId, version, evictedAt: now });
}

function fieldsOf(data: string): Readonly<Record<string, unknown>> {
  try {
    const fields: unknown = JSON.parse(data);
    return typeof fields === 'object' && fields !== null ? (fields as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
