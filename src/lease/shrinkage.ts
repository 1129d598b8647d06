import type { StoredCluster } from './cluster-store.js';
import { reopen } from './reopening.js';
import { Retirement } from './retirement.js';
import type { ScaleSteps } from './scale-steps.js';
import type { ScaleOutcome } from './scaling.js';

/**
 * Takes node ids away from a cluster, the highest ones, with running tasks on it:
 *
 * 1. The size and its generation are changed together, by the first write: who may not do that has done nothing. From then on nobody who knows
 *    the settings takes one of these ids, and their holders learn of it.
 * 2. What stands beyond the size is retired (see {@link Retirement}).
 *
 * Where the cluster has the size already, only what is left to do is done, and ids that it has are acquirable again although tombstones say
 * otherwise (see {@link reopen}). Where bootstrap is not complete, the missing objects are created
 * first: what is absent could not be told from what was deleted once the cluster has forgotten how far it had got.
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
      // Somebody else's word is newer than ours.
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
