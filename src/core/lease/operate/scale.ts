import { checkArguments, checked, whole } from '../../base/arguments.js';
import { nativeCodec } from '../model/lease-codec.js';
import { leaseKey, MAX_NODE_IDS, revived } from '../model/lease-state.js';
import { readCluster, type StoredCluster } from '../session/cluster-store.js';
import { Growth } from './growth.js';
import { readingOf } from './inspect.js';
import { Retirement } from './retirement.js';
import { type ScaleOptions, type ScaleOutcome, ScaleSteps } from './scaling.js';

/**
 * Gives a cluster another number of node ids while tasks run. No object is deleted, and no version restarts.
 * The lease objects of ids that the cluster keeps are written only if unique ids become wider.
 *
 * All steps follow from the stored state, which is read again when another task has changed the settings. So
 * after an interruption at any point the next call continues. The first read decides whether the cluster
 * grows or shrinks. Several growths at once end with the greatest size, several shrinkages with the smallest.
 * The other calls end with 'superseded'.
 *
 * If bootstrap is not complete, the missing lease objects below the current size are created, too. Shrinking
 * records that bootstrap is complete.
 *
 * @throws {ConfigError} when the size is out of range; nothing has been done
 * @throws {StoreUnusableError} when a lease object is damaged and the width has to grow, when `cluster.json`
 * is unreadable, or when another program keeps a cluster there
 * @throws {StoreError}
 * @throws `signal.reason`
 */
export async function scaleCluster(options: ScaleOptions): Promise<ScaleOutcome> {
  const { size, session, clock, random } = checked(options);
  const sizes = { 'number of node ids': whole(1, MAX_NODE_IDS) };
  checkArguments({ session, clock, random, 'number of node ids': size }, sizes);
  const steps = new ScaleSteps(options);
  const cluster = await steps.read();
  if (cluster === undefined) {
    // The listing shows whether another program's cluster is there.
    await steps.list();
    return { kind: 'no-cluster' };
  }
  return cluster.config.size < size ? new Growth(steps).run(cluster) : shrink(steps, cluster);
}

/**
 * Removes the highest node ids of a cluster while tasks run:
 *
 * 1. The first write changes the size and its generation together: without permission for it nothing is done.
 * From then on no task that knows the settings takes one of these ids, and their holders learn of it.
 * 2. The lease objects beyond the size are retired (see {@link Retirement}).
 *
 * If the cluster has the size already, only step 2 is done, and retired ids below the size are reopened. If
 * bootstrap is not complete, the missing objects are created first: later an absent object counts as deleted.
 *
 * @param first the settings, of a greater size or the same
 */
async function shrink(steps: ScaleSteps, first: StoredCluster): Promise<ScaleOutcome> {
  const { size, signal, onEvent } = steps.options;
  const from = first.config.size;
  const retirement = new Retirement(steps);
  let reopened = 0;
  let begun = false;
  let known: StoredCluster | undefined = first;
  for (let unlisted = 0; ; ) {
    signal?.throwIfAborted();
    if (known === undefined) return { kind: 'no-cluster' };
    const cluster: StoredCluster = known;
    const { size: present, generation, peak, bootstrapped, idWidth } = cluster.config;
    // The other task's settings are newer.
    if (present < size || (begun && present > size)) return { kind: 'superseded', size: present };
    if (!bootstrapped) await steps.createMissing(0, peak);
    if (present > size) {
      const fewer = { size, generation: generation + 1, peak: Math.max(peak, present), bootstrapped: true };
      known = (await steps.change(cluster, fewer)) ?? (await steps.read());
      continue;
    }
    if (!begun && from > size) onEvent?.({ type: 'shrunk', from, to: size });
    begun = true;
    if (from === size) reopened += await reopen(steps, cluster);
    if ((await retirement.run(cluster)) === 'done') {
      const { created, damaged } = steps;
      const { retired, forced } = retirement;
      return {
        kind: 'scaled',
        from,
        to: size,
        idWidth,
        widened: false,
        created,
        reopened,
        retired,
        forced,
        damaged,
      };
    }
    known = await steps.read();
    // Counts listings that do not show the current settings.
    unlisted = known?.etag === cluster.etag ? unlisted + 1 : 0;
    if (unlisted > 0) await steps.pauseAfterListing(unlisted);
  }
}

/**
 * Makes ids of the cluster acquirable that are retired in its generation or a later one: no task would ever
 * acquire them. The cause is a `cluster.json` that was lost and created again, or changed by a program
 * without generations.
 *
 * An id that was retired in an earlier generation is acquirable already. If another task changes the settings meanwhile, that task does the rest.
 *
 * @returns the number of lease objects that were written
 */
async function reopen(steps: ScaleSteps, { config, etag }: StoredCluster): Promise<number> {
  const { session } = steps.options;
  const { rows } = await steps.list();
  const ids = [...rows]
    .filter(([id, { size }]) => id < config.size && size > 0 && size <= nativeCodec.tombstoneMaxBytes)
    .map(([id]) => id);
  const reopened = new Set<number>();
  await steps.onEach(ids, async (id, call) => {
    const object = await session.read(leaseKey(id), call);
    if (object === undefined) return;
    const reading = readingOf(object);
    if (reading.kind !== 'lease' || reading.lease.kind !== 'retired') return;
    // An earlier attempt of unknown outcome has not succeeded.
    reopened.delete(id);
    const { generation } = reading.lease;
    if (generation < config.generation) return;
    // A writer with newer settings wrote it: it stays.
    if ((await readCluster(session, call))?.etag !== etag) return;
    reopened.add(id);
    const { status } = await session.write(
      leaseKey(id),
      nativeCodec.encode(revived(reading.lease, generation + 1)),
      object.etag,
      call,
    );
    if (status !== 'written') reopened.delete(id);
  });
  return reopened.size;
}
