import type { Clock, RandomSource } from '../../base/clock.js';
import { ConfigError } from '../../base/errors.js';
import { sleepUntil } from '../../base/sleep-until.js';
import { checkTaskId } from '../../base/task-id.js';
import { clusterNodeIdOf, indexOf } from '../../id/cluster-node-id.js';
import { detached, type Lease, type LeaseListener } from '../../lease/model/lease.js';
import { harmless, type LeaseTracer, type NoteAttributes } from '../../lease/model/lease-tracer.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import { type ClaimedId, IdAllocator } from './id-allocator.js';
import type { IdTenure } from './id-claim.js';
import { GROW_AT, MAX_GROUPS, tendGroups } from './id-groups.js';
import { SessionLease } from './session-lease.js';

/** What it needs to acquire a node id from ZooKeeper alone. */
export interface AcquireFromZooKeeperOptions {
  /**
   * Whose session the id goes with. It stays the caller's, to be closed only when the work has ended, after `release()`, and also after a
   * loss: closing it frees the id at once.
   */
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Names this run of this process; 1 … 128 printable ASCII characters without spaces. */
  readonly taskId: string;
  /** How long to wait for a free id, in milliseconds, 0 for not at all. @default no limit */
  readonly acquireTimeoutMs?: number | undefined;
  /** How many groups of 256 ids there may be, 1 … 256: bounds the bits that a node id takes. The same for all. @default 256 */
  readonly maxGroups?: number | undefined;
  /** Gives up waiting. Has no effect once the id is held. */
  readonly signal?: AbortSignal | undefined;
  /** Gets the events of a lease; `from` is always `vacant`, since ZooKeeper does not tell how an earlier tenure ended. */
  readonly onEvent?: LeaseListener | undefined;
  /** Sees how long acquiring, each heartbeat and the release take. One that throws does no harm. @default none */
  readonly tracer?: LeaseTracer | undefined;
  /** Further fields of the znode's JSON, such as `address`. */
  readonly data?: Readonly<Record<string, unknown>> | undefined;
}

/** How long ZooKeeper may stay silent before the first session, in milliseconds: a wrong address should be known soon. */
const FIRST_CONTACT_MS = 8_000;
/** How often a holder looks whether a group is missing or of no use, on the average, in milliseconds. */
const TEND_EVERY_MS = 60_000;
/**
 * Acquires a node id from ZooKeeper alone, and keeps it as long as the session lives: the first free id of the first group that is not
 * full, claimed by an ephemeral znode, `nodes/<GG>/<II>`. The same handle as for a lease in a store, with these differences:
 *
 * - the id is free for others as soon as the session ends, which the servers decide: the deadline is the time until which they cannot have
 *   ended it, at most half of the session's time-out ahead;
 * - `version` is ZooKeeper's number of the transaction that made the znode: greater at every new tenure, of any id;
 * - when it rejects or is lost, what stands in the tree goes with the session.
 *
 * @throws {ConfigError} when an option is out of range
 * @throws {ZooKeeperError} when ZooKeeper cannot be reached, or denies access
 * @throws {AcquireTimeoutError} when no id became free in time
 * @throws `signal.reason` when `signal` aborts first
 */
export async function acquireFromZooKeeper(options: AcquireFromZooKeeperOptions): Promise<Lease> {
  const { taskId, maxGroups = MAX_GROUPS } = options;
  checkTaskId(taskId);
  if (!Number.isInteger(maxGroups) || maxGroups < 1 || maxGroups > MAX_GROUPS) {
    throw new ConfigError('maxGroups', maxGroups, `a whole number from 1 to ${MAX_GROUPS}`);
  }
  const tracer = harmless(options.tracer);
  return tracer.span('nodelease.acquire', { 'nodelease.task_id': taskId }, (note) => acquire({ ...options, maxGroups }, tracer, note));
}

type Options = AcquireFromZooKeeperOptions & { readonly maxGroups: number };

async function acquire(options: Options, tracer: LeaseTracer, note: NoteAttributes): Promise<Lease> {
  const { zookeeper, clock, random, signal, maxGroups } = options;
  const begun = clock.monotonic();
  const emit = detached(options.onEvent);
  try {
    const { tenure, claim, earlierRequests } = await allocate(options, emit);
    const holding = { zookeeper, clock, random, emit, tracer };
    if (signal?.aborted) {
      await new SessionLease(tenure, holding).release();
      throw signal.reason;
    }
    const { nodeId: id, version, deadline } = tenure;
    const requests = earlierRequests + tenure.session.requests;
    note({ 'nodelease.node_id': id, 'nodelease.version': version, 'nodelease.requests': requests });
    emit({ type: 'acquired', id, version, from: 'vacant', tookMs: clock.monotonic() - begun, requests, deadline: deadline.until });
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
async function allocate(options: Options, emit: LeaseListener): Promise<ClaimedId & { readonly earlierRequests: number }> {
  const { zookeeper, clock, signal, acquireTimeoutMs = Number.POSITIVE_INFINITY, data = {} } = options;
  const until = clock.monotonic() + acquireTimeoutMs;
  let earlierRequests = 0;
  for (let waitMs = FIRST_CONTACT_MS; ; waitMs = until - clock.monotonic()) {
    const { sessionId, timeoutMs } = await zookeeper.whenConnected({ timeoutMs: waitMs, signal });
    const allocator = new IdAllocator({ ...options, fields: data, emit, until }, sessionId, timeoutMs);
    try {
      return { ...(await allocator.allocate()), earlierRequests };
    } catch (error) {
      // Nothing of ours is left with a session that has ended: begin again in the next one.
      if (!isFault(error, 'session-expired') || clock.monotonic() >= until) throw error;
      emit({ type: 'store-failed', error, sleepMs: 0 });
      earlierRequests += allocator.requests;
    }
  }
}

/**
 * Makes the next group ahead of need, and removes those that are of no use any more, for as long as the tenure lasts. A group that is missing all the
 * same is made by the task that needs it, and one too many does no harm.
 */
async function keepGroups(
  { nodeId, session }: IdTenure,
  maxGroups: number,
  { clock, random, ending }: Pick<Options, 'clock' | 'random'> & { readonly ending: AbortSignal },
): Promise<void> {
  for (let due = indexOf(clusterNodeIdOf(nodeId)) >= GROW_AT; !ending.aborted; due = true) {
    try {
      if (due) await tendGroups(session, maxGroups, { signal: ending });
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
    }
    // Spread out, so that tasks that started together do not all look at once. Only the end of the tenure interrupts it.
    await sleepUntil(clock, clock.monotonic() + TEND_EVERY_MS * (0.5 + random.next()), ending).catch(() => undefined);
  }
}
