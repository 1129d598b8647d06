import type { Clock } from '../../clock.js';
import { CLUSTER_NODE_ID_OFFSET, widthOfGroup } from '../../id/cluster-node-id.js';
import type { Znode } from '../../zookeeper/zookeeper.js';
import { isFault } from '../../zookeeper/zookeeper-error.js';
import { groupPath, hexPair, parseHexPair, STAMPS_PATH, stampGroupPath } from '../tree-paths.js';
import type { BoundCall, BoundSession } from './bound-session.js';
import { gateOf } from './id-groups.js';
import { fieldsOf, isMs, stampedUntilOf } from './id-stamp.js';
import { GROUP_SIZE } from './taken-ids.js';
import { raiseWidest, widthIn } from './widest-ids.js';

/** Whether ids of a group may be claimed. */
export type GateState =
  | {
      readonly open: true;
      /** The znode that says so, and the version with which it does: to be checked in the transaction that claims. None for group 0. */
      readonly mark?: { readonly path: string; readonly version: number };
      /** The last millisecond that narrower ids may be stamped with, by the leader's clock. */
      readonly floor: number;
    }
  /** Not yet; `why` is the rest of the sentence "no id of this group may be claimed: …". */
  | { readonly open: false; readonly path: string; readonly why: string };

export interface GroupGateOptions {
  readonly session: BoundSession;
  readonly clock: Clock;
  /** What the servers granted to the session, in milliseconds. */
  readonly timeoutMs: number;
}

/** How many znodes are read at a time. */
const READS_AT_ONCE = 64;
/** How long another task's word that it looks is enough not to look oneself, in milliseconds. */
const TRUST_MS = 10_000;
/** How many of those who are waited for are named. */
const NAMED = 3;

/**
 * Keeps the ids of a group, whose node ids take more bits than those of the groups below it, from being claimed until every holder below
 * makes ids of so many bits: a narrow id of one node can be the wide id of another in the same millisecond.
 *
 * Why nobody is missed. Who looks has seen the group's znode first, and then sees, of all claims in the lower groups,
 * - either the claim itself, and has to wait until it shows the width: its holder shows it when nobody in it makes narrow ids any more;
 * - or not: then the claim comes later than the group. Its holder looks at the groups after its claim, in the same session, and before its
 *   first id, and so sees the group. A server that lags behind does not matter: in a session nobody sees less than what he saw or did before.
 *
 * A group that was removed in between does not count: its mark goes with it, and a claim names the version of the mark. What goes with the
 * groups is kept apart: the widest ids there ever were, which everybody looks at as well ({@link raiseWidest}).
 *
 * Narrow ids of before are stamped before the `timestamp` of their node's stamp, whoever made them and however long it sleeps: the highest
 * of them is the `floor` after which the ids of the group begin.
 *
 * The result stands in the znode of the lowest group of that width, `{ "idWidth", "floor" }`, so that one task has to look, not every one.
 */
export class GroupGate {
  /** The claims that did not show the width at the last look: as long as the first does not, there is no sense in looking at all others. */
  #known: readonly string[] = [];
  #lock: string | undefined;
  #lockedSince: number | undefined;

  constructor(private readonly options: GroupGateOptions) {}

