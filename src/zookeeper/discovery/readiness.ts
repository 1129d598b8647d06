import { orAborted, timeoutSignal } from '../../core/base/abort.js';
import { NodeLeaseError, StoreUnusableError } from '../../core/base/errors.js';
import type { Lease } from '../../core/lease/model/lease.js';
import type { ClusterStatus } from '../../core/lease/operate/inspect.js';
import type { EventOptions, TimeSources } from '../client/zookeeper.js';

/** The result of the wait for readiness. `tookMs` is its length, in milliseconds. */
export type Readiness =
  | {
      readonly ready: true;
      /**
       * `vacant`, `released`, `static`: there was no predecessor, or it had ended its work. `known`: all live
       * nodes know of this tenure. `timeout`: the wait ended, and some nodes may not know of it.
       */
      readonly why: 'vacant' | 'released' | 'static' | 'known' | 'timeout';
      /**
       * The live nodes that did not know of this tenure when the leases were last read; undefined when they
       * never could be.
       */
      readonly ignorant: readonly number[] | undefined;
      readonly tookMs: number;
    }
  /** Before that the lease was lost, or released, or the caller's signal ended the wait. */
  | { readonly ready: false; readonly why: 'lost' | 'aborted'; readonly tookMs: number };

/** Events of the wait, for logs. */
export type ReadinessEvent =
  /** These live nodes do not know of this tenure yet. Reported whenever they change. */
  | { readonly type: 'waiting'; readonly ignorant: readonly number[] }
  /** The leases could not be read; tried again. */
  | { readonly type: 'inspection-failed'; readonly error: unknown };

interface ReadinessOptions extends TimeSources, EventOptions<ReadinessEvent> {
  readonly lease: Pick<Lease, 'id' | 'version' | 'signal' | 'isValid'>;
  /** The state of the lease before it was acquired; `static` for an id that is not leased. */
  readonly origin: 'vacant' | 'released' | 'expired' | 'static';
  /**
   * Reads the leases; resolves to undefined where there is no cluster. Undefined where there are no leases,
   * and so no node to wait for.
   */
  readonly leases: (() => Promise<ClusterStatus | undefined>) | undefined;
  /** How long to wait for the others, in milliseconds, 0 or more. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** From one scan to the next while the duration is not known yet, in milliseconds. */
const FIRST_POLL_MS = 1_000;
/**
 * A scan reads every lease object: this many milliseconds for each node id bound a waiting node to some 200
 * requests a second.
 */
const POLL_PER_NODE_MS = 5;

/**
 * Waits until this node may take part. After a lease that expired, other nodes may still send to its former
 * holder, and accept what that sends. So the node is ready only once every other live node has published, in
 * its lease, that it knows this version of the node id or a higher one. A node is live while it holds a lease
 * that has not expired. After a release, or for an id that was never held, there is no wait.
 *
 * Failures of the store prolong the wait, at most to the time-out. Not guaranteed: that a node which starts
 * later knows of this one, or that the others act on what they know.
 *
 * Resolves as soon as the lease is lost or `signal` aborts; after a release, at the next scan. Rejects only
 * if `leases` fails with something that is no {@link NodeLeaseError}.
 */
export async function awaitReadiness(options: ReadinessOptions): Promise<Readiness> {
  const { lease, origin, leases, clock, signal, timeoutMs } = options;
  const begun = clock.monotonic();
  const waits = origin === 'expired' && leases !== undefined && !signal?.aborted;
  const ending =
    waits &&
    timeoutSignal(clock, timeoutMs, () => new Error('the wait for readiness is over'), lease.signal, signal);
  try {
    const ignorant = ending ? await untilKnown({ ...options, leases }, ending.signal) : [];
    const tookMs = clock.monotonic() - begun;
    if (!lease.isValid()) return { ready: false, why: 'lost', tookMs };
    if (signal?.aborted) return { ready: false, why: 'aborted', tookMs };
    if (origin !== 'expired') return { ready: true, why: origin, ignorant: [], tookMs };
    return { ready: true, why: ignorant?.length === 0 ? 'known' : 'timeout', ignorant, tookMs };
  } finally {
    if (ending) ending.release();
  }
}

/**
 * Scans the leases until no node is ignorant, the lease is over, or `ending` aborts. Returns the result of
 * the last scan.
 */
async function untilKnown(
  { leases, ...options }: ReadinessOptions & { readonly leases: () => Promise<ClusterStatus | undefined> },
  ending: AbortSignal,
): Promise<readonly number[] | undefined> {
  const { lease, clock, random, onEvent } = options;
  let ignorant: readonly number[] | undefined;
  let pollMs = FIRST_POLL_MS;
  while (!ending.aborted && lease.isValid()) {
    try {
      const status = await orAborted(leases(), ending);
      if (status === undefined)
        throw new StoreUnusableError(
          'CLUSTER_MISSING',
          'the settings of the cluster are gone from the store',
        );
      pollMs = Math.max(status.cluster.durationMs / 3, status.cluster.size * POLL_PER_NODE_MS);
      const found = ignorantOf(status, lease);
      if (found.length > 0 && found.join() !== ignorant?.join())
        onEvent?.({ type: 'waiting', ignorant: found });
      ignorant = found;
      if (found.length === 0) return found;
    } catch (error) {
      if (ending.aborted) break;
      if (!(error instanceof NodeLeaseError)) throw error;
      onEvent?.({ type: 'inspection-failed', error });
    }
    // An interruption of this sleep ends the loop, too.
    await clock.sleep(pollMs * (0.75 + random.next() / 2), ending).catch(() => undefined);
  }
  return ignorant;
}

/** The live nodes other than this one that have not published that they know of it. */
function ignorantOf({ nodes }: ClusterStatus, { id, version }: ReadinessOptions['lease']) {
  return nodes
    .filter((node) => node.state === 'held' && node.id !== id && (node.knownNodes[id] ?? 0) < version)
    .map((node) => node.id);
}
