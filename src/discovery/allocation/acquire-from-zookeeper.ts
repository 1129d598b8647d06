import type { Clock, RandomSource } from '../../clock.js';
import { ConfigError } from '../../errors.js';
import { clusterNodeIdOf, indexOf } from '../../id/cluster-node-id.js';
import { checkTaskId, detached } from '../../lease/caller.js';
import type { Lease, LeaseListener } from '../../lease/lease.js';
import { harmless, type LeaseTracer, type NoteAttributes } from '../../lease/lease-tracer.js';
import { sleepUntil } from '../../lease/sleep-until.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import type { BoundCall, BoundSession } from './bound-session.js';
import { IdAllocator } from './id-allocator.js';
import type { IdTenure } from './id-claim.js';
import { GROW_AT_INDEX, tendGroups } from './id-groups.js';
import { SessionLease } from './session-lease.js';
import { MOST_GROUPS } from './taken-ids.js';

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
/** Every holder looks about this often whether a group is missing or of no use, in milliseconds. */
const TEND_EVERY_MS = 60_000;
/** How long such a look may take at the end of a tenure, in milliseconds. */
const LAST_LOOK_MS = 1_000;

/**
 * Acquires a node id from ZooKeeper alone, and keeps it as long as the session lives: the first free id of the first group that is not
 * full, claimed by an ephemeral znode, `nodes/<GG>/<II>` (seed 000). The same handle as for a lease in a store, with these differences:
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
  const { clock, taskId, maxGroups = MOST_GROUPS } = options;
  checkTaskId(taskId);
  if (!Number.isInteger(maxGroups) || maxGroups < 1 || maxGroups > MOST_GROUPS) {
    throw new ConfigError('maxGroups', maxGroups, `a whole number from 1 to ${MOST_GROUPS}`);
  }
  const begun = clock.monotonic();
  const tracer = harmless(options.tracer);
  return tracer.span('nodelease.acquire', { 'nodelease.task_id': taskId }, (note) => acquire(options, { begun, maxGroups, tracer, note }));
}

/** An acquisition that is under way. */
interface Beginning {
  readonly begun: number;
  readonly maxGroups: number;
  readonly tracer: LeaseTracer;
  readonly note: NoteAttributes;
}

async function acquire(options: AcquireFromZooKeeperOptions, { begun, maxGroups, tracer, note }: Beginning): Promise<Lease> {
  const { zookeeper, clock, random, signal } = options;
  const emit = detached(options.onEvent);
  try {
    const { tenure, requests } = await allocate(options, emit, begun);
    // The id that is released may have been the last one that needed its group, or the group after it.
    const onReleased = () => tend(tenure.session, maxGroups, { timeoutMs: LAST_LOOK_MS });
    const lease = new SessionLease(tenure, { zookeeper, clock, random, emit, tracer, onReleased });
    if (signal?.aborted) {
      await lease.release();
      throw signal.reason;
    }
    const { id, version, deadline } = lease;
    note({ 'nodelease.node_id': id, 'nodelease.version': version, 'nodelease.requests': requests });
    emit({ type: 'acquired', id, version, from: 'vacant', tookMs: clock.monotonic() - begun, requests, deadline });
    lease.addChore((ending) => tendForEver(options, tenure, maxGroups, ending));
    return lease;
  } catch (error) {
    if (error instanceof ZooKeeperError && signal?.aborted) throw signal.reason;
    throw error;
  }
}

/** In as many sessions as it takes. */
async function allocate(
  options: AcquireFromZooKeeperOptions,
  emit: LeaseListener,
  begun: number,
): Promise<{ readonly tenure: IdTenure; readonly requests: number }> {
  const { zookeeper, clock, random, taskId, signal, acquireTimeoutMs, data = {}, maxGroups = MOST_GROUPS } = options;
  const until = acquireTimeoutMs === undefined ? Number.POSITIVE_INFINITY : begun + acquireTimeoutMs;
  let requests = 0;
  for (let patienceMs = FIRST_CONTACT_MS; ; patienceMs = until - clock.monotonic()) {
    const { sessionId, timeoutMs } = await zookeeper.whenConnected({ timeoutMs: patienceMs, signal });
    const settings = { zookeeper, clock, random, taskId, fields: data, maxGroups, emit, until, signal };
    const allocator = new IdAllocator(settings, sessionId, timeoutMs);
    try {
      const tenure = await allocator.allocate();
      return { tenure, requests: requests + allocator.requests };
    } catch (error) {
      // Nothing of ours is left with a session that has ended: begin again in the next one.
      if (!isFault(error, 'session-expired') || clock.monotonic() >= until) throw error;
      emit({ type: 'store-failed', error, sleepMs: 0 });
      requests += allocator.requests;
    }
  }
}

/** Makes the next group ahead of need, and removes those that have become useless. */
async function tendForEver(
  { clock, random }: AcquireFromZooKeeperOptions,
  { nodeId, session }: IdTenure,
  maxGroups: number,
  ending: AbortSignal,
): Promise<void> {
  let due = indexOf(clusterNodeIdOf(nodeId)) >= GROW_AT_INDEX;
  try {
    for (;;) {
      if (due) await tend(session, maxGroups, { signal: ending });
      due = true;
      // Spread out, so that those who started together do not all look at once.
      await sleepUntil(clock, clock.monotonic() + TEND_EVERY_MS * (0.5 + random.next()), ending);
    }
  } catch (error) {
    if (!ending.aborted) throw error;
  }
}

/** A group that is missing all the same is made by whoever needs it, and one too many does no harm; what becomes of the session, the lease says. */
async function tend(session: BoundSession, maxGroups: number, call: BoundCall): Promise<void> {
  try {
    await tendGroups(session, maxGroups, call);
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error;
  }
}
