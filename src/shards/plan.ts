import type { Member, Shard, ShardMap } from './shard-map.js';

/** What a write of the map is for. */
export interface Change {
  /** The members from now on. The tenures of all others are over (T6). */
  readonly members: readonly Member[];
  /** The shards that their owner has stopped and hands on (T5). @default none */
  readonly given?: ReadonlySet<number>;
  /** A member that gets nothing more. */
  readonly leaver?: Member | undefined;
  /** Whether shards may move between members (T9). @default false */
  readonly settled?: boolean;
}

/** A member, how many shards it has or is to get, and how many it should have. */
interface Load {
  readonly member: Member;
  held: number;
  share: number;
}

/**
 * The next map, or undefined if nothing changes: pure, and the same for the same input. A plan may be foolish
 * without harm; the rules of owners and takers keep shards safe.
 *
 * A shard without an owner goes to its `next`, else to the new tenure of its former owner's node id, else to
 * the member with the fewest. Once settled, `next` moves as few shards as possible so that no two members
 * differ by more than one.
 */
export function plan(map: ShardMap, { members, given, leaver, settled }: Change): ShardMap | undefined {
  const epoch = map.epoch + 1;
  const takers = members.filter((member) => member !== leaver);
  const loads = takers.map((member): Load => ({ member, held: 0, share: 0 }));
  const loadOf = new Map<Member | undefined, Load>(loads.map((load) => [load.member, load]));
  const present = new Set(members);

  const shards = map.shards.map((shard, at): Shard => {
    const next = loadOf.has(shard.next) ? shard.next : undefined;
    const stays = shard.owner !== undefined && present.has(shard.owner) && !given?.has(at);
    const load = loadOf.get(next ?? (stays ? shard.owner : undefined));
    if (load) load.held += 1;
    if (stays) return next === shard.next ? shard : { ...shard, next };
    return shard.owner === next ? shard : { owner: next, since: epoch, next: undefined };
  });
  const most = Math.ceil(shards.length / loads.length);
  for (const [at, shard] of loads.length === 0 ? [] : shards.entries()) {
    if (shard.owner !== undefined) continue;
    const former = given?.has(at) ? undefined : map.shards[at]?.owner;
    const load =
      loads.find(({ member, held }) => member.id === former?.id && held < most) ??
      loads.reduce((best, other) => (other.held < best.held ? other : best));
    load.held += 1;
    shards[at] = { owner: load.member, since: epoch, next: undefined };
  }
  if (settled) balance(shards, loads, loadOf);
  const isSame = members.length === map.members.length && map.members.every((member) => present.has(member));
  return isSame && shards.every((shard, at) => shard === map.shards[at])
    ? undefined
    : { epoch, members, shards };
}

function balance(
  shards: Shard[],
  loads: readonly Load[],
  loadOf: ReadonlyMap<Member | undefined, Load>,
): void {
  // The larger shares are for those that have most: so the fewest shards move.
  for (const [at, load] of [...loads].sort((a, b) => b.held - a.held).entries())
    load.share = Math.floor((shards.length + loads.length - 1 - at) / loads.length);
  // A shard that is on its way goes back first: that interrupts no work.
  const order = [...shards.entries()].sort(([, a], [, b]) => Number(!a.next) - Number(!b.next));
  for (const [at, shard] of order) {
    const from = loadOf.get(shard.next ?? shard.owner);
    if (from === undefined || from.held <= from.share) continue;
    const to = loads.reduce((best, load) => (load.share - load.held > best.share - best.held ? load : best));
    from.held -= 1;
    to.held += 1;
    shards[at] = { ...shard, next: to.member === shard.owner ? undefined : to.member };
  }
}
