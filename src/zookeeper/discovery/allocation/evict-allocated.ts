import { isFault, type ZooKeeper } from '../../client/zookeeper.js';
import { encodeAssignment, fieldsOf } from '../assignment.js';
import { entryPath } from '../tree-paths.js';
import { versionOf } from './id-znodes.js';

/** The result of a forced release. Only the first writes anything. */
type AllocatedEviction =
  /**
   * The claim is marked, `earlier` where it was before; the id is free when its session ends. No `taskId`
   * where a task came to hold the id just then.
   */
  | {
      readonly kind: 'evicted';
      readonly taskId: string | undefined;
      readonly version: number;
      readonly earlier: boolean;
    }
  /** No task held the id. */
  | { readonly kind: 'free' }
  /**
   * The holder that was to be evicted is gone by itself; another task may hold the id by now, and was left
   * alone.
   */
  | { readonly kind: 'ended'; readonly taskId: string; readonly version: number }
  /**
   * The znode is no claim of an id: it belongs to no session, it mirrors a lease in a store, or it is
   * foreign.
   */
  | { readonly kind: 'not-allocated'; readonly path: string; readonly why: 'persistent' | 'foreign' };

/**
 * A holder changes its claim when the width of ids does; more changes in a row than this mean something else.
 */
const ATTEMPTS = 10;

/**
 * Takes a node id from its holder, and never lets two tasks hold it. The claim stays, so that no other task
 * can make one. The time of the eviction replaces its nonce, by which the holder knows it. The id is free
 * when the session of its holder has ended.
 *
 * Not guaranteed: that the evicted holder is the one that was seen. Its session may end, and the next task
 * may claim the id, between the read and the write. Then the next task loses the id, and the result has its
 * version.
 *
 * @throws {ConfigError} when the node id is out of range
 * @throws {ZooKeeperError} when ZooKeeper gives no answer, or denies access
 */
export async function evictAllocated(
  {
    zookeeper,
    clock,
    signal,
  }: { zookeeper: ZooKeeper; clock: { now(): number }; signal?: AbortSignal | undefined },
  nodeId: number,
): Promise<AllocatedEviction> {
  const path = entryPath({ kind: 'node' }, nodeId);
  let seen: { readonly taskId: string; readonly version: number } | undefined;
  for (let attempt = 1; ; attempt += 1) {
    const znode = await zookeeper.read(path, { signal });
    if (znode === undefined) return seen === undefined ? { kind: 'free' } : { kind: 'ended', ...seen };
    const { stat, data } = znode;
    const version = versionOf(path, stat.createdZxid);
    if (seen !== undefined && seen.version !== version) return { kind: 'ended', ...seen };
    if (stat.owner === undefined) return { kind: 'not-allocated', path, why: 'persistent' };
    const tenure = readTenure(data);
    if (tenure === undefined) return { kind: 'not-allocated', path, why: 'foreign' };
    const { taskId } = tenure;
    // After an attempt of ours the mark may be ours: its answer may have been lost.
    if (tenure.state === 'evicted') return { kind: 'evicted', taskId, version, earlier: seen === undefined };
    seen = { taskId, version };
    try {
      // All other fields stay: until its work has ended, the holder may use the fields that it announces.
      const { nonce: _, ...more } = fieldsOf(data);
      const marked = encodeAssignment({ ...more, taskId, nodeId, version, evictedAt: clock.now() });
      const hit = versionOf(
        path,
        (await zookeeper.setData(path, marked, stat.version, { signal })).createdZxid,
      );
      return { kind: 'evicted', taskId: hit === version ? taskId : undefined, version: hit, earlier: false };
    } catch (error) {
      if (attempt === ATTEMPTS || !isFault(error, 'bad-version', 'no-node', 'connection-loss', 'timeout'))
        throw error;
    }
  }
}

/**
 * The tenure in a claim's data; undefined if it is not of a node id from ZooKeeper alone. Never throws. An
 * `evicted` claim was taken away by force. It keeps other tasks off until the session of its holder has
 * ended.
 */
export function readTenure(data: Buffer | string): { state: 'held' | 'evicted'; taskId: string } | undefined {
  const { taskId, nonce, evictedAt } = fieldsOf(data);
  if (typeof taskId !== 'string') return undefined;
  if (typeof nonce === 'string') return { state: 'held', taskId };
  return typeof evictedAt === 'number' ? { state: 'evicted', taskId } : undefined;
}
