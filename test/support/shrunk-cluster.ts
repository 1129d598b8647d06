import { CLUSTER_KEY, decodeCluster, encodeCluster } from '../../src/core/lease/model/cluster-config.js';
import type { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';

/**
 * Makes the settings declare fewer node ids, as the first step of a scale-down does: holders of others learn
 * of it at their next renewals.
 */
export function shrinkSettings(bucket: MemoryBucket, size: number): void {
  const object = bucket.read(CLUSTER_KEY);
  if (object === undefined) throw new Error('there is no cluster yet');
  const { generation, ...config } = decodeCluster(object.body);
  const body = encodeCluster({ ...config, size, generation: generation + 1 }, object.body);
  if (bucket.replace(CLUSTER_KEY, body, {}, object.etag).status !== 'written')
    throw new Error('the settings have changed meanwhile');
}
