import { readCluster, type StoredCluster } from './cluster-store.js';
import { readingOf } from './inspect.js';
import { nativeCodec } from './lease-codec.js';
import { leaseKey, revived } from './lease-state.js';
import type { ScaleSteps } from './scale-steps.js';

/**
 * Makes acquirable what is retired although the cluster has it, in its own generation or a later one: `cluster.json` was lost and created anew,
 * or changed by somebody who knows nothing of generations. Such ids would be acquired by nobody, whatever the size says.
 *
 * What was retired in an earlier generation may be acquired as it is. What tells no generation is left: somebody marked it by hand, and meant it.
 * Should others change the settings meanwhile, what is left to do is left to whoever reads theirs.
 *
 * @returns how many lease objects were written
 */
export async function reopen(steps: ScaleSteps, { config, etag }: StoredCluster): Promise<number> {
  const { session } = steps.options;
  const { rows } = await steps.list();
  const ids = [...rows].filter(([id, { size }]) => id < config.size && size > 0 && size <= nativeCodec.tombstoneMaxBytes).map(([id]) => id);
  const reopened = new Set<number>();
  await steps.onEach(ids, async (id, call) => {
    const object = await session.read(leaseKey(id), call);
    if (object === undefined) return;
    const reading = readingOf(object);
    if (reading.kind !== 'lease' || reading.lease.kind !== 'retired') return;
    // An attempt whose outcome was not known has not succeeded then.
    reopened.delete(id);
    const { generation } = reading.lease;
    if (generation === undefined || generation < config.generation) return;
    // Written by somebody who knows newer settings than these, it stays.
    if ((await readCluster(session, call))?.etag !== etag) return;
    reopened.add(id);
    const { status } = await session.write(leaseKey(id), nativeCodec.encode(revived(reading.lease, generation + 1)), object.etag, call);
    if (status !== 'written') reopened.delete(id);
  });
  return reopened.size;
}
