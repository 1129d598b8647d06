import { WakeUp } from '../../../core/base/abort.js';
import { AcquireTimeoutError } from '../../../core/base/errors.js';
import { checkTaskId } from '../../../core/base/host/task-id.js';
import type { Retry } from '../../../core/base/retry.js';
import { CLUSTER_NODE_ID_OFFSET, groupOf, nodeIdOf, widthOfGroup } from '../../../core/id/cluster-node-id.js';
import { detached, type Lease, type LeaseListener } from '../../../core/lease/model/lease.js';
import { harmless, type LeaseTracer } from '../../../core/lease/model/lease-tracer.js';
import { whileStoreIsAway } from '../../../core/lease/session/store-retry.js';
import { BoundSession } from '../../client/bound-session.js';
import { catchUp } from '../../client/retry.js';
import { SessionDeadline } from '../../client/session-deadline.js';
import {
  isFault,
  type MultiOperation,
  type Watch,
  type Znode,
  type ZooKeeperContext,
  ZooKeeperError,
} from '../../client/zookeeper.js';
import { entryPath, groupPath, NODES_PATH } from '../layout.js';
import { findFreeIds, GROUP_SIZE, keepGroups, MAX_GROUPS } from './id-groups.js';
import { type Claimer, claimData, type IdTenure, isOurs, versionOf } from './id-znodes.js';
import { SessionLease } from './session-lease.js';
import { type BarrierState, WidthBarrier } from './width-barrier.js';

/**
 * Options of {@link acquireFromZooKeeper}. The id goes with the session of the client. The caller closes that
 * when the work has ended, also after a loss: that frees the id.
 */
interface AcquireFromZooKeeperOptions extends ZooKeeperContext {
  /** Names this run of this process; 1 … 128 printable ASCII characters without spaces. */
  readonly taskId: string;
  /**
   * How many groups of 256 ids there may be, 1 … 256: bounds the bits that a node id takes. The same for all.
   * @default 256
   */
  readonly maxGroups?: number | undefined;
  /** Gives up waiting. Has no effect once the id is held. */
  readonly signal?: AbortSignal | undefined;
  /** Further fields of the znode's JSON, such as `address`. */
  readonly data?: Readonly<Record<string, unknown>> | undefined;
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
  return tracer.span('nodelease.acquire', { 'nodelease.task_id': options.taskId }, async (note) => {
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
  });
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

/** How long to wait for a change, where no id is free, before another scan all the same, in milliseconds. */
const MAX_WAIT_MS = 30_000;
/** The same where an id is free, and others do not make wide enough ids for it yet. */
const BARRIER_WAIT_MS = 1_000;
/** The least time between two scans where no id is free, in milliseconds. */
const MIN_PAUSE_MS = 100;
/** With every lost race a task chooses among four times as many of the lowest free ids. */
const SPREAD = 4;
/** Lost races after which the scan is out of date. */
const CLAIMS_PER_SCAN = 2;

/** Finds a free node id and claims it, in one session. One use each. */
class IdAllocator {
  readonly #claimer: Claimer;
  readonly #barrier: WidthBarrier;
  /** While ZooKeeper is away. */
  readonly #retry: Retry;
  readonly #watches = new Map<string, Watch>();
  /** Something that is watched has changed. */
  readonly #wakeUp = new WakeUp();

  /**
   * @param timeoutMs the time-out that the servers granted to the session
   * @param until when to stop waiting, on the monotonic clock
   */
  constructor(
    private readonly options: AcquireFromZooKeeperOptions,
    private readonly session: BoundSession,
    private readonly timeoutMs: number,
    private readonly until: number,
    private readonly emit: LeaseListener,
  ) {
    const { clock, random, signal, taskId, data = {} } = options;
    this.#claimer = { taskId, nonce: random.hex(12), fields: data };
    this.#barrier = new WidthBarrier(session, timeoutMs);
    this.#retry = whileStoreIsAway({ clock, random, signal, until, emit }, (error) =>
      isFault(error, 'connection-loss', 'timeout'),
    );
  }

