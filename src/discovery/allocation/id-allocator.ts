import { anySignal } from '../../base/abort.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import { AcquireTimeoutError } from '../../base/errors.js';
import { CLUSTER_NODE_ID_OFFSET, groupOf, nodeIdOf, widthOfGroup } from '../../id/cluster-node-id.js';
import type { LeaseListener } from '../../lease/model/lease.js';
import { retry } from '../../lease/session/retry.js';
import type { MultiOperation, Watch, Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import { groupPath, NODES_PATH } from '../tree-paths.js';
import { BoundSession } from './bound-session.js';
import { type Claimer, claimData, claimPath, type IdTenure, isOurs, versionOf } from './id-claim.js';
import { findFreeIds, GROUP_SIZE } from './id-groups.js';
import { SessionDeadline } from './session-deadline.js';
import { type BarrierState, WidthBarrier } from './width-barrier.js';

export interface IdAllocatorOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly taskId: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly maxGroups: number;
  readonly emit: LeaseListener;
  /** When to stop waiting, on the monotonic clock. */
  readonly until: number;
  readonly signal?: AbortSignal | undefined;
}

/** A node id that has just been claimed. */
export interface ClaimedId {
  readonly tenure: IdTenure;
  /** The claim as it stands, which does not tell the version yet. */
  readonly claim: Znode;
}

/** First and longest pause while ZooKeeper is away, in milliseconds. */
const RETRY_MS = { first: 100, max: 2_000 };
/** How long to wait for a change, where no id is free, before another scan all the same, in milliseconds. */
const MAX_WAIT_MS = 30_000;
/** The same where an id is free, and others do not make wide enough ids for it yet. */
const BARRIER_WAIT_MS = 1_000;
/** The least time between two scans where no id is free, in milliseconds. */
const MIN_PAUSE_MS = 100;
/** With every race that a task loses, it chooses among so many times as many of the lowest free ids. */
const SPREAD = 4;
/** After so many lost races the scan is out of date. */
const CLAIMS_PER_SCAN = 2;
/** How long a call may take that only tidies up what the end of the session removes as well, in milliseconds. */
const TIDY_TIMEOUT_MS = 1_000;

/** Finds a free node id and claims it, in one session. One use each. */
export class IdAllocator {
  readonly #session: BoundSession;
  readonly #claimer: Claimer;
  readonly #barrier: WidthBarrier;
  readonly #watches = new Map<string, Watch>();
  /** Aborts when something that is watched has changed. */
  #change = new AbortController();

  /** @param timeoutMs what the servers granted to the session */
  constructor(
    private readonly options: IdAllocatorOptions,
    sessionId: string,
    private readonly timeoutMs: number,
  ) {
    const { zookeeper, random, taskId, fields } = options;
    this.#session = new BoundSession(zookeeper, sessionId);
    this.#claimer = { taskId, nonce: random.hex(12), fields };
    this.#barrier = new WidthBarrier(this.#session, timeoutMs);
  }

  /** The calls made for it so far. */
  get requests(): number {
    return this.#session.requests;
  }

