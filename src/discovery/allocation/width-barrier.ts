import { CLUSTER_NODE_ID_OFFSET, widthOfGroup } from '../../id/cluster-node-id.js';
import type { Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault } from '../../zookeeper/zookeeper-error.js';
import { groupPath, hexPair, parseHexPair, STAMPS_PATH, stampGroupPath } from '../tree-paths.js';
import type { BoundCall, BoundSession } from './bound-session.js';
import { fieldsOf } from './id-claim.js';
import { GROUP_SIZE } from './id-groups.js';
import { isMs, lastIdTimestampIn } from './id-time-window.js';

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
  | { readonly open: false; readonly path: string; readonly why: string };

/** How many znodes are read at a time. */
const READS_AT_ONCE = 64;
/** Maximum number of narrow holders that are named. */
const MAX_NAMED = 3;
/** How often at the most it is tried to raise the width on record: there are only nine of them. */
const MAX_RAISES = 20;

/**
 * Keeps the ids of a group, whose node ids take more bits than those of the groups below it, from being claimed until every live holder below
 * has published that it uses so many bits: a narrow id of one node can be the wide id of another in the same millisecond.
 *
 * Why no holder is missed. A task that looks has seen the group's znode first. Of every claim in the lower groups it then sees
 * - either the claim itself, and has to wait until that shows the width: its holder shows it when it makes no narrow ids any more;
 * - or not: then the claim comes later than the group. Its holder reads the groups after its claim, in the same session, and before its
 *   first id, and so sees the group. A server that lags behind does not matter: in a session no task sees less than what it saw or did before.
 *
 * A group that was removed in between does not count: its mark goes with it, and a claim names the version of the mark. The widest ids there ever
 * were stay on record apart from the groups, and every task reads that as well ({@link raiseWidest}).
 *
 * Narrow ids of before come before the `timestamp` of their node's record, whoever made them and however long it sleeps. The highest
 * of these times is the `floor` after which the ids of the group begin.
 *
 * The result stands in the znode of the lowest group of that width, `{ "idWidth", "floor" }`, so that one task has to look, not each of them.
 */
export class WidthBarrier {
  /** The narrow claims of the last look: while the first of them is narrow, there is no sense in reading all others. */
  #narrow: readonly string[] = [];
  #lock: string | undefined;

  /** @param timeoutMs what the servers granted to the session */
  constructor(
    private readonly session: BoundSession,
    private readonly timeoutMs: number,
  ) {}

