import { checkTaskId } from '../../../core/base/host/task-id.js';
import { detached, type Lease, type LeaseListener } from '../../../core/lease/model/lease.js';
import { harmless, type LeaseTracer, type NoteAttributes } from '../../../core/lease/model/lease-tracer.js';
import { BoundSession } from '../../client/bound-session.js';
import { isFault, ZooKeeperError } from '../../client/zookeeper.js';
import { type ClaimOptions, IdAllocator } from './id-allocator.js';
import { keepGroups, MAX_GROUPS } from './id-groups.js';
import { SessionLease } from './session-lease.js';

/** Options of {@link acquireFromZooKeeper}. */
interface AcquireFromZooKeeperOptions extends ClaimOptions {
  /** How long to wait for a free id, in milliseconds, 0 for not at all. @default no limit */
  readonly acquireTimeoutMs?: number | undefined;
  /**
   * Receives the events of a lease. `from` is always `vacant`, since ZooKeeper does not show how an earlier
   * tenure ended.
   */
  readonly onEvent?: LeaseListener | undefined;
  /**
   * Sees how long acquiring, each heartbeat and the release take. One that throws does no harm.
   * @default none
   */
  readonly tracer?: LeaseTracer | undefined;
}

/**
 * How long ZooKeeper may stay silent before the first session, in milliseconds, unless the caller waits longer
 * for an id: a wrong address should be known soon.
 */
const FIRST_CONTACT_MS = 8_000;

/**
 * Acquires a node id from ZooKeeper alone, and keeps it as long as the session lives:
 * docs/design/allocation.md. When it rejects or the lease is lost, its znodes end with the session.
 *
 * @throws {ConfigError} when `taskId` is out of range
 * @throws {ZooKeeperError} when ZooKeeper cannot be reached, or denies access
 * @throws {AcquireTimeoutError} when no id became free in time
 * @throws `signal.reason` when `signal` aborts first
 */
export async function acquireFromZooKeeper(options: AcquireFromZooKeeperOptions): Promise<Lease> {
  checkTaskId(options.taskId);
  const tracer = harmless(options.tracer);
  return tracer.span('nodelease.acquire', { 'nodelease.task_id': options.taskId }, (note) =>
    acquire(options, tracer, note),
  );
}

async function acquire(
  options: AcquireFromZooKeeperOptions,
  tracer: LeaseTracer,
  note: NoteAttributes,
): Promise<Lease> {
  const { zookeeper, clock, random, signal, maxGroups = MAX_GROUPS } = options;
  const begun = clock.monotonic();
  const emit = detached(options.onEvent);
  try {
    const { tenure, claim } = await allocate(options, emit);
    const holding = { zookeeper, clock, random, emit, tracer };
    if (signal?.aborted) {
      await new SessionLease(tenure, holding).release();
      throw signal.reason;
    }
    const { nodeId: id, version, deadline } = tenure;
    const { requests } = tenure.session;
    note({ 'nodelease.node_id': id, 'nodelease.version': version, 'nodelease.requests': requests });
    emit({
      type: 'acquired',
      id,
      version,
      from: 'vacant',
      tookMs: clock.monotonic() - begun,
      requests,
      deadline: deadline.until,
    });
    const lease = new SessionLease(tenure, holding);
    await lease.announce(claim);
    lease.addChore((ending) => keepGroups(tenure, maxGroups, { clock, random, ending }));
    return lease;
  } catch (error) {
    if (error instanceof ZooKeeperError && signal?.aborted) throw signal.reason;
    throw error;
  }
}

/** In as many sessions as it takes. */
async function allocate(options: AcquireFromZooKeeperOptions, emit: LeaseListener) {
  const { zookeeper, clock, signal, acquireTimeoutMs = Number.POSITIVE_INFINITY } = options;
  const until = clock.monotonic() + acquireTimeoutMs;
  const isLimited = Number.isFinite(acquireTimeoutMs);
  let session: BoundSession | undefined;
  let waitMs = isLimited ? Math.max(FIRST_CONTACT_MS, acquireTimeoutMs) : FIRST_CONTACT_MS;
  for (; ; waitMs = until - clock.monotonic()) {
    const { sessionId, timeoutMs } = await zookeeper.whenConnected({ timeoutMs: waitMs, signal });
    session = new BoundSession(zookeeper, sessionId, session?.requests);
    try {
      return await new IdAllocator(options, session, timeoutMs, until, emit).allocate();
    } catch (error) {
      // Nothing of ours is left with a session that has ended: begin again in the next one.
      if (!isFault(error, 'session-expired') || clock.monotonic() >= until) throw error;
      emit({ type: 'store-failed', error, sleepMs: 0 });
    }
  }
}
