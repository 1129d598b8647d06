import { concurrently } from '../../base/concurrently.js';
import { CLUSTER_NODE_ID_OFFSET, widthOfGroup } from '../../id/cluster-node-id.js';
import type { CallOptions, Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault } from '../../zookeeper/zookeeper-error.js';
import { groupPath, hexPair, parseHexPair, STAMPS_PATH, stampGroupPath } from '../tree-paths.js';
import { type BoundSession, fieldsOf } from './id-claim.js';
import { GROUP_SIZE } from './id-groups.js';
import { isMs, lastIdTimestampIn } from './id-time-record.js';

/** Whether ids of a group may be claimed. */
export type BarrierState =
  | {
      readonly open: true;
      /** The znode that says so, and its version: to be checked in the transaction that claims. None for group 0. */
      readonly mark?: { readonly path: string; readonly version: number };
      /** The last millisecond in which narrower ids may have been made, by the leader's clock. */
      readonly floor: number;
    }
  /** Not yet; `why` is the rest of the sentence "no id of this group may be claimed: …". */
  | { readonly open: false; readonly why: string };

/** How many znodes are read at a time. */
const READS_AT_ONCE = 64;
/** Maximum number of narrow holders that are named. */
const MAX_NAMED = 3;

/**
 * Keeps the ids of a group, whose node ids take more bits than those of the groups below it, from being claimed until every live holder below
 * has published that it uses so many bits: a narrow id of one node can be the wide id of another in the same millisecond.
 *
 * The result stands in the znode of the lowest group of that width, `{ "idWidth", "floor" }`, so that one task has to look, not each of them.
 * Why no holder is missed: docs/design/allocation.md, "Two widths".
 */
export class WidthBarrier {
  /** The narrow claims of the last look. */
  #narrow: readonly string[] = [];
  #lock: string | undefined;

  /** @param timeoutMs what the servers granted to the session */
  constructor(
    private readonly session: BoundSession,
    private readonly timeoutMs: number,
  ) {}

  /**
   * Looks whether ids of this group, whose znode was there, may be claimed, and opens the barrier where nothing is against it any more.
   *
   * @throws {ZooKeeperError}
   */
  async look(group: number, call: CallOptions): Promise<BarrierState> {
    if (group === 0) return { open: true, floor: 0 };
    const { session } = this;
    const lowest = barrierGroupOf(group);
    const path = groupPath(lowest);
    const idWidth = widthOfGroup(group);
    const znode = await session.read(path, call);
    if (znode === undefined) return { open: false, why: 'the group has been removed by another task' };
    const { version } = znode.stat;
    const known = floorIn(znode);
    if (widthIn(znode.data) >= idWidth && known !== undefined) return { open: true, mark: { path, version }, floor: known };
    try {
      if (!(await this.#acquireLock(`${STAMPS_PATH}/gate-${hexPair(lowest)}`, call)))
        return { open: false, why: `another task looks whether all others use ${idWidth} bits for a node id` };
      this.#narrow = await this.#narrowClaims(lowest, idWidth, call);
      if (this.#narrow.length > 0)
        return { open: false, why: `others do not use ${idWidth} bits for a node id yet: ${namesOf(this.#narrow)}` };
      const floor = await this.#floorBelow(lowest, call);
      const stat = await session.setData(path, JSON.stringify({ idWidth, floor }), version, call);
      return { open: true, mark: { path, version: stat.version }, floor };
    } catch (error) {
      if (!isFault(error, 'node-exists', 'bad-version', 'no-node')) throw error;
      return { open: false, why: 'another task was faster to change the znodes of the group' };
    }
  }

  /** Lets others look. */
  async leave(call: CallOptions): Promise<void> {
    if (this.#lock !== undefined) await this.session.remove(this.#lock, undefined, call);
  }

  /** Of many tasks that start together one looks, not each of them. No safety rests on it. */
  async #acquireLock(path: string, call: CallOptions): Promise<boolean> {
    // A read comes first: it costs the leader nothing, and waiting tasks ask again and again.
    const owner = (await this.session.read(path, call))?.stat.owner;
    if (owner !== undefined && owner !== this.session.sessionId) return false;
    if (owner === undefined) await this.session.createWithParents(path, '', 'ephemeral', call);
    this.#lock = path;
    return true;
  }

  /** The claims below that do not show the width; some of them, where there are any. */
  async #narrowClaims(group: number, idWidth: number, call: CallOptions): Promise<readonly string[]> {
    const [first] = this.#narrow;
    // While the first of them is narrow, there is no sense in reading all others.
    if (first !== undefined && isNarrow(await this.session.read(first, call), idWidth)) return this.#narrow;
    // Before the claims are listed: a holder that is not among them reads this later than its claim.
    await this.#raiseWidest(idWidth, call);
    for (let below = 0; below < group; below += 1) {
      const znodes = await this.#readIds(groupPath(below), call);
      const narrow = znodes.flatMap(({ path, znode }) => (isNarrow(znode, idWidth) ? [path] : []));
      if (narrow.length > 0) return narrow;
    }
    return [];
  }

  /** Makes sure that {@link readWidest} answers with so many bits at the least, from now on. Fails where another task does so at the same time. */
  async #raiseWidest(idWidth: number, call: CallOptions): Promise<void> {
    const data = JSON.stringify({ idWidth });
    const record = await this.session.read(STAMPS_PATH, call);
    if (record === undefined) await this.session.createWithParents(STAMPS_PATH, data, 'shared', call);
    else if (widthIn(record.data) < idWidth) await this.session.setData(STAMPS_PATH, data, record.stat.version, call);
  }

  /** The last millisecond that a holder below may have put into an id, whether it is there still or not. */
  async #floorBelow(group: number, call: CallOptions): Promise<number> {
    let floor = 0;
    for (let below = 0; below < group; below += 1) {
      for (const { znode } of await this.#readIds(stampGroupPath(below), call)) {
        if (znode !== undefined) floor = Math.max(floor, lastIdTimestampIn(znode, this.timeoutMs));
      }
    }
    return floor;
  }

