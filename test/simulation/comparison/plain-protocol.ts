import type { AcquireLeaseOptions } from '../../../src/core/lease/acquire/acquire-lease.js';
import { CLUSTER_DEFAULTS } from '../../../src/core/lease/model/cluster-config.js';
import type { Lease } from '../../../src/core/lease/model/lease.js';
import { leaseKey } from '../../../src/core/lease/model/lease-state.js';
import { StoreError } from '../../../src/core/store/lease-store.js';
import type { Engine } from '../engine.js';
import { PlainLease, type PlainTenure } from './plain-lease.js';
import { emptied, held, NOTHING, type PlainReading, reading } from './plain-object.js';
import { PlainStore } from './plain-store.js';

/** Where the text of the protocol can be read in two ways. */
export interface PlainReadingOfTheText {
  /**
   * What a release leaves of the version. `cleared`: nothing, as "clearing the metadata" says. `kept`: the
   * metadata's `version`, so that `nodeIdVersion = previousVersion + 1` still means something.
   */
  readonly versionAfterRelease: 'cleared' | 'kept';
}

/**
 * How long an attempt may take while acquiring, and the pause between two scans of all ids, in milliseconds.
 */
const ACQUIRE_REQUEST_MS = 4_000;
const RESCAN_MS = 1_000;
/** No store is expected to answer faster than that, however short a lease is. Milliseconds. */
const LEAST_REQUEST_MS = 1_000;

/**
 * The protocol that this project began with, written down straight from its text: every task creates the
 * objects 0 … N-1, scans them from 0, takes the first that is empty or whose `timestamp` has passed, and
 * renews. Every task goes by its own wall clock.
 *
 * Where the text is silent, it has what its authors would be expected to add: the SDK's usual retries,
 * time-outs short enough for three attempts to renew to end before the lease does, a belief that ends with
 * the written `timestamp` rather than with a failed renewal, no release of a lease that has run out, and a
 * fresh scan a second after one that found nothing.
 */
export function plainProtocol(text: PlainReadingOfTheText): Engine {
  return { acquire: (options) => acquirePlainly(withDefaults(options), text) };
}

/** A task has its settings from nowhere else: there is no `cluster.json`. */
type PlainOptions = Omit<AcquireLeaseOptions, 'nodes' | 'durationMs'> & {
  readonly nodes: number;
  readonly durationMs: number;
};

function withDefaults(options: AcquireLeaseOptions): PlainOptions {
  const { nodes = CLUSTER_DEFAULTS.nodes, durationMs = CLUSTER_DEFAULTS.durationMs } = options;
  return { ...options, nodes, durationMs };
}

interface Taken {
  readonly tenure: PlainTenure;
  readonly from: Exclude<PlainReading['from'], 'held'>;
}

async function acquirePlainly(options: PlainOptions, text: PlainReadingOfTheText): Promise<Lease> {
  const { clock, random, signal, onEvent, durationMs } = options;
  const begun = clock.monotonic();
  const store = new PlainStore(options.store, clock, random, ACQUIRE_REQUEST_MS);
  for (let id = 0; id < options.nodes; id += 1) {
    await patiently(options, () => store.write(leaseKey(id), NOTHING, undefined, signal));
  }
  const { tenure, from } = await scan(options, store, text);
  store.timeoutMs = Math.max(LEAST_REQUEST_MS, Math.min(store.timeoutMs, durationMs / 6));
  const lease = new PlainLease(tenure, store, options);
  if (signal?.aborted) {
    await lease.release();
    throw signal.reason;
  }
  const { id, version, deadline } = lease;
  onEvent?.({
    type: 'acquired',
    id,
    version,
    from,
    tookMs: clock.monotonic() - begun,
    requests: store.requests,
    deadline,
  });
  return lease;
}

/** All ids from 0 on, again and again, until one of them is ours. */
async function scan(options: PlainOptions, store: PlainStore, text: PlainReadingOfTheText): Promise<Taken> {
  const { clock, signal, onEvent } = options;
  for (;;) {
    for (let id = 0; id < options.nodes; id += 1) {
      signal?.throwIfAborted();
      try {
        const taken = await tryOne(id, options, store, text);
        if (taken !== undefined) return taken;
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        // The other ids may do better.
        if (!(error instanceof StoreError)) throw error;
      }
    }
    onEvent?.({ type: 'waiting', sleepMs: RESCAN_MS });
    await clock.sleep(RESCAN_MS, signal);
  }
}

async function tryOne(
  id: number,
  { clock, taskId, durationMs, signal }: PlainOptions,
  store: PlainStore,
  text: PlainReadingOfTheText,
): Promise<Taken | undefined> {
  const object = await store.read(leaseKey(id), signal);
  if (object === undefined) return undefined;
  const now = Math.floor(clock.now());
  const { from, version: previous } = reading(object, now);
  if (from === 'held') return undefined;
  const record = { taskId, version: previous + 1, timestamp: now + durationMs };
  // Not given up half-way: a task that is asked to end meanwhile releases what it got.
  const result = await store.write(leaseKey(id), held(record), object.etag);
  // What ran out while its reply was on the way is of no use.
  if (result.status === 'conflict' || clock.now() >= record.timestamp) return undefined;
  const vacated = text.versionAfterRelease === 'kept' ? emptied(record.version) : NOTHING;
  return { tenure: { id, record, etag: result.etag, durationMs, vacated }, from };
}

/** Without its objects the protocol cannot begin: a store that is away is waited for. */
async function patiently<T>({ clock, signal }: PlainOptions, call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (!(error instanceof StoreError)) throw error;
      await clock.sleep(RESCAN_MS, signal);
    }
  }
}
