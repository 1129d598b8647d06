import type { NodeTenures, Tenure } from '../../src/node/wire/cluster-snapshot.js';
import type { NodeReport } from '../../src/node/wire/status-report.js';

const ENDS = ['released', 'expired', 'expired', 'evicted', 'released', 'retired'] as const;

/** A number in [0, 1) that looks like chance and is the same each time. */
const chance = (seed: number) => ((Math.imul(seed + 1, 2_654_435_761) >>> 0) % 10_007) / 10_007;

/**
 * Past tenures of the nodes of a fleet, eight at most of each, that take `spanMs` until now: their versions go
 * down from that of the node.
 */
export function scriptedTenures(
  fleet: { readonly nodes: readonly NodeReport[] },
  spanMs: number,
  now = Date.now(),
) {
  return (ids: readonly number[]): NodeTenures[] =>
    ids.map((id) => {
      const { version = 0, taskId = null, state } = fleet.nodes[id] ?? {};
      const tenures: Tenure[] = [];
      let at = now - chance(id) * (spanMs / 10);
      const isHeld = state === 'held' && taskId !== null;
      if (isHeld) tenures.push({ version, taskId, acquiredAt: Math.floor(at), endedAt: null, end: null });
      for (let before = isHeld ? version - 1 : version; before > 0 && tenures.length < 8; before -= 1) {
        const seed = id * 31 + before;
        const endedAt = Math.floor(at - (4_000 + chance(seed) * 30_000));
        at = endedAt - (0.3 + chance(seed + 7)) * (spanMs / 9);
        const end = ENDS[(id + before) % ENDS.length] ?? 'released';
        tenures.push({
          version: before,
          taskId: `task-${id}-${before}`,
          acquiredAt: Math.floor(at),
          endedAt,
          end,
        });
      }
      return { id, tenures, knownSince: tenures.at(-1)?.acquiredAt ?? null };
    });
}