  /**
   * Looks whether ids of this group may be claimed, and opens the barrier where nothing is against it any more.
   *
   * @throws {ZooKeeperError}
   */
  async look(group: number, call: BoundCall): Promise<BarrierState> {
    if (group === 0) return { open: true, floor: 0 };
    const { session } = this;
    const lowest = barrierGroupOf(group);
    const path = groupPath(lowest);
    const shut = (why: string): BarrierState => ({ open: false, path, why });
    const idWidth = widthOfGroup(group);
    let znode = await session.read(path, call);
    if (znode === undefined) {
      await session.ensurePath(path, call);
      znode = await session.read(path, call);
    }
    if (znode === undefined) return shut('the group has been removed by another task');
    const { version } = znode.stat;
    const known = floorIn(znode);
    if (widthIn(znode.data) >= idWidth && known !== undefined) return { open: true, mark: { path, version }, floor: known };
    if (!(await this.#acquireLock(lowest, call))) return shut(`another task looks whether all others use ${idWidth} bits for a node id`);
    const narrow = await this.#narrowClaims(lowest, idWidth, call);
    if (narrow.length > 0) return shut(`others do not use ${idWidth} bits for a node id yet: ${namesOf(narrow)}`);
    const floor = await this.#floorBelow(lowest, call);
    try {
      const stat = await session.setData(path, JSON.stringify({ idWidth, floor }), version, call);
      return { open: true, mark: { path, version: stat.version }, floor };
    } catch (error) {
      if (isFault(error, 'bad-version', 'no-node')) return shut('another task has changed the group');
      throw error;
    }
  }

  /** Lets others look. */
  async leave(call: BoundCall): Promise<void> {
    const lock = this.#lock;
    if (lock !== undefined && (await this.#ownerOf(lock, call)) === this.session.sessionId)
      await this.session.remove(lock, undefined, call);
  }

  /** Of many tasks that start together one looks, not each of them. No safety rests on it. */
  async #acquireLock(group: number, call: BoundCall): Promise<boolean> {
    const lock = `${STAMPS_PATH}/gate-${hexPair(group)}`;
    // A read comes first: it costs the leader nothing, and waiting tasks ask again and again.
    const owner = await this.#ownerOf(lock, call);
    if (owner !== undefined) return owner === this.session.sessionId;
    this.#lock = lock;
    try {
      await this.session.createWithParents(lock, '', 'ephemeral', call);
      return true;
    } catch (error) {
      if (isFault(error, 'node-exists')) return false;
      throw error;
    }
  }

  async #ownerOf(lock: string, call: BoundCall): Promise<string | undefined> {
    return (await this.session.read(lock, call))?.stat.owner;
  }

  /** The claims below that do not show the width; some of them, where there are any. */
  async #narrowClaims(group: number, idWidth: number, call: BoundCall): Promise<readonly string[]> {
    const { session } = this;
    const [first] = this.#narrow;
    if (first !== undefined && isNarrow(await session.read(first, call), idWidth)) return this.#narrow;
    // Before the claims are listed: a holder that is not among them reads this later than its claim.
    await raiseWidest(session, idWidth, call);
    for (let below = 0; below < group; below += 1) {
      const znodes = await this.#readIds(groupPath(below), call);
      this.#narrow = znodes.flatMap(([path, znode]) => (isNarrow(znode, idWidth) ? [path] : [])).sort();
      if (this.#narrow.length > 0) break;
    }
    return this.#narrow;
  }

  async #floorBelow(group: number, call: BoundCall): Promise<number> {
    let floor = 0;
    for (let below = 0; below < group; below += 1) {
      const znodes = await this.#readIds(stampGroupPath(below), call);
      for (const [, znode] of znodes) if (znode !== undefined) floor = Math.max(floor, lastIdTimestampIn(znode, this.timeoutMs));
    }
    return floor;
  }

  /** The znodes of ids below a path: other names belong to somebody else. */
  async #readIds(above: string, call: BoundCall): Promise<[path: string, znode: Znode | undefined][]> {
    const names = (await this.session.children(above, call)) ?? [];
    const paths = names.filter((name) => parseHexPair(name) !== undefined).map((name) => `${above}/${name}`);
    const znodes: [string, Znode | undefined][] = [];
    for (let at = 0; at < paths.length; at += READS_AT_ONCE) {
      const some = paths.slice(at, at + READS_AT_ONCE);
      znodes.push(
        ...(await Promise.all(some.map(async (path): Promise<[string, Znode | undefined]> => [path, await this.session.read(path, call)]))),
      );
    }
    return znodes;
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
export async function readWidest(session: Pick<ZooKeeper, 'read'>, call?: BoundCall): Promise<number> {
  const record = await session.read(STAMPS_PATH, call);
  return record === undefined ? 0 : widthIn(record.data);
}

/**
 * Makes sure that {@link readWidest} answers with so many bits at the least, from now on. Others may do the same at the same time.
 *
 * @throws {ZooKeeperError} among others `bad-version` when somebody changes it all the time
 */
export async function raiseWidest(session: BoundSession, idWidth: number, call?: BoundCall): Promise<void> {
  const data = JSON.stringify({ idWidth });
  for (let round = 1; ; round += 1) {
    const record = await session.read(STAMPS_PATH, call);
    if (record !== undefined && widthIn(record.data) >= idWidth) return;
    try {
      if (record === undefined) await session.createWithParents(STAMPS_PATH, data, 'shared', call);
      else await session.setData(STAMPS_PATH, data, record.stat.version, call);
      return;
    } catch (error) {
      // Another task was faster. A server tells of that only when it has seen it, so the next read sees it, too.
      if (round === MAX_RAISES || !isFault(error, 'node-exists', 'bad-version', 'no-node')) throw error;
    }
  }
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
    const [group = 0, index = 0] = path
      .split('/')
      .slice(-2)
      .map((name) => parseHexPair(name));
    const clusterNodeId = group * GROUP_SIZE + index;
    return clusterNodeId < CLUSTER_NODE_ID_OFFSET ? path : `node id ${clusterNodeId - CLUSTER_NODE_ID_OFFSET}`;
  });
  const more = paths.length - names.length;
  return names.join(', ') + (more > 0 ? ` and ${more} more` : '');
}