  /**
   * Claims the lowest free id of the first group that is not full, or, once a race was lost, one of the lowest ones at random. Waits where none is free.
   *
   * When it throws, a claim of ours may still be under way: it goes with the session.
   *
   * @throws {AcquireTimeoutError} when none became free in time
   * @throws {ZooKeeperError} `session-expired` when the session ends: then nothing of ours is left
   * @throws `signal.reason`
   */
  async allocate(): Promise<ClaimedId> {
    const { zookeeper, random, maxGroups, signal } = this.options;
    const forgetSession = zookeeper.onState(() => this.#change.abort());
    try {
      for (let choices = 1; ; ) {
        signal?.throwIfAborted();
        const { groups, free } = await this.#retrying((call) => findFreeIds(this.#session, maxGroups, call));
        const [lowest] = free;
        if (lowest === undefined) {
          await this.#waitForChange(groups);
          continue;
        }
        const barrier = await this.#retrying((call) => this.#barrier.look(groupOf(lowest), call));
        if (!barrier.open) {
          await this.#waitForChange(groups, barrier);
          continue;
        }
        for (let claims = 0; claims < CLAIMS_PER_SCAN && free.length > 0; claims += 1) {
          const [id = lowest] = free.splice(Math.floor(random.next() * Math.min(choices, free.length)), 1);
          const claimed = await this.#claim(id, groups, barrier);
          if (claimed !== undefined) return claimed;
          choices *= SPREAD;
        }
      }
    } finally {
      forgetSession();
      for (const watch of this.#watches.values()) watch.close();
      await this.#tidy(() => this.#barrier.leave({ timeoutMs: TIDY_TIMEOUT_MS }));
    }
  }

  /** Undefined when another task was faster. */
  async #claim(id: number, groups: ReadonlySet<number>, { mark, floor }: BarrierState & { open: true }): Promise<ClaimedId | undefined> {
    const { clock } = this.options;
    const session = this.#session;
    const group = groupOf(id);
    // Before its ids are claimed the group exists, so that all tasks learn how wide ids are now.
    if (!groups.has(group)) await this.#retrying((call) => session.ensurePath(groupPath(group), call));
    const sentAt = clock.monotonic();
    const claim = await this.#create(id, mark);
    if (claim === undefined) return undefined;
    const deadline = new SessionDeadline(this.timeoutMs);
    deadline.answered(sentAt, clock.monotonic());
    const path = claimPath(id);
    try {
      const version = versionOf(path, claim.stat.createdZxid);
      // As many bits as tell all ids of the groups apart.
      const idWidth = widthOfGroup(Math.max(group, ...groups));
      const tenure = { nodeId: nodeIdOf(id), path, version, idWidth, floor, claimer: this.#claimer, session, deadline };
      return { tenure, claim };
    } catch (error) {
      await this.#tidy(() => session.remove(path, undefined, { timeoutMs: TIDY_TIMEOUT_MS }));
      throw error;
    }
  }

  /** The claim that now is ours; undefined when another task was faster. An unknown outcome is read back, so that no second id is claimed beside the first. */
  async #create(id: number, mark: { path: string; version: number } | undefined): Promise<Znode | undefined> {
    const session = this.#session;
    const path = claimPath(id);
    const operations: MultiOperation[] = [{ type: 'create', path, data: claimData(this.#claimer, id), mode: 'ephemeral' }];
    if (mark !== undefined) operations.push({ type: 'check', ...mark });
    try {
      await session.multi(operations, { signal: this.options.signal });
    } catch (error) {
      if (isFault(error, 'node-exists', 'no-node', 'bad-version')) return undefined;
      if (!isFault(error, 'connection-loss', 'timeout')) throw error;
    }
    // Reads of a session come after its writes, so this tells for certain.
    const znode = await this.#retrying((call) => session.read(path, call));
    return znode !== undefined && isOurs(znode, session.sessionId, this.#claimer.nonce) ? znode : undefined;
  }

  /** Waits until an id may have become free, or may be claimed. */
  async #waitForChange(groups: ReadonlySet<number>, barrier?: BarrierState & { open: false }): Promise<void> {
    const { zookeeper, clock, random, emit, signal, until, maxGroups } = this.options;
    const now = clock.monotonic();
    if (now >= until) {
      const count = GROUP_SIZE * maxGroups - CLUSTER_NODE_ID_OFFSET;
      const why =
        barrier === undefined ? `none of the ${count} node ids became free in time` : `no node id could be had in time: ${barrier.why}`;
      throw new AcquireTimeoutError(`${zookeeper.description}: ${why}`);
    }
    // What a new watch tells first counts as a change: the scan before it did not see what happened until then.
    const changed = () => this.#change.abort();
    for (const path of [NODES_PATH, ...[...groups].map(groupPath)]) {
      if (!this.#watches.has(path)) this.#watches.set(path, zookeeper.watchChildren(path, changed));
    }
    const mark = `data of ${barrier?.path}`;
    if (barrier && !this.#watches.has(mark)) this.#watches.set(mark, zookeeper.watchData(barrier.path, changed));
    const sleepMs = Math.min((barrier ? BARRIER_WAIT_MS : MAX_WAIT_MS) * (1 - random.next() / 4), until - now);
    emit({ type: 'waiting', sleepMs, ...(barrier && { why: barrier.why }) });
    const woken = anySignal(signal, this.#change.signal);
    await clock.sleep(sleepMs, woken.signal).catch(() => signal?.throwIfAborted());
    woken.release();
    if (!this.#change.signal.aborted) return;
    // In a busy fleet something changes all the time.
    await clock.sleep(Math.max(0, Math.min(MIN_PAUSE_MS, until - clock.monotonic())), signal);
    this.#change = new AbortController();
  }

  /** Makes a call again and again while ZooKeeper is away. */
  #retrying<T>(call: (options: { signal: AbortSignal | undefined }) => Promise<T>): Promise<T> {
    const { clock, random, emit, signal, until } = this.options;
    return retry(() => call({ signal }), {
      clock,
      random,
      until,
      baseMs: RETRY_MS.first,
      capMs: RETRY_MS.max,
      ...(signal && { signal }),
      shouldRetry: (error) => isFault(error, 'connection-loss', 'timeout'),
      onFailure: (error, _attempt, sleepMs) => emit({ type: 'store-failed', error, sleepMs }),
    });
  }

  /** What the end of the session sees to as well. */
  async #tidy(act: () => Promise<unknown>): Promise<void> {
    if (this.options.zookeeper.state.status !== 'connected') return;
    try {
      await act();
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
    }
  }
}
