import { measureScene, type SceneOptions } from './scene.js';
import type { CountCosts } from './tables.js';

/** Measures each number of shards in both ways, and the same fleet without shards. */
export async function countCosts(
  counts: readonly number[],
  fleet: Pick<SceneOptions, 'nodes' | 'seed' | 'crashes'>,
  onMeasured: (row: CountCosts) => void = () => undefined,
): Promise<readonly CountCosts[]> {
  const leases = await measureScene({ ...fleet, way: 'leases', count: 1 });
  const rows: CountCosts[] = [];
  for (const count of counts) {
    const shards = await measureScene({ ...fleet, way: 'shards', count });
    const leaseAShard = await measureScene({ ...fleet, way: 'lease-a-shard', count });
    const row = { count, leases, shards, leaseAShard };
    onMeasured(row);
    rows.push(row);
  }
  return rows;
}
