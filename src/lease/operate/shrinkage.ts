import { nativeCodec } from '../model/lease-codec.js';
import { leaseKey, revived } from '../model/lease-state.js';
import { readCluster, type StoredCluster } from '../session/cluster-store.js';
import { readingOf } from './inspect.js';
import { Retirement } from './retirement.js';
import type { ScaleSteps } from './scale-steps.js';
import type { ScaleOutcome } from './scaling.js';

/**
 * Takes node ids away from a cluster, the highest ones, with running tasks on it:
 *
 * 1. The first write changes the size and its generation together: without the permission for it nothing is done. From then on no task that
 *    knows the settings takes one of these ids, and their holders learn of it.
 * 2. The lease objects beyond the size are retired (see {@link Retirement}).
 *
 * Where the cluster has the size already, only the rest is done, and ids that it has become acquirable again although tombstones say otherwise
 * (see {@link reopen}). Where bootstrap is not complete, the missing objects are created first: later an absent object counts as deleted.
 */
export class Shrinkage {
  #reopened = 0;

  constructor(private readonly steps: ScaleSteps) {}

  /** @param first the settings, of a greater size or the same */
  async run(first: StoredCluster): Promise<ScaleOutcome> {
    const { size, signal, onEvent } = this.steps.options;
    const retirement = new Retirement(this.steps);
    let begun = false;
    let known: StoredCluster | undefined = first;
    for (let unlisted = 0; ; ) {
      signal?.throwIfAborted();
      if (known === undefined) return { kind: 'no-cluster' };
      const cluster: StoredCluster = known;
      const { config } = cluster;
      // The other task's word is newer.
      if (config.size < size || (begun && config.size > size)) return { kind: 'superseded', size: config.size };
      if (!config.bootstrapped) await this.steps.createMissing(0, config.size);
      if (config.size > size) {
        known = (await this.steps.change(cluster, this.#fewer(cluster))) ?? (await this.steps.read());
        continue;
      }
      if (!begun && first.config.size > size) onEvent?.({ type: 'shrunk', from: first.config.size, to: size });
      begun = true;
      if (first.config.size === size) this.#reopened += await reopen(this.steps, cluster);
      if ((await retirement.run(cluster)) === 'done') return this.#scaled(first, retirement, config.idWidth);
      known = await this.steps.read();
      // A listing that does not show the settings that there are.
      unlisted = known?.etag === cluster.etag ? unlisted + 1 : 0;
      if (unlisted > 0) await this.steps.pauseAfterListing(unlisted);
    }
  }

  #fewer({ config: { size: present, generation, peak } }: StoredCluster) {
    const { size } = this.steps.options;
    return { size, generation: generation + 1, peak: Math.max(peak, present), bootstrapped: true };
  }

  #scaled({ config: { size: from } }: StoredCluster, { retired, forced }: Retirement, idWidth: number): ScaleOutcome {
    const { options, created, damaged } = this.steps;
    const common = { kind: 'scaled', from, to: options.size, idWidth, widened: false } as const;
    return { ...common, created, reopened: this.#reopened, retired, forced, damaged };
  }
}

/**
 * Makes ids acquirable that are retired in the cluster's generation or a later one although the cluster has them: `cluster.json` was lost and
 * created anew, or changed by a program that knows nothing of generations. No task would ever acquire them.
 *
 * An id that was retired in an earlier generation is acquirable as it is. A tombstone without a generation was written by hand and is left. When
 * another task changes the settings meanwhile, the rest is left to that task.
 *
 * @returns how many lease objects were written
 */
async function reopen(steps: ScaleSteps, { config, etag }: StoredCluster): Promise<number> {
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
    // A writer that knows newer settings wrote it: it stays.
    if ((await readCluster(session, call))?.etag !== etag) return;
    reopened.add(id);
    const { status } = await session.write(leaseKey(id), nativeCodec.encode(revived(reading.lease, generation + 1)), object.etag, call);
    if (status !== 'written') reopened.delete(id);
  });
  return reopened.size;
}