  /**
   * Claims the lowest free id of the first group that is not full, or, after a lost race, one of the lowest
   * ones at random. Waits if none is free. When it throws, a claim of ours may exist, or still be under way:
   * it ends with the session.
   *
   * @returns the tenure, and the claim as it was made, which does not contain the version yet
   * @throws {AcquireTimeoutError} when no id became free in time
   * @throws {ZooKeeperError} `session-expired` when the session ends: then no claim of ours is left;
   * `refused` when there is no usable version
   * @throws `signal.reason`
   */
  async allocate(): Promise<{ tenure: IdTenure; claim: Znode }> {
    const { session } = this;
    const { zookeeper, clock, random, maxGroups = MAX_GROUPS } = this.options;
    const forgetSession = zookeeper.onState(this.#wakeUp.wake);
    try {
      for (let choices = 1; ; ) {
        const { groups, free } = await this.#retry((call) => findFreeIds(session, maxGroups, call));
        const [lowest] = free;
        if (lowest === undefined) {
          await this.#waitForChange(groups);
          continue;
        }
        const group = groupOf(lowest);
        // Before its ids are claimed the group exists, so that all tasks learn how wide ids are now.
        if (!groups.has(group)) await this.#retry((call) => session.ensurePath(groupPath(group), call));
        const barrier = await this.#retry((call) => this.#barrier.tryOpen(group, call));
        if (!barrier.open) {
          await this.#waitForChange(groups, barrier.why);
          continue;
        }
        // Enough bits for all ids of the groups.
        const idWidth = widthOfGroup(Math.max(group, ...groups));
        for (let claims = 0; claims < CLAIMS_PER_SCAN && free.length > 0; claims += 1) {
          const [id = lowest] = free.splice(Math.floor(random.next() * Math.min(choices, free.length)), 1);
          const claimed = await this.#claim(id, idWidth, barrier);
          if (claimed !== undefined) return claimed;
          choices *= SPREAD;
        }
      }
    } finally {
      forgetSession();
      for (const watch of this.#watches.values()) watch.close();
      await this.#barrier.leave({ clock, random });
    }
  }

  /**
   * Undefined when another task won. After an unknown outcome the claim is read, so that no second id is
   * claimed in addition to the first.
   */
  async #claim(id: number, idWidth: number, { mark, floor }: BarrierState & { open: true }) {
    const { zookeeper, clock, signal } = this.options;
    const { session, timeoutMs } = this;
    const claimer = this.#claimer;
    const nodeId = nodeIdOf(id);
    const path = entryPath({ kind: 'node' }, nodeId);
    const operations: MultiOperation[] = [
      { type: 'create', path, data: claimData(claimer, { nodeId }), mode: 'ephemeral' },
    ];
    if (mark !== undefined) operations.push({ type: 'check', ...mark });
    const sentAt = clock.monotonic();
    try {
      await session.multi(operations, { signal });
    } catch (error) {
      if (isFault(error, 'node-exists', 'no-node', 'bad-version')) return undefined;
      if (!isFault(error, 'connection-loss', 'timeout')) throw error;
      // The next server may lag behind the claim.
      await this.#retry((call) => catchUp(session, path, call));
    }
    const deadline = new SessionDeadline(timeoutMs, (at) => session.heardBy(at));
    // Reads of a session come after its answered writes, so this is certain.
    const claim = await this.#retry((call) => session.read(path, call));
    if (claim === undefined || !isOurs(claim, session.sessionId, claimer.nonce)) return undefined;
    deadline.answered(sentAt);
    const giveUpAt = Math.max(this.until, sentAt + timeoutMs);
    // After a pause of this process the leader may not have heard of the session for long.
    while (!deadline.isFresh(clock.monotonic())) {
      const sleepMs = deadline.beatMs;
      if (clock.monotonic() + sleepMs >= giveUpAt)
        throw new AcquireTimeoutError(
          `${zookeeper.description}: node id ${nodeId} was claimed, but no heartbeat is answered soon enough to rely on it`,
        );
      this.emit({ type: 'waiting', sleepMs, why: 'it is not certain yet that the servers keep the session' });
      await clock.sleep(sleepMs, signal);
      const beatAt = clock.monotonic();
      try {
        await this.#retry((call) => session.multi([{ type: 'check', path }], call));
      } catch (error) {
        if (isFault(error, 'no-node')) return undefined;
        throw error;
      }
      deadline.answered(beatAt);
    }
    const version = versionOf(path, claim.stat.createdZxid);
    return { tenure: { nodeId, path, version, idWidth, floor, claimer, session, deadline }, claim };
  }

  /**
   * Waits until an id may have become free, or may be claimed.
   *
   * @param why a free id may not be claimed; undefined where none is free
   */
  async #waitForChange(groups: ReadonlySet<number>, why?: string) {
    const { until, emit } = this;
    const { zookeeper, clock, random, signal, maxGroups = MAX_GROUPS } = this.options;
    const now = clock.monotonic();
    if (now >= until) {
      const count = GROUP_SIZE * maxGroups - CLUSTER_NODE_ID_OFFSET;
      const problem =
        why === undefined
          ? `none of the ${count} node ids became free in time`
          : `no node id could be acquired in time: ${why}`;
      throw new AcquireTimeoutError(`${zookeeper.description}: ${problem}`);
    }
    // The first report of a new watch counts as a change: the earlier scan did not see what happened until
    // then.
    for (const path of [NODES_PATH, ...[...groups].map(groupPath)]) {
      if (!this.#watches.has(path)) this.#watches.set(path, zookeeper.watchChildren(path, this.#wakeUp.wake));
    }
    const sleepMs = Math.min(
      (why === undefined ? MAX_WAIT_MS : BARRIER_WAIT_MS) * (1 - random.next() / 4),
      until - now,
    );
    emit({ type: 'waiting', sleepMs, ...(why !== undefined && { why }) });
    // In a busy fleet something changes all the time.
    const pauseMs = Math.min(MIN_PAUSE_MS, sleepMs);
    await clock.sleep(pauseMs, signal);
    await this.#wakeUp.wait({ clock, timeoutMs: sleepMs - pauseMs }, signal);
  }
}