  /** The znodes of ids below a path, in the order of their names: other names belong to somebody else. */
  async #readIds(above: string, call: CallOptions): Promise<{ readonly path: string; readonly znode: Znode | undefined }[]> {
    const names = (await this.session.children(above, call)) ?? [];
    const paths = names.filter((name) => parseHexPair(name) !== undefined).map((name) => `${above}/${name}`);
    return concurrently(paths.sort(), READS_AT_ONCE, async (path) => ({ path, znode: await this.session.read(path, call) }));
  }
}

/** The lowest of the groups whose ids take as many bits: a barrier before it keeps narrower ids away from all of them. */
export function barrierGroupOf(group: number): number {
  return group === 0 ? 0 : 2 ** (31 - Math.clz32(group));
}

/**
 * The most bits that node ids ever took in unique ids here, as it stands in the znode of the id time windows. Groups go when they are empty, and a
 * task that made narrow ids then could repeat one that a node of such a group made in the same millisecond.
 *
 * @returns 0 where there is no record
 */
export async function readWidest(session: Pick<ZooKeeper, 'read'>, call?: CallOptions): Promise<number> {
  const record = await session.read(STAMPS_PATH, call);
  return record === undefined ? 0 : widthIn(record.data);
}

/** The number of bits that a znode's JSON names, 8 … 16; 0 where it names none. */
function widthIn(data: Buffer): number {
  const { idWidth } = fieldsOf(data);
  return Number.isInteger(idWidth) && (idWidth as number) >= 8 && (idWidth as number) <= 16 ? (idWidth as number) : 0;
}

/** A claim that is gone makes no ids. One that says nothing of a width, or nothing readable, may make narrow ones. */
function isNarrow(znode: Znode | undefined, idWidth: number): boolean {
  return znode !== undefined && widthIn(znode.data) < idWidth;
}

/** @returns 0 where none is told, as in a mark made by hand; undefined where it is no time, and the mark is not to be believed */
function floorIn({ data }: Znode): number | undefined {
  const { floor = 0 } = fieldsOf(data);
  return isMs(floor) ? floor : undefined;
}

/** The node ids of claims, for people. */
function namesOf(paths: readonly string[]): string {
  const names = paths.slice(0, MAX_NAMED).map((path) => {
    const [group = 0, index = 0] = path.split('/').slice(-2).map(parseHexPair);
    const nodeId = group * GROUP_SIZE + index - CLUSTER_NODE_ID_OFFSET;
    return nodeId < 0 ? path : `node id ${nodeId}`;
  });
  const more = paths.length - names.length;
  return names.join(', ') + (more > 0 ? ` and ${more} more` : '');
}
