import type { Limits, MapMember, Shard, ShardMap } from './shard-map.js';

/** What a write of the map is for. */
interface Change {
  /** The members from now on. The tenures of all others are over (T6). */
  readonly members: readonly MapMember[];
  /** The shards that their owner has stopped and hands on (T5). @default none */
  readonly given?: ReadonlySet<number>;
  /** How many starts in a row have failed, of the shards of which the map says otherwise. @default none */
  readonly failed?: ReadonlyMap<number, number>;
  /** @default those of the map */
  readonly limits?: Limits;
  /** A member that gets nothing more. */
  readonly leaver?: MapMember | undefined;
  /** Whether shards may move between members (T9). @default false */
  readonly settled?: boolean;
}

/** A member, how many shards it has or is to get, and how many it should have, and takes at most. */
interface Load {
  readonly member: MapMember;
  readonly limit: number;
  held: number;
  share: number;
}

/**
 * The next map, or undefined if nothing changes: pure, and the same for the same input. A plan may be foolish
 * without harm; the rules of owners and takers keep shards safe.
 *
 * A shard without an owner goes to its `next`, else to the new tenure of its former owner's node id, else to
 * the member with the fewest of those below their limits. One that its owner could not start stays there only
 * where all others are at their limits. Once settled, `next` moves as few shards as possible so that no two
 * members below their limits differ by more than one.
 */
export function plan(
  map: ShardMap,
  { members, given, failed, limits = map.limits, leaver, settled }: Change,
): ShardMap | undefined {
  const epoch = map.epoch + 1;
  const count = map.shards.length;
  const takers = members.filter((member) => member !== leaver);
  const loads = takers.map(
    (member): Load => ({ member, limit: limits?.get(member) ?? count, held: 0, share: 0 }),
  );
  const loadOf = new Map<MapMember | undefined, Load>(loads.map((load) => [load.member, load]));
  const present = new Set(members);
  const ownerOf = ({ owner }: Shard, at: number) =>
    owner !== undefined && present.has(owner) && !given?.has(at) ? owner : undefined;
  // Before any `next` is looked at: a member that has reached its limit is none.
  for (const [at, shard] of map.shards.entries()) {
    const load = loadOf.has(shard.next) ? undefined : loadOf.get(ownerOf(shard, at));
    if (load) load.held += 1;
  }
  const shards = map.shards.map((shard, at): Shard => {
    const owner = ownerOf(shard, at);
    const wish = loadOf.get(shard.next);
    const next = wish && wish.held < wish.limit && shard.next !== owner ? shard.next : undefined;
    const load = wish && loadOf.get(next ?? owner);
    if (load) load.held += 1;
    const known = failed?.has(at) ? { ...shard, failed: failed.get(at) || undefined } : shard;
    if (owner !== undefined) return next === shard.next ? known : { ...known, next };
    return shard.owner === next ? known : { ...known, owner: next, token: epoch, next: undefined };
  });
  const most = Math.ceil(count / loads.length);
  for (const [at, shard] of shards.entries()) {
    if (shard.owner !== undefined) continue;
    const former = map.shards[at]?.owner;
    const giver = given?.has(at) && shard.failed ? loadOf.get(former) : undefined;
    const again = (load: Load) => load.member.id === former?.id && load.held < Math.min(most, load.limit);
    const load = (former && !given?.has(at) ? loads.find(again) : undefined) ?? taker(loads, giver, count);
    if (load === undefined) continue;
    load.held += 1;
    shards[at] = { ...shard, owner: load.member, token: epoch, next: undefined };
  }
  if (settled) balance(shards, loads, loadOf);
  const own = new Map([...(limits ?? [])].filter(([member]) => present.has(member)));
  const isSame =
    members.length === map.members.length &&
    map.members.every((member) => present.has(member)) &&
    members.every((member) => own.get(member) === map.limits?.get(member));
  return isSame && shards.every((shard, at) => shard === map.shards[at])
    ? undefined
    : { epoch, members, shards, ...(own.size > 0 && { limits: own }) };
}

/** The one with the fewest, of all that have room; else the giver. */
function taker(loads: readonly Load[], giver: Load | undefined, count: number): Load | undefined {
  let best: Load | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const load of loads) {
    let cost = load.held < load.limit ? load.held : count + 1 + load.held;
    if (load === giver) cost = count;
    if (cost >= least) continue;
    best = load;
    least = cost;
  }
  return best;
}

function balance(
  shards: Shard[],
  loads: readonly Load[],
  loadOf: ReadonlyMap<MapMember | undefined, Load>,
): void {
  // What members at their limits do not take is for the others. The larger shares are for the members that
  // have most: so the fewest shards move.
  const byShare = [...loads].sort((a, b) => b.limit - a.limit || b.held - a.held).reverse();
  let left = shards.length;
  for (const [at, load] of byShare.entries()) {
    load.share = Math.min(load.limit, Math.floor(left / (loads.length - at)));
    left -= load.share;
  }
  // Of a member at its limit. It goes first, with the shards that are on their way: that interrupts no work.
  const isStuck = ({ owner, next, failed }: Shard) =>
    !next && failed && (loadOf.get(owner)?.limit ?? 0) < shards.length;
  const isAtRest = (shard: Shard) => Number(!shard.next && !isStuck(shard));
  const order = [...shards.entries()].sort(([, a], [, b]) => isAtRest(a) - isAtRest(b));
  for (const [at, shard] of order) {
    const from = loadOf.get(shard.next ?? shard.owner);
    if (from === undefined || from.held <= from.share) continue;
    const to = loads.reduce((best, load) => (load.share - load.held > best.share - best.held ? load : best));
    if (to.held >= to.share) return;
    from.held -= 1;
    to.held += 1;
    shards[at] = { ...shard, next: to.member === shard.owner ? undefined : to.member };
  }
}
