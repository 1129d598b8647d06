import { CLUSTER_NODE_ID_OFFSET, MAX_CLUSTER_NODE_ID } from '../../id/cluster-node-id.js';
import { parseHexPair } from '../tree-paths.js';

/** The cluster node ids of a group. */
export const GROUP_SIZE = 256;

/** The most groups there can be. */
export const MOST_GROUPS: number = (MAX_CLUSTER_NODE_ID + 1) / GROUP_SIZE;

/** Which cluster node ids were taken when the groups were looked at. In a group that was not looked at, none counts as taken. */
export class TakenIds {
  readonly #indices = new Map<number, ReadonlySet<number>>();

  /** @param groups the groups whose znodes exist */
  constructor(readonly groups: ReadonlySet<number>) {}

  /** The highest group whose znode exists; 0 where none does. */
  get highestGroup(): number {
    return Math.max(0, ...this.groups);
  }

  /** Notes the znodes below a group. Names that are not two hex digits are somebody's own, and take nothing. */
  note(group: number, names: readonly string[]): void {
    this.#indices.set(group, indicesOf(names));
  }

  /** Whether it is certain which ids of a group were taken: it was looked at, or did not exist. */
  knows(group: number): boolean {
    return this.#indices.has(group) || !this.groups.has(group);
  }

  /**
   * A free cluster node id, in ascending order; the reserved ones never are.
   *
   * @param rank how many free ones to leave to others
   * @param maxGroups how many groups there may be
   * @returns undefined where that many are not free
   */
  free(rank: number, maxGroups: number): number | undefined {
    let left = rank;
    for (let group = 0; group < maxGroups; group += 1) {
      const free = this.freeIn(group);
      if (left >= free) {
        left -= free;
        continue;
      }
      const taken = this.#indices.get(group);
      for (let index = leastIndex(group); ; index += 1) {
        if (taken?.has(index)) continue;
        if (left === 0) return group * GROUP_SIZE + index;
        left -= 1;
      }
    }
    return undefined;
  }

  /** How many cluster node ids of a group are free. */
  freeIn(group: number): number {
    const least = leastIndex(group);
    const taken = [...(this.#indices.get(group) ?? [])].filter((index) => index >= least);
    return GROUP_SIZE - least - taken.length;
  }
}

/** The indices that names of znodes stand for, other names left out. */
export function indicesOf(names: readonly string[]): ReadonlySet<number> {
  return new Set(names.map(parseHexPair).filter((index) => index !== undefined));
}

function leastIndex(group: number): number {
  return group === 0 ? CLUSTER_NODE_ID_OFFSET : 0;
}
