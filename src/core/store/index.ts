// The store contract, what opens a store, and what proves that one keeps its word: `nodelease/store`.

export type {
  HistoryOptions,
  Interval,
  LeaseStore,
  ListedObject,
  Listing,
  ListingPage,
  ListOptions,
  ObjectChange,
  ObjectMetadata,
  PastObject,
  StoreCallOptions,
  StoredObject,
  StoreFact,
  StoreFault,
  WriteOptions,
  WriteResult,
} from './lease-store.js';
export { StoreError } from './lease-store.js';
export { observedAge } from './observed-age.js';
export { type OpenStoreOptions, openStore } from './open-store.js';
export { type ProbeOptions, probeStore } from './probe/probe.js';
export type { ProbeCheck, ProbeCheckId, ProbeReport, ProbeStatus } from './probe/probe-report.js';
export type { StoreAccess } from './stores.js';
