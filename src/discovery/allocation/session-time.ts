import { anySignal, orAborted } from '../../base/abort.js';
import type { Clock, RandomSource } from '../../clock.js';
import { widthOfGroup } from '../../id/cluster-node-id.js';
import type { LeaseListener } from '../../lease/lease.js';
import { retry } from '../../lease/retry.js';
import type { TenureTime } from '../../lease/tenure-time.js';
import { TenureWidth, type WidthListener } from '../../lease/tenure-width.js';
import type { MultiOperation, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import { type IdWidth, watchIdWidth } from '../id-width.js';
import type { BoundCall } from './bound-session.js';
import type { IdTenure } from './id-claim.js';
import { groupsOf } from './id-groups.js';
import { type SeenStamp, TenureStamp } from './tenure-stamp.js';
import { readWidest } from './widest-ids.js';

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
  /** Looks whether the claim still stands. Throws when the tenure has ended. */
  readonly confirm: () => Promise<void>;
  /** Throws when the tenure has ended. */
  readonly check: () => void;
  /** All listeners use a wider width: the others may be told. */
  readonly onAdopted: () => void;
}

/** First and longest pause while ZooKeeper is away, in milliseconds. */
const RETRY_MS = { first: 50, most: 2_000 };
/** How often the stamp is looked at in one go: it takes two writes to be of use, one for the tenure, and one that the leader's time is known for. */
const ROUNDS = 5;
/** After these an attempt may succeed, or the tenure ends. */
const PASSING = ['connection-loss', 'timeout', 'session-expired', 'closed', 'bad-version', 'no-node', 'node-exists'] as const;

/**
 * A tenure's share of time, where the node id comes from ZooKeeper alone. The bounds are those of its {@link TenureStamp}, which
 * every heartbeat moves on once {@link prepare} has been called; before that nothing is written, and no time is asked for.
 */
export class SessionTime implements TenureTime {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly #stamp: TenureStamp;
  readonly #watch: IdWidth;
  readonly #width: TenureWidth;
  #isPrepared = false;
  #preparing: Promise<void> | undefined;

  constructor(private readonly options: SessionTimeOptions) {
    const { tenure, zookeeper } = options;
    this.clock = options.clock;
    this.signal = options.signal;
    this.#stamp = new TenureStamp(options);
    // What the others have been told is never taken back.
    this.#width = new TenureWidth(tenure.idWidth, () => options.onAdopted());
    this.#watch = watchIdWidth(zookeeper, tenure.nodeId);
    this.#watch.onChange((idWidth) => this.#width.widen(idWidth));
  }

  get idWidth(): number {
    return this.#width.value;
  }

  /** The width that nobody in this tenure makes narrower ids than any more: what the znode is to tell the others. */
  get adoptedWidth(): number {
    return this.#width.adopted;
  }

  get after(): number {
    return this.#stamp.after;
  }

  before(): number {
    return this.#stamp.before;
  }

  now(): number {
    return this.#stamp.now;
  }

  stamp(untilMs: number): void {
    this.#stamp.reserve(untilMs);
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

  /** What a heartbeat does to the stamp, in one transaction with the proof. Nothing before {@link prepare}. */
  next(): MultiOperation | undefined {
    return this.#isPrepared ? this.#stamp.next() : undefined;
  }

  /** The heartbeat with the stamp was not carried out, or nobody knows whether it was. */
  failed(error: unknown): void {
    this.#stamp.forget();
    // What else is wrong with it the next look tells.
    if (!isFault(error, 'aborted', ...PASSING)) this.#stamp.report(error);
  }

  /** Looks at the stamp after a heartbeat. Never rejects. */
  async look(call: BoundCall): Promise<SeenStamp> {
    if (!this.#isPrepared) return undefined;
    return this.#stamp.look(call).catch(() => undefined);
  }

  /** The claim was seen to stand, by a read that was sent after that {@link look}. Never rejects. */
  async settle(seen: SeenStamp, call: BoundCall): Promise<void> {
    if (!this.#isPrepared) return;
    this.#stamp.settle(seen);
    await this.#stamp.makeRoom(call).catch(() => this.#stamp.forget());
  }

  /** What the release does to the stamp, in one transaction with the removal of the claim; undefined where it does nothing. Never rejects. */
  async last(call: BoundCall): Promise<MultiOperation | undefined> {
    const stamp = this.#stamp;
    if (!stamp.isSent) return undefined;
    // The release may have come in the middle of the first write: only a look tells what became of that.
    return stamp.isTaken && stamp.isKnown ? stamp.last() : stamp.last(await stamp.look(call).catch(() => undefined));
  }

  /** No width is told any more. */
  close(): void {
    this.#watch.close();
  }

  /** As long as the tenure lasts, whoever waits for it. */
  #prepare(): Promise<void> {
    const { clock, random } = this.options;
    return retry(() => this.#attempt(), {
      clock,
      random,
      until: Number.POSITIVE_INFINITY,
      baseMs: RETRY_MS.first,
      capMs: RETRY_MS.most,
      signal: this.signal,
      // The stamp may have been written by an earlier holder in the meantime, or by an attempt of ours. A session that has ended ends the tenure.
      shouldRetry: (error) => !this.signal.aborted && isFault(error, ...PASSING),
    });
  }

  async #attempt(): Promise<void> {
    const { tenure, call, confirm } = this.options;
    const { session, path } = tenure;
    // Reads of a session come after its writes, so these tell what the groups are like at the claim or later.
    const [groups, widest] = await Promise.all([groupsOf(session, call()), readWidest(session, call())]);
    this.#width.widen(Math.max(widest, widthOfGroup(Math.max(0, ...groups))));
    for (let round = 1; ; round += 1) {
      const [seen] = await Promise.all([this.#stamp.look(call()), confirm()]);
      this.#stamp.settle(seen);
      if (this.#stamp.isReady) break;
      if (round === ROUNDS) throw this.#unusable();
      await this.#stamp.makeRoom(call());
      const write = this.#stamp.next();
      if (write !== undefined) await session.multi([{ type: 'check', path }, write], call());
    }
    this.#isPrepared = true;
    this.#stamp.tellWait();
  }

  /** What was written does not count, however often: to be tried again after a pause, in case that somebody puts it right. */
  #unusable(): ZooKeeperError {
    const problem = 'no times can be written to it that ids could be made with';
    this.#stamp.report(problem, 'found');
    const { path } = this.#stamp;
    return new ZooKeeperError(`${path}: ${problem}`, { fault: 'bad-version', outcome: 'not-applied', path });
  }
}
