import { withTimeout } from '../../../core/base/abort.js';
import { whole } from '../../../core/base/arguments.js';
import { CLUSTER_NODE_ID_OFFSET, widthOfGroup } from '../../../core/id/cluster-node-id.js';
import type { BoundSession } from '../../client/bound-session.js';
import { concurrentCalls } from '../../client/call-limits.js';
import { erase } from '../../client/retry.js';
import type { CallOptions, TimeSources, Znode, ZooKeeper } from '../../client/zookeeper.js';
import { isFault } from '../../client/zookeeper.js';
import { fieldsOf, groupPath, hexPair, parseHexPair, STAMPS_PATH, stampGroupPath } from '../layout.js';
import { GROUP_SIZE } from './id-groups.js';
import { isMs, lastIdTimestampIn } from './id-znodes.js';

/**
 * Whether ids of a group may be claimed. `mark` is the znode that says so, none for group 0: to be checked in
 * the transaction that claims. `floor` is the last millisecond, by the leader's clock, in which narrower ids
 * may have been made. `why` ends the sentence "none may be claimed: …".
 */
export type BarrierState =
  | {
      readonly open: true;
      readonly mark?: { readonly path: string; readonly version: number };
      readonly floor: number;
    }
  | { readonly open: false; readonly why: string };

const LEAVE_TIMEOUT_MS = 1_000;
const WIDTH = whole(8, 16);

/**
 * Keeps the ids of a group, which need more bits than those of lower groups, from being claimed too early.
 * Every live holder below must have published the wider width first. The result is recorded in the znode of
 * the lowest group of that width.
 *
 * Why no holder is missed: docs/design/allocation.md, "Two widths".
 */
export class WidthBarrier {
  /** The narrow claims of the last scan. */
  #narrow: readonly string[] = [];
  #lock: string | undefined;

  /** @param timeoutMs the time-out that the servers granted to the session */
  constructor(
    private readonly session: BoundSession,
    private readonly timeoutMs: number,
  ) {}

  /**
   * Whether ids of this group, whose znode was there, may be claimed. Opens the barrier if it can.
   * @throws {ZooKeeperError}
   */
  async tryOpen(group: number, call: CallOptions): Promise<BarrierState> {
    if (group === 0) return { open: true, floor: 0 };
    const { session } = this;
    const lowest = barrierGroupOf(group);
    const path = groupPath(lowest);
    const idWidth = widthOfGroup(group);
    const znode = await session.read(path, call);
    if (znode === undefined) return { open: false, why: 'the group has been removed by another task' };
    const { version } = znode.stat;
    // A mark made by hand may have no floor. A mark with an invalid floor does not count.
    const { floor: known = 0 } = fieldsOf(znode.data);
    if (widthIn(znode) >= idWidth && isMs(known))
      return { open: true, mark: { path, version }, floor: known };
    try {
      if (!(await this.#acquireLock(`${STAMPS_PATH}/gate-${hexPair(lowest)}`, call)))
        return {
          open: false,
          why: `another task looks whether all others use ${idWidth} bits for a node id`,
        };
      this.#narrow = await this.#narrowClaims(lowest, idWidth, call);
      if (this.#narrow.length > 0)
        return {
          open: false,
          why: `others do not use ${idWidth} bits for a node id yet: ${namesOf(this.#narrow)}`,
        };
      let floor = 0;
      for await (const records of this.#readBelow(lowest, stampGroupPath, call))
        floor = Math.max(floor, ...records.map(({ znode }) => lastIdTimestampIn(znode, this.timeoutMs)));
      const stat = await session.setData(path, JSON.stringify({ idWidth, floor }), version, call);
      return { open: true, mark: { path, version: stat.version }, floor };
    } catch (error) {
      if (!isFault(error, 'node-exists', 'bad-version', 'no-node')) throw error;
      return { open: false, why: 'another task was faster to change the znodes of the group' };
    }
  }

  /** Lets other tasks scan, within a second, or with the next connection. Never rejects. */
  async leave(sources: TimeSources): Promise<void> {
    if (this.#lock !== undefined)
      await withTimeout(sources.clock, LEAVE_TIMEOUT_MS, erase(sources, this.session, this.#lock));
  }

  /** Of many tasks that start together only one scans. No safety depends on it. */
  async #acquireLock(path: string, call: CallOptions): Promise<boolean> {
    // A read comes first: it costs the leader nothing, and waiting tasks repeat it.
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
    const before = first === undefined ? undefined : await this.session.read(first, call);
    if (before !== undefined && widthIn(before) < idWidth) return this.#narrow;
    // Before the claims are listed: a holder that is not among them reads this later than its claim.
    await this.#raiseWidest(idWidth, call);
    for await (const claims of this.#readBelow(group, groupPath, call)) {
      const narrow = claims.filter(({ znode }) => widthIn(znode) < idWidth).map(({ path }) => path);
      if (narrow.length > 0) return narrow;
    }
    return [];
  }

  /**
   * Makes sure that {@link readWidest} answers with at least this number of bits from now on. Fails where
   * another task does so at the same time.
   */
  async #raiseWidest(idWidth: number, call: CallOptions) {
    const data = JSON.stringify({ idWidth });
    const record = await this.session.read(STAMPS_PATH, call);
    if (record === undefined) await this.session.createWithParents(STAMPS_PATH, data, 'shared', call);
    else if (widthIn(record) < idWidth)
      await this.session.setData(STAMPS_PATH, data, record.stat.version, call);
  }

  /**
   * The znodes of ids in each of the groups below, in ascending order: other names belong to other programs.
   */
  async *#readBelow(
    group: number,
    pathOf: (group: number) => string,
    call: CallOptions,
  ): AsyncGenerator<{ path: string; znode: Znode }[]> {
    for (let below = 0; below < group; below += 1) {
      const names = (await this.session.children(pathOf(below), call)) ?? [];
      const ids = names.filter((name) => parseHexPair(name) !== undefined).sort();
      const paths = ids.map((name) => `${pathOf(below)}/${name}`);
      const found = await concurrentCalls(paths, async (path) => {
        const znode = await this.session.read(path, call);
        return znode === undefined ? [] : [{ path, znode }];
      });
      yield found.flat();
    }
  }
}

/**
 * The lowest of the groups whose ids take as many bits: a barrier before it keeps narrower ids away from all
 * of them.
 */
export function barrierGroupOf(group: number): number {
  return group === 0 ? 0 : 2 ** (31 - Math.clz32(group));
}

/**
 * The most bits that node ids ever took in unique ids here, in groups that have gone too; 0 where there is no
 * record.
 */
export async function readWidest(session: Pick<ZooKeeper, 'read'>, call?: CallOptions): Promise<number> {
  const record = await session.read(STAMPS_PATH, call);
  return record === undefined ? 0 : widthIn(record);
}

/**
 * The number of bits that a znode names, 8 … 16; 0 where it names none: the holder of such a claim may make
 * narrow ids.
 */
function widthIn({ data }: Znode): number {
  const { idWidth } = fieldsOf(data);
  return WIDTH.is(idWidth) ? (idWidth as number) : 0;
}

/** The node ids of claims, for people: the first of them. */
function namesOf([first = '', ...others]: readonly string[]): string {
  const [group = 0, index = 0] = first.split('/').slice(-2).map(parseHexPair);
  const nodeId = group * GROUP_SIZE + index - CLUSTER_NODE_ID_OFFSET;
  return `${nodeId < 0 ? first : `node id ${nodeId}`}${others.length > 0 ? ` and ${others.length} more` : ''}`;
}
