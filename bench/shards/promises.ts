import type { Promised } from '../storm/promises.js';
import { DURATION_MS, GRACE_MS } from './shard-node.js';
import { type CountCosts, moreThanLeases } from './tables.js';

/** GETs a node and minute that shards may add. */
const MORE_GETS = 12;
/** Until half of the shards run again after a leave, and all of them after a crashed node's lease has ended. In ms. */
const LEFT_MS = 5_000;
const FOUND_MS = 10_000;
/** Until a shard that has stopped to move runs again: 99 of 100. */
const MOVED_MS = 1_500;
/** A node reads the map once in a renewal period and up to a tenth of it; then come requests. In ms. */
const READ_MS = (DURATION_MS / 3) * 1.1 + 500;

/** The steady state, and how long shards are down. */
export function shardPromises(rows: readonly CountCosts[]): readonly Promised[] {
  const gets = rows.map((row) => moreThanLeases(row).get);
  const most = (what: string, value: number, bound: number): Promised => ({
    ...{ what, value, bound },
    side: 'most',
  });
  const seconds = (what: string, ms: number, boundMs: number) =>
    most(`${what}, seconds`, ms / 1_000, boundMs / 1_000);
  return [
    most('GETs of most shards / of fewest', Math.max(...gets) / Math.min(...gets), 1.02),
    ...rows.flatMap((row) => {
      const { changes, nodes } = row.shards;
      const { join, leave, crash } = changes;
      const more = moreThanLeases(row);
      const shards = `${row.count} shards`;
      const overMs = DURATION_MS + GRACE_MS;
      return [
        // Two nodes of the fleet look in each period, and a look reads two leases: that is for 100 nodes.
        most(`${shards}: more GETs a node and minute`, more.get, MORE_GETS + Math.max(0, 48 / nodes - 0.48)),
        most(`${shards}: more writes a node and minute`, more.put, 0.02),
        seconds(`${shards}: down after a leave, median`, leave.down.medianMs, LEFT_MS),
        seconds(`${shards}: down after a leave, worst`, leave.down.maxMs, READ_MS),
        seconds(`${shards}: down after a crash, worst`, crash.down.maxMs, overMs + FOUND_MS),
        seconds(`${shards}: down after the stop when it moves, p99`, join.down.p99Ms, MOVED_MS),
        seconds(
          `${shards}: with two owners`,
          Math.max(...Object.values(changes).map(({ twiceMs }) => twiceMs)),
          0,
        ),
      ];
    }),
  ].filter(({ value }) => !Number.isNaN(value));
}
