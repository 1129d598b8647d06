import type { Clock, RandomSource } from '../../clock.js';
import { AcquireTimeoutError } from '../../errors.js';
import { CLUSTER_NODE_ID_OFFSET, groupOf } from '../../id/cluster-node-id.js';
import type { LeaseListener } from '../../lease/lease.js';
import { retry } from '../../lease/retry.js';
import type { MultiOperation, Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import { groupPath, NODES_PATH } from '../tree-paths.js';
import { BoundSession } from './bound-session.js';
import { ChangeWatch } from './change-watch.js';
import { CLAIMS_PATH, ClaimQueue } from './claim-queue.js';
import { type GateState, GroupGate } from './group-gate.js';
import { type Claimer, claimData, claimPath, type IdTenure, isOurs, removeOurs, tenureData, tenureOf, widthFor } from './id-claim.js';
import { lookAtGroups } from './id-groups.js';
import { GROUP_SIZE, type TakenIds } from './taken-ids.js';

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

/** First and longest pause while ZooKeeper is away, in milliseconds. */
const RETRY_MS = { first: 100, most: 2_000 };
/** How long to wait for a change, where no id is free, before another look all the same, in milliseconds. */
const LONGEST_WAIT_MS = 30_000;
/** The same where an id is free, and others do not make wide enough ids for it yet. */
const GATE_WAIT_MS = 1_000;
/** The least time between two looks where no id is free, in milliseconds. */
const LEAST_PAUSE_MS = 100;
/** How long a call may take that only tidies up what the end of the session removes as well, in milliseconds. */
const TIDY_PATIENCE_MS = 1_000;

/** Finds a free node id and claims it, in one session. One use each. */
export class IdAllocator {
  readonly #session: BoundSession;
  readonly #queue: ClaimQueue;
  readonly #claimer: Claimer;
  readonly #gate: GroupGate;
  /** How many others were before us in the line, the last time. */
  #rank = 0;
  #watch: ChangeWatch | undefined;

  /** @param timeoutMs what the servers granted to the session */
  constructor(
    private readonly options: IdAllocatorOptions,
    sessionId: string,
    private readonly timeoutMs: number,
  ) {
    const nonce = options.random.hex(12);
    this.#session = new BoundSession(options.zookeeper, sessionId);
    this.#queue = new ClaimQueue(this.#session, nonce);
    this.#gate = new GroupGate({ session: this.#session, clock: options.clock, timeoutMs });
    this.#claimer = { taskId: options.taskId, nonce, fields: options.fields };
  }

  /** The calls made for it so far. */
  get requests(): number {
    return this.#session.requests;
  }

  /**
   * Claims the first free id, or, once a race was lost, the first one that nobody before us in the line is about to claim. Waits where
   * none is free.
   *
   * When it throws, a claim of ours may still be under way: it goes with the session.
   *
   * @throws {AcquireTimeoutError} when none became free in time
   * @throws {ZooKeeperError} `session-expired` when the session ends: then nothing of ours is left
   * @throws `signal.reason`
   */
  async allocate(): Promise<IdTenure> {
    try {
      for (;;) {
        this.options.signal?.throwIfAborted();
        const taken = await this.#patiently((signal) => lookAtGroups(this.#session, this.#rank, this.options.maxGroups, { signal }));
        // After the ids, never before them: see the queue.
        this.#rank = await this.#patiently((signal) => this.#queue.rank({ signal }));
        const free = taken.free(this.#rank, this.options.maxGroups);
        if (free === undefined) {
          await this.#waitForChance(taken);
          continue;
        }
        if (!taken.knows(groupOf(free))) continue;
        const gate = await this.#patiently((signal) => this.#gate.look(groupOf(free), { signal }));
        if (!gate.open) {
          await this.#waitForChance(taken, gate);
          continue;
        }
        const tenure = await this.#claim(free, taken, gate);
        if (tenure !== undefined) return tenure;
        await this.#patiently((signal) => this.#queue.join({ signal }));
      }
    } catch (error) {
      await this.#leave(() => this.#queue.leave({ timeoutMs: TIDY_PATIENCE_MS }));
      throw error;
    } finally {
      this.#watch?.close();
      await this.#leave(() => this.#gate.leave({ timeoutMs: TIDY_PATIENCE_MS }));
    }
  }

  /** Undefined when somebody else was faster. */
  async #claim(clusterNodeId: number, taken: TakenIds, gate: GateState & { open: true }): Promise<IdTenure | undefined> {
    const { clock } = this.options;
    await this.#enter(groupOf(clusterNodeId), taken);
    const sentAt = clock.monotonic();
    const znode = await this.#create(clusterNodeId, gate.mark);
    if (znode === undefined) return undefined;
    this.#queue.left();
    const { timeoutMs } = this;
    const idWidth = widthFor(clusterNodeId, taken.highestGroup);
    const { floor } = gate;
    const start = { session: this.#session, claimer: this.#claimer, clock, clusterNodeId, idWidth, floor, znode, sentAt, timeoutMs };
    try {
      const tenure = tenureOf({ ...start, answeredAt: clock.monotonic() });
      if (await this.#publish(tenure, znode)) return tenure;
      await this.#quietly(() => this.#giveUp(tenure.path));
      return undefined;
    } catch (error) {
      const call = { timeoutMs: TIDY_PATIENCE_MS };
      await this.#quietly(() => removeOurs(this.#session, claimPath(clusterNodeId), this.#claimer.nonce, call));
      throw error;
    }
  }

  /** Before an id of a group may be claimed: the group exists, so that everybody learns how wide ids are now. */
  async #enter(group: number, taken: TakenIds): Promise<void> {
    if (taken.groups.has(group)) return;
    await this.#patiently((signal) => this.#session.ensurePath(groupPath(group), { signal }));
  }

  /** The znode that now is ours; undefined when somebody else was faster. An unknown outcome is read back (rule 5), so that no second id is claimed beside the first. */
  async #create(clusterNodeId: number, mark: { path: string; version: number } | undefined): Promise<Znode | undefined> {
    const { signal } = this.options;
    const path = claimPath(clusterNodeId);
    const data = claimData(this.#claimer, clusterNodeId);
    const { ticket } = this.#queue;
    try {
      if (ticket === undefined && mark === undefined) await this.#session.create(path, data, 'ephemeral', { signal });
      else {
        const operations: MultiOperation[] = [{ type: 'create', path, data, mode: 'ephemeral' }];
        if (ticket !== undefined) operations.push({ type: 'remove', path: ticket });
        if (mark !== undefined) operations.push({ type: 'check', ...mark });
        await this.#session.multi(operations, { signal });
      }
    } catch (error) {
      if (isFault(error, 'node-exists', 'no-node', 'bad-version')) return undefined;
      if (!isFault(error, 'connection-loss', 'timeout')) throw error;
    }
    // Reads of a session come after its writes, so this tells for certain.
    const znode = await this.#patiently((signal) => this.#session.read(path, { signal }));
    return znode !== undefined && isOurs(znode, this.#session.sessionId, this.#claimer.nonce) ? znode : undefined;
  }

  /** Writes the version into the znode. False when it was taken from us meanwhile. */
  async #publish(tenure: IdTenure, claimed: Znode): Promise<boolean> {
    const { clock } = this.options;
    const { path, session, proof, claimer } = tenure;
    const data = tenureData(tenure, tenure.idWidth);
    let known: Znode | undefined = claimed;
    return this.#patiently(async (signal) => {
      known ??= await session.read(path, { signal });
      if (known === undefined || !isOurs(known, session.sessionId, claimer.nonce)) return false;
      if (known.data.toString('utf8') === data) return true;
      const { version } = known.stat;
      known = undefined;
      const sentAt = clock.monotonic();
      try {
        await session.setData(path, data, version, { signal });
      } catch (error) {
        if (isFault(error, 'no-node', 'bad-version')) return false;
        throw error;
      }
      proof.answered(sentAt, clock.monotonic());
      return true;
    });
  }

  /** Somebody has taken the id from us before we held it: a mark that stays in this session would keep everybody off it. */
  async #giveUp(path: string): Promise<void> {
    const call = { timeoutMs: TIDY_PATIENCE_MS };
    const znode = await this.#session.read(path, call);
    if (znode?.stat.owner === this.#session.sessionId) await this.#session.remove(path, znode.stat.version, call);
  }

  /** Waits until an id may have become free, or may be claimed, or somebody before us in the line has left. */
  async #waitForChance(taken: TakenIds, gate?: GateState & { open: false }): Promise<void> {
    const { zookeeper, clock, random, emit, signal, until, maxGroups } = this.options;
    const now = clock.monotonic();
    if (now >= until) {
      const count = GROUP_SIZE * maxGroups - CLUSTER_NODE_ID_OFFSET;
      const why = gate === undefined ? `none of the ${count} node ids became free in time` : `no node id could be had in time: ${gate.why}`;
      throw new AcquireTimeoutError(`${zookeeper.description}: ${why}`);
    }
    const sleepMs = Math.min((gate ? GATE_WAIT_MS : LONGEST_WAIT_MS) * (1 - random.next() / 4), until - now);
    if (this.#watch === undefined) {
      // The first time, look once more with an eye on the groups: what changed before the watch began would go unnoticed.
      const queue = this.#queue.ticket === undefined ? [] : [CLAIMS_PATH];
      this.#watch = new ChangeWatch(zookeeper, clock, [NODES_PATH, ...queue, ...[...taken.groups].map(groupPath)], gate?.path);
      return this.#watch.armed(sleepMs, signal);
    }
    emit({ type: 'waiting', sleepMs, ...(gate && { why: gate.why }) });
    await this.#watch.changed(sleepMs, signal);
    if (!this.#watch.hasChanged) return;
    this.#watch.close();
    this.#watch = undefined;
    // In a busy fleet something changes all the time.
    await clock.sleep(Math.max(0, Math.min(LEAST_PAUSE_MS, until - clock.monotonic())), signal);
  }

  /** Makes a call again and again while ZooKeeper is away. */
  #patiently<T>(call: (signal: AbortSignal | undefined) => Promise<T>): Promise<T> {
    const { clock, random, emit, signal, until } = this.options;
    return retry(() => call(signal), {
      clock,
      random,
      until,
      baseMs: RETRY_MS.first,
      capMs: RETRY_MS.most,
      ...(signal && { signal }),
      shouldRetry: (error) => isFault(error, 'connection-loss', 'timeout'),
      onFailure: (error, _attempt, sleepMs) => emit({ type: 'store-failed', error, sleepMs }),
    });
  }

  async #leave(act: () => Promise<unknown>): Promise<void> {
    if (this.options.zookeeper.state.status === 'connected') await this.#quietly(act);
  }

  /** What is only tidiness: the end of the session sees to it as well. */
  async #quietly(act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
    }
  }
}
