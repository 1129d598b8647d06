import { CLUSTER_KEY } from '../../src/core/lease/model/cluster-config.js';
import { leaseKey, MAX_NODE_IDS } from '../../src/core/lease/model/lease-state.js';
import type { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import type { Dice } from '../../test/simulation/world/dice.js';
import type { ObjectForm } from './object-form.js';
import type { VirtualTime } from './virtual-time.js';

/** What a storm finds. */
export interface ClusterShape {
  /** In tables. */
  readonly title: string;
  /** How many node ids there are for so many starters. */
  size(starters: number): number;
  /** What stands there of each id; undefined where nothing stands at all, not even the cluster's settings. */
  readonly objects: 'vacant' | 'released' | undefined;
  /** How many of the ids are held by others, who go on renewing. */
  held(starters: number): number;
}

const none = () => 0;
const asManyAsStarters = (starters: number) => starters;

export const CLUSTERS = {
  empty: { title: 'empty bucket', size: asManyAsStarters, objects: undefined, held: none },
  initialised: { title: 'after `init`', size: asManyAsStarters, objects: 'vacant', held: none },
  'just-released': { title: 'all just released', size: asManyAsStarters, objects: 'released', held: none },
  'half-full': {
    title: 'half of the ids held',
    size: (starters) => 2 * starters,
    objects: 'released',
    held: asManyAsStarters,
  },
  'few-free': {
    title: `${MAX_NODE_IDS.toLocaleString('en-US')} ids, few free`,
    size: () => MAX_NODE_IDS,
    objects: 'released',
    held: (starters) => MAX_NODE_IDS - starters,
  },
} as const satisfies Readonly<Record<string, ClusterShape>>;

export type ClusterName = keyof typeof CLUSTERS;

export interface ClusterOptions {
  readonly shape: ClusterShape;
  readonly form: ObjectForm;
  readonly starters: number;
  readonly durationMs: number;
  readonly bucket: MemoryBucket;
  readonly time: VirtualTime;
  /** Decides which ids are held. */
  readonly dice: Dice;
}

/** Holders renew in so many groups, one after the other. */
const GROUPS = 50;

/**
 * Puts a cluster into a bucket, and lets the holders of its ids renew from now on, without end. Their
 * requests take no time and are not counted.
 *
 * @returns the ids that are held
 */
export function setUp({
  shape,
  form,
  starters,
  durationMs,
  bucket,
  time,
  dice,
}: ClusterOptions): readonly number[] {
  if (shape.objects === undefined) return [];
  const size = shape.size(starters);
  const cluster = form.cluster({ size, durationMs });
  if (cluster !== undefined) bucket.create(CLUSTER_KEY, cluster.body, cluster.metadata);
  const ids = drawn(size, shape.held(starters), dice);
  const etags = new Map(ids.map((id) => [id, '']));
  const now = time.now();
  const free = shape.objects === 'vacant' ? form.vacant : form.released(now - durationMs, durationMs);
  for (let id = 0; id < size; id += 1) {
    const { body, metadata } = etags.has(id) ? form.held(id, now, durationMs, 0) : free;
    const result = bucket.create(leaseKey(id), body, metadata);
    if (result.status === 'written' && etags.has(id)) etags.set(id, result.etag);
  }
  for (let group = 0; group < GROUPS; group += 1) {
    const members = ids.filter((_, index) => index % GROUPS === group);
    void renewEach(members, (durationMs / 3) * (group / GROUPS), { form, durationMs, bucket, time }, etags);
  }
  return ids;
}

async function renewEach(
  members: readonly number[],
  firstInMs: number,
  { form, durationMs, bucket, time }: Pick<ClusterOptions, 'form' | 'durationMs' | 'bucket' | 'time'>,
  etags: Map<number, string>,
): Promise<void> {
  await time.sleep(firstInMs);
  for (let renewal = 1; members.length > 0; renewal += 1) {
    for (const id of members) {
      const { body, metadata } = form.held(id, time.now(), durationMs, renewal);
      const result = bucket.replace(leaseKey(id), body, metadata, etags.get(id) ?? '');
      // The ids are compared when the storm is over.
      if (result.status === 'written') etags.set(id, result.etag);
    }
    await time.sleep(durationMs / 3);
  }
}

/** So many different numbers below `size`. */
function drawn(size: number, count: number, dice: Dice): readonly number[] {
  const ids = Array.from({ length: size }, (_, id) => id);
  for (let i = 0; i < count; i += 1) {
    const j = i + dice.below(size - i);
    [ids[i], ids[j]] = [ids[j] as number, ids[i] as number];
  }
  return ids.slice(0, count);
}
