import { isFault } from '../../zookeeper/zookeeper-error.js';
import { groupPath, NODES_PATH, parseHexPair } from '../tree-paths.js';
import type { BoundCall, BoundSession } from './bound-session.js';
import { indicesOf, TakenIds } from './taken-ids.js';

/** The next group is made when an index of the last one reaches this: ahead of need, so that everybody learns of the wider ids in time. */
export const GROW_AT_INDEX = 0xcf;

/** The last group, where it is empty, is removed when the highest index of the one before is below this. */
export const SHRINK_BELOW_INDEX = 0x9f;

/** The lowest of the groups whose ids take as many bits: whoever keeps narrower ids away from it keeps them away from all of them. */
export function gateOf(group: number): number {
  return group === 0 ? 0 : 2 ** (31 - Math.clz32(group));
}

/**
 * Looks at the groups in ascending order, at as few as need be.
 *
 * @param rank looks on until more than so many ids are found free
 */
export async function lookAtGroups(session: BoundSession, rank: number, maxGroups: number, call?: BoundCall): Promise<TakenIds> {
  const taken = new TakenIds(new Set(await groupsOf(session, call)));
  let free = 0;
  for (let group = 0; group < maxGroups && free <= rank; group += 1) {
    if (taken.groups.has(group)) taken.note(group, (await session.children(groupPath(group), call)) ?? []);
    free += taken.freeIn(group);
  }
  return taken;
}

/**
 * Makes the next group where the last one fills up, and removes the last ones where they are no longer needed. Others may do the same at
 * the same time, and a group that is removed while somebody is about to claim an id in it is made again by him.
 *
 * Not guaranteed: that a group is there before its first id is wanted, or that an empty one goes soon.
 */
export async function tendGroups(session: BoundSession, maxGroups: number, call?: BoundCall): Promise<void> {
  let last = Math.max(0, ...(await groupsOf(session, call)));
  let highest = await highestIndex(session, last, call);
  if (highest >= GROW_AT_INDEX && last + 1 < maxGroups) return session.ensurePath(groupPath(last + 1), call);
  for (; last > 0 && highest < 0; last -= 1) {
    highest = await highestIndex(session, last - 1, call);
    if (highest >= SHRINK_BELOW_INDEX) return;
    try {
      await session.remove(groupPath(last), undefined, call);
    } catch (error) {
      // Somebody has claimed an id in it meanwhile.
      if (isFault(error, 'not-empty')) return;
      throw error;
    }
  }
}

/** The groups whose znodes exist. */
export async function groupsOf(session: BoundSession, call?: BoundCall): Promise<number[]> {
  const names = (await session.children(NODES_PATH, call)) ?? [];
  return names.map(parseHexPair).filter((group) => group !== undefined);
}

/** -1 for a group without znodes. */
async function highestIndex(session: BoundSession, group: number, call?: BoundCall): Promise<number> {
  return Math.max(-1, ...indicesOf((await session.children(groupPath(group), call)) ?? []));
}
