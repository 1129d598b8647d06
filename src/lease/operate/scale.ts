import { ConfigError } from '../../base/errors.js';
import { MAX_NODE_IDS } from '../model/lease-state.js';
import { Growth } from './growth.js';
import { ScaleSteps } from './scale-steps.js';
import type { ScaleOptions, ScaleOutcome } from './scaling.js';
import { Shrinkage } from './shrinkage.js';

export type { DamagedLease, RetiringHolder, ScaleEvent, ScaleOptions, ScaleOutcome } from './scaling.js';

/**
 * Gives a cluster another number of node ids, with running tasks on it. Nothing is deleted, no version begins anew, and the lease objects of
 * ids that the cluster keeps are written only where unique ids become wider.
 *
 * All follows from what is stored, which is read anew when another task has changed the settings: interrupted anywhere, and called again, it goes
 * on. The first read decides whether it grows or shrinks: several growths at once end with the greatest size, several shrinkages with the
 * smallest, and the others end with 'superseded'.
 *
 * Where bootstrap is not complete the missing lease objects below the present size are created as well. Shrinking records that it is complete.
 *
 * @throws {ConfigError} when the size is out of range; nothing has been done
 * @throws {StoreUnusableError} when a lease object is damaged and the width has to grow, when `cluster.json` cannot be understood, or when another
 *   program keeps a cluster there
 * @throws {StoreError}
 * @throws `signal.reason`
 */
export async function scaleCluster(options: ScaleOptions): Promise<ScaleOutcome> {
  const { size } = options;
  if (!Number.isSafeInteger(size) || size < 1 || size > MAX_NODE_IDS) {
    throw new ConfigError('number of node ids', size, `a whole number from 1 to ${MAX_NODE_IDS}`);
  }
  const steps = new ScaleSteps(options);
  const cluster = await steps.read();
  if (cluster === undefined) {
    // It tells whether another program's cluster is there.
    await steps.list();
    return { kind: 'no-cluster' };
  }
  return cluster.config.size < size ? new Growth(steps).run(cluster) : new Shrinkage(steps).run(cluster);
}
