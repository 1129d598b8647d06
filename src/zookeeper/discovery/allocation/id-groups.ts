import type { Clock, RandomSource } from '../../../core/base/clock.js';
import {
  CLUSTER_NODE_ID_OFFSET,
  clusterNodeIdOf,
  indexOf,
  MAX_CLUSTER_NODE_ID,
} from '../../../core/id/cluster-node-id.js';
import type { BoundSession } from '../../client/bound-session.js';
import { type CallOptions, ZooKeeperError } from '../../client/zookeeper.js';
import { groupPath, NODES_PATH, parseHexPair } from '../tree-paths.js';
import type { IdTenure } from './id-znodes.js';

/** The cluster node ids of a group: few enough that no znode has thousands of children. */
export const GROUP_SIZE = 256;
/** Maximum number of groups. */
export const MAX_GROUPS: number = (MAX_CLUSTER_NODE_ID + 1) / GROUP_SIZE;
/**
 * The next group is made when this number of ids of the last one is taken: ahead of need, so that all tasks
 * learn of the wider ids in time.
 */
const GROW_AT = 200;
/** The last group, where it is empty, is removed when fewer ids than these of the one before are taken. */
const SHRINK_BELOW = 152;
/** How often a holder checks whether a group is missing or of no use, on average, in milliseconds. */
const TEND_EVERY_MS = 60_000;

/**
 * Finds free cluster node ids. Reserved ids are never free. Znodes whose names are not two hex digits are
 * foreign, and take no id.
 *
 * @returns the groups whose znodes exist; the free ids of the first group that is not full, in ascending
 * order, empty if all are full
 */
export async function findFreeIds(
  session: BoundSession,
  maxGroups: number,
  call?: CallOptions,
): Promise<{ groups: Set<number>; free: number[] }> {
  const groups = new Set(await numbersBelow(session, NODES_PATH, call));
  const free: number[] = [];
  for (let group = 0; group < maxGroups && free.length === 0; group += 1) {
    const taken = new Set(groups.has(group) ? await numbersBelow(session, groupPath(group), call) : []);
    for (let index = group === 0 ? CLUSTER_NODE_ID_OFFSET : 0; index < GROUP_SIZE; index += 1) {
      if (!taken.has(index)) free.push(group * GROUP_SIZE + index);
    }
  }
  return { groups, free };
}

/**
 * Makes the next group where the last one fills up, and removes the last ones where they are no longer
 * needed. A task that is about to claim an id in a group that is removed makes it again.
 *
 * @throws {ZooKeeperError} `not-empty` where another task has just claimed an id in the group that was to go
 */
async function tendGroups(session: BoundSession, maxGroups: number, call?: CallOptions): Promise<void> {
  let last = Math.max(0, ...(await numbersBelow(session, NODES_PATH, call)));
  let taken = (await numbersBelow(session, groupPath(last), call)).length;
  if (taken >= GROW_AT && last + 1 < maxGroups) return session.ensurePath(groupPath(last + 1), call);
  for (; last > 0 && taken === 0; last -= 1) {
    taken = (await numbersBelow(session, groupPath(last - 1), call)).length;
    if (taken >= SHRINK_BELOW) return;
    await session.remove(groupPath(last), undefined, call);
  }
}

/**
 * Maintains the groups during a tenure. The task that needs a missing group makes it, and a superfluous group
 * does no harm.
 */
export async function keepGroups(
  { nodeId, session }: Pick<IdTenure, 'nodeId' | 'session'>,
  maxGroups: number,
  {
    clock,
    random,
    ending,
  }: {
    readonly clock: Pick<Clock, 'sleep'>;
    readonly random: Pick<RandomSource, 'next'>;
    readonly ending: AbortSignal;
  },
): Promise<void> {
  for (let due = indexOf(clusterNodeIdOf(nodeId)) >= GROW_AT; !ending.aborted; due = true) {
    try {
      if (due) await tendGroups(session, maxGroups, { signal: ending });
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
    }
    // Spread out, so that tasks that started together do not all read at once. Only the end of the tenure
    // interrupts it.
    await clock.sleep(TEND_EVERY_MS * (0.5 + random.next()), ending).catch(() => undefined);
  }
}

/**
 * The groups that exist, or the indices that are taken in one: the children of a path that are named by two
 * hex digits.
 */
export async function numbersBelow(
  session: BoundSession,
  path: string,
  call?: CallOptions,
): Promise<number[]> {
  const names = (await session.children(path, call)) ?? [];
  return names.map(parseHexPair).filter((number) => number !== undefined);
}
