import { anySignal, orAborted } from '../../base/abort.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import { widthOfGroup } from '../../id/cluster-node-id.js';
import { type TenureTime, TenureWidth, type WidthListener } from '../../lease/hold/tenure-time.js';
import type { LeaseListener } from '../../lease/model/lease.js';
import { retry } from '../../lease/session/retry.js';
import { parentOf } from '../../zookeeper/znode-path.js';
import type { MultiOperation, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import { type IdWidth, watchIdWidth } from '../id-width.js';
import type { BoundCall } from './bound-session.js';
import type { IdTenure } from './id-claim.js';
import { groupsOf } from './id-groups.js';
import { IdTimeWindow } from './id-time-window.js';
import { readWidest } from './width-barrier.js';

export interface SessionTimeOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly emit: LeaseListener;
  readonly tenure: IdTenure;
  /** Aborts when the tenure ends in either way. */
  readonly signal: AbortSignal;
  /** How a call of the tenure is made, as of now. */
  readonly call: () => BoundCall;
  /** Reads whether the claim still stands. Throws when the tenure has ended. */
  readonly confirm: () => Promise<void>;
  /** Throws when the tenure has ended. */
  readonly check: () => void;
  /** All listeners use a wider width: the others may be told. */
  readonly onAdopted: () => void;
}

/** First and longest pause while ZooKeeper is away, in milliseconds. */
const RETRY_MS = { first: 50, max: 2_000 };
/** How often the window is moved on, as a share of the session's time-out. */
const MOVE_SHARE = 1 / 3;
/** How often the record is read in one go: it takes two writes to be of use, one for the tenure, and one that the leader's time is known for. */
const ROUNDS = 5;
/** After these an attempt may succeed, or the tenure ends. */
const TRANSIENT = ['connection-loss', 'timeout', 'session-expired', 'closed', 'bad-version', 'no-node', 'node-exists'] as const;

/**
 * What the generator of unique ids sees of a tenure: its {@link IdTimeWindow}, so that ids of two tenures differ, and the width of ids, so that
 * ids of two nodes differ. The window is kept open once {@link prepare} has been called; before that nothing is written or read for it.
 */
export class SessionTime implements TenureTime {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly #window: IdTimeWindow;
  readonly #watch: IdWidth;
  readonly #width: TenureWidth;
  #isPrepared = false;
  #preparing: Promise<void> | undefined;

  constructor(private readonly options: SessionTimeOptions) {
    const { tenure, zookeeper } = options;
    this.clock = options.clock;
    this.signal = options.signal;
    this.#window = new IdTimeWindow(options);
    // What the others have been told is never taken back.
    this.#width = new TenureWidth(tenure.idWidth, () => options.onAdopted());
    this.#watch = watchIdWidth(zookeeper, tenure.nodeId);
    this.#watch.onChange((idWidth) => this.#width.widen(idWidth));
  }

  get idWidth(): number {
    return this.#width.value;
  }

  /** The width that all ids of this tenure have at the least: what the claim is to tell the others. */
  get adoptedWidth(): number {
    return this.#width.adopted;
  }

  get after(): number {
    return this.#window.after;
  }

  before(): number {
    return this.#window.before;
  }

  now(): number {
    return this.#window.now;
  }

  stamp(untilMs: number): void {
    this.#window.reserve(untilMs);
  }

  check(): void {
    this.options.check();
  }

  onWidth(listener: WidthListener): () => void {
    return this.#width.onWidth(listener);
  }

  async prepare(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.check();
    if (this.#isPrepared) return;
    const ended = anySignal(this.signal, signal);
    try {
      this.#preparing ??= this.#prepare().finally(() => {
        this.#preparing = undefined;
      });
      await orAborted(this.#preparing, ended.signal);
    } catch (error) {
      signal?.throwIfAborted();
      this.check();
      throw error;
    } finally {
      ended.release();
    }
  }

  /** What the release writes besides, in one transaction with the removal of the claim; undefined for nothing. Never rejects. */
  async last(call: BoundCall): Promise<MultiOperation | undefined> {
    if (!this.#window.isWritten) return undefined;
    return this.#window.read(call).then(
      (found) => this.#window.last(found),
      () => undefined,
    );
  }

  /** The width grows no more. */
  close(): void {
    this.#watch.close();
  }

  /** For as long as the tenure lasts: several callers may wait for it, and some give up before. */
  async #prepare(): Promise<void> {
    const { tenure, call } = this.options;
    await this.#retrying(async () => {
      // Reads of a session come after its writes, so these tell what the groups are like at the claim or later.
      const [groups, widest] = await Promise.all([groupsOf(tenure.session, call()), readWidest(tenure.session, call())]);
      this.#width.widen(Math.max(widest, widthOfGroup(Math.max(0, ...groups))));
      await this.#moveWindow();
    });
    this.#isPrepared = true;
    this.#window.reportWait();
    void this.#keepOpen();
  }

  /** Moves the window on until the tenure ends. While that fails ids run out at the worst; the node id is held all the same. */
  async #keepOpen(): Promise<void> {
    const { clock, tenure } = this.options;
    while (!this.signal.aborted) {
      try {
        await clock.sleep(tenure.deadline.timeoutMs * MOVE_SHARE, this.signal);
        await this.#retrying(() => this.#moveWindow());
      } catch (error) {
        if (!this.signal.aborted) this.#window.report(error);
      }
    }
  }

  #retrying(attempt: () => Promise<void>): Promise<void> {
    const { clock, random } = this.options;
    return retry(attempt, {
      clock,
      random,
      until: Number.POSITIVE_INFINITY,
      baseMs: RETRY_MS.first,
      capMs: RETRY_MS.max,
      signal: this.signal,
      // An earlier holder may have written the record in the meantime, or an attempt of ours. A session that has ended ends the tenure.
      shouldRetry: (error) => !this.signal.aborted && isFault(error, ...TRANSIENT),
    });
  }

  /** Writes until a window stands there that begins now and has room for ids. */
  async #moveWindow(): Promise<void> {
    const { clock, call, confirm } = this.options;
    const { session, path } = this.options.tenure;
    const since = clock.monotonic();
    for (let round = 1; ; round += 1) {
      const [found] = await Promise.all([this.#window.read(call()), confirm()]);
      this.#window.settle(found);
      if (this.#window.isOpenSince(since)) return;
      if (round === ROUNDS) throw this.#unusable();
      if (found === undefined) await session.ensurePath(parentOf(this.#window.path) ?? '/', call());
      const write = this.#window.next(found);
      if (write !== undefined) await session.multi([write, { type: 'check', path }], call());
    }
  }

  /** What was written does not count, however often: an attempt after a pause may find it put right. */
  #unusable(): ZooKeeperError {
    const { path } = this.#window;
    const problem = 'no times can be written to it that ids could be made with';
    this.#window.report(problem);
    return new ZooKeeperError(`${path}: ${problem}`, { fault: 'bad-version', outcome: 'not-applied', path });
  }
}
