// Unique 64-bit ids: layouts, the generator, formats and decoding.

export { CLUSTER_NODE_ID_OFFSET, clusterNodeIdOf, nodeIdOf } from './cluster-node-id.js';
export { formatId, type IdFormat, parseId } from './id-format.js';
export {
  cluster16,
  type DecodedId,
  decodeId,
  type IdLayout,
  type IdLayoutOptions,
  idLayout,
  idsPerMs,
  snowflake,
  TWITTER_EPOCH_MS,
} from './id-layout.js';
export { IdsExhaustedError, type IdTime } from './id-time.js';
export { type UniqueIdsOptions, uniqueIds } from './lease-ids.js';
export { type StandaloneIdsOptions, standaloneIds } from './standalone-ids.js';
export { UniqueIdGenerator, type UniqueIdGeneratorOptions } from './unique-id-generator.js';