  /**
   * Looks whether ids of this group may be claimed, and has it so where nothing is against it any more.
   *
   * @throws {ZooKeeperError}
   */
  async look(group: number, call: BoundCall): Promise<GateState> {
    if (group === 0) return { open: true, floor: 0 };
    const { session } = this.options;
    const gate = gateOf(group);
    const path = groupPath(gate);
    const idWidth = widthOfGroup(group);
    const znode = (await session.read(path, call)) ?? (await this.#make(path, call));
    if (znode === undefined) return shut(path, 'the group has been removed by another task');
    const { version } = znode.stat;
    const known = floorIn(znode);
    if (widthIn(znode.data) >= idWidth && known !== undefined) return { open: true, mark: { path, version }, floor: known };
    if (!(await this.#isMine(gate, call))) return shut(path, `another task looks whether all others use ${idWidth} bits for a node id`);
    const ignorant = await this.#ignorants(gate, idWidth, call);
    if (ignorant.length > 0) return shut(path, `others do not use ${idWidth} bits for a node id yet: ${namesOf(ignorant)}`);
    const floor = await this.#floorBelow(gate, call);
    try {
      const stat = await session.setData(path, JSON.stringify({ idWidth, floor }), version, call);
      return { open: true, mark: { path, version: stat.version }, floor };
    } catch (error) {
      if (isFault(error, 'bad-version', 'no-node')) return shut(path, 'another task has changed the group');
      throw error;
    }
  }

  /** Lets others look. */
  async leave(call: BoundCall): Promise<void> {
    if (this.#lock === undefined) return;
    await this.options.session.remove(this.#lock, undefined, call);
    this.#lock = undefined;
  }

  async #make(path: string, call: BoundCall): Promise<Znode | undefined> {
    await this.options.session.ensurePath(path, call);
    return this.options.session.read(path, call);
  }

  /** Whether it is for us to look: many who start together should not all read what hundreds say. No safety rests on it. */
  async #isMine(gate: number, call: BoundCall): Promise<boolean> {
    if (this.#lock !== undefined) return true;
    const { session, clock } = this.options;
    const lock = `${STAMPS_PATH}/gate-${hexPair(gate)}`;
    // A look comes first: it costs the leader nothing, and those who wait ask again and again.
    const held = await session.read(lock, call);
    // One of ours is an attempt whose answer was lost.
    if (held?.stat.owner === session.sessionId || (held === undefined && (await this.#tryLock(lock, call)))) {
      this.#lock = lock;
      return true;
    }
    const now = clock.monotonic();
    this.#lockedSince ??= now;
    return now - this.#lockedSince >= TRUST_MS;
  }

  async #tryLock(lock: string, call: BoundCall): Promise<boolean> {
    try {
      await this.options.session.createWithParents(lock, '', 'ephemeral', call);
      return true;
    } catch (error) {
      if (isFault(error, 'node-exists')) return false;
      throw error;
    }
  }

  /** The claims below that do not show the width; some of them, where there are any. */
  async #ignorants(gate: number, idWidth: number, call: BoundCall): Promise<readonly string[]> {
    const { session } = this.options;
    const [first] = this.#known;
    if (first !== undefined && isIgnorant(await session.read(first, call), idWidth)) return this.#known;
    // Before the claims are listed: who is not among them reads this later than his claim.
    await raiseWidest(session, idWidth, call);
    for (let group = 0; group < gate; group += 1) {
      const paths = await this.#idsBelow(groupPath(group), call);
      const znodes = await this.#readAll(paths, call);
      this.#known = paths.filter((_, index) => isIgnorant(znodes[index], idWidth)).sort();
      if (this.#known.length > 0) break;
    }
    return this.#known;
  }

  async #floorBelow(gate: number, call: BoundCall): Promise<number> {
    let floor = 0;
    for (let group = 0; group < gate; group += 1) {
      const znodes = await this.#readAll(await this.#idsBelow(stampGroupPath(group), call), call);
      for (const znode of znodes) if (znode !== undefined) floor = Math.max(floor, stampedUntilOf(znode, this.options.timeoutMs));
    }
    return floor;
  }

  /** The znodes of ids in a group: other names are somebody's own. */
  async #idsBelow(path: string, call: BoundCall): Promise<string[]> {
    const names = (await this.options.session.children(path, call)) ?? [];
    return names.filter((name) => parseHexPair(name) !== undefined).map((name) => `${path}/${name}`);
  }

  async #readAll(paths: readonly string[], call: BoundCall): Promise<(Znode | undefined)[]> {
    const znodes: (Znode | undefined)[] = [];
    for (let at = 0; at < paths.length; at += READS_AT_ONCE) {
      znodes.push(...(await Promise.all(paths.slice(at, at + READS_AT_ONCE).map((path) => this.options.session.read(path, call)))));
    }
    return znodes;
  }
}

function shut(path: string, why: string): GateState {
  return { open: false, path, why };
}

/** One that is gone makes no ids. One that says nothing of a width, or nothing readable, may make narrow ones. */
function isIgnorant(znode: Znode | undefined, idWidth: number): boolean {
  return znode !== undefined && widthIn(znode.data) < idWidth;
}

/** @returns 0 where none is told, as in a mark made by hand; undefined where it is no time, and the mark is not to be believed */
function floorIn({ data }: Znode): number | undefined {
  const { floor = 0 } = fieldsOf(data);
  return isMs(floor) ? floor : undefined;
}

/** The node ids of claims, for people. */
function namesOf(paths: readonly string[]): string {
  const names = paths.slice(0, NAMED).map((path) => {
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
