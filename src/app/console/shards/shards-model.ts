import type { ShardsMember, ShardsReport } from '../../../node/wire/cluster-snapshot.js';

/**
 * All members with the shards that they own, those with the most shards first; the shards that are to move, without
 * an owner, and that fail.
 */
export function partsOf({ members, shards, failed }: ShardsReport) {
  const owned = members.map((): number[] => []);
  const moving: number[] = [];
  const orphaned: number[] = [];
  for (const [shard, [owner, , next]] of shards.entries()) {
    (owned[owner] ?? orphaned).push(shard);
    if (next >= 0) moving.push(shard);
  }
  const owners = members
    .map((member, at) => ({ member, shards: owned[at] ?? [] }))
    .sort((a, b) => b.shards.length - a.shards.length || a.member.id - b.member.id);
  return { owners, moving, orphaned, failing: failed.map(([shard]) => shard) };
}

const nameOf = ({ id, version }: ShardsMember) => `node ${id} (version ${version})`;

/** A shard in one line: its owner, its token, the owner to be, and what is waited for. */
export function shardText(
  { members, shards, failed }: ShardsReport,
  shard: number,
  leaseOf: (member: ShardsMember) => string,
): string {
  const [owner, token, next] = shards[shard] ?? [-1, 0, -1];
  const [from, to] = [members[owner], members[next]];
  if (!from) return `shard ${shard}: no owner, token ${token}, waits for a node that takes it`;
  const lease = leaseOf(from);
  const starts = failed.find(([of]) => of === shard)?.[1];
  const start = starts ? `, waits for node ${from.id} to start it, failed starts in a row: ${starts}` : '';
  const move = to ? `, waits for node ${from.id} to stop it` : start;
  const proof = `, waits for the proof that node ${from.id} is over: its lease is ${lease}`;
  const then = to ? `, next ${nameOf(to)}` : '';
  return `shard ${shard}: ${nameOf(from)}, token ${token}${then}${lease === 'held' ? move : proof}`;
}

/** A figure in the cell of each of these shards, as an SVG path. A cell is ten units wide. */
export function cellsPath(shards: readonly number[], columns: number, figure: string): string {
  const cell = (shard: number) => `M${(shard % columns) * 10} ${Math.floor(shard / columns) * 10}${figure}`;
  return shards.map(cell).join('');
}
