import { onAbort, orAborted } from '../../../core/base/abort.js';
import type { Clock } from '../../../core/base/clock.js';
import { explain } from '../../../core/base/errors.js';
import { type Retry, retrying } from '../../../core/base/retry.js';
import { shareAnswer } from '../../../core/base/share-answer.js';
import { clusterNodeIdOf, groupOf, indexOf, widthOfGroup } from '../../../core/id/cluster-node-id.js';
import type { NodeHolderOptions } from '../../../core/lease/hold/node-holder.js';
import { type TenureTime, TenureWidth } from '../../../core/lease/hold/tenure-time.js';
import { StoreTime } from '../../../core/lease/session/store-time.js';
import { parentOf } from '../../client/znode-path.js';
import type { CallOptions, MultiOperation, Znode, ZooKeeper } from '../../client/zookeeper.js';
import { isFault, OVERTAKEN, TRANSIENT, ZooKeeperError } from '../../client/zookeeper-error.js';
import { watchIdWidth } from '../id-width.js';
import { hexPair, NODES_PATH, stampGroupPath } from '../tree-paths.js';
import { numbersBelow } from './id-groups.js';
import { decodeRecord, type IdTenure, isMs, lastIdTimestampIn, writeOf } from './id-znodes.js';
import { readWidest } from './width-barrier.js';

interface SessionTimeOptions
  extends Pick<NodeHolderOptions, 'clock' | 'random' | 'emit'>,
    Pick<TenureTime, 'signal' | 'check'> {
  readonly zookeeper: ZooKeeper;
  readonly tenure: IdTenure;
  /** How a call of the tenure is made, as of now. */
  readonly call: () => CallOptions;
  /** Reads whether the claim still exists. Throws when the tenure has ended. */
  readonly confirm: () => Promise<void>;
  /** All listeners use a wider width: it may be published. */
  readonly onAdopted: () => void;
}

/** How often the window is moved on, as a share of the session's time-out. */
const MOVE_SHARE = 1 / 3;
/**
 * How often the record is read in one go: it takes two writes to be of use, one for the tenure, and one that
 * the leader's time is known for.
 */
const ROUNDS = 5;
/**
 * How much further in the future than a holder's window the first id may be without a report, in
 * milliseconds.
 */
const FAR_AHEAD_MS = 60_000;

/**
 * The view of a tenure for the generator of unique ids. It has the width of ids, so that ids of two nodes
 * differ, and the time window of ids, so that ids of two tenures differ. The window is kept open once
 * {@link prepare} has been called; before that nothing is written or read for it.
 *
 * Why two tenures of one node id never issue the same id: docs/design/allocation.md, "Two tenures" and "What
 * is not covered".
 */
export class SessionTime implements TenureTime {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly check: () => void;
  readonly onWidth: TenureTime['onWidth'] = (listener) => this.width.onWidth(listener);
  /** Infinity before the tenure has written. */
  after: number = Number.POSITIVE_INFINITY;
  /** The adopted width is the one that the claim is to publish. */
  readonly width: TenureWidth;
  readonly #path: string;
  readonly #leaderTime: StoreTime;
  readonly #retry: Retry;
  /** For the whole tenure: several callers may wait for it, and some give up before. */
  readonly #prepared = shareAnswer(() => this.#prepare());
  /** The last write that was sent. Each has a later timestamp than the one before. */
  #written = { timestamp: 0, sentAt: 0 };
  /** When the last write was sent, once it is known to be applied. */
  #openedAt = Number.NEGATIVE_INFINITY;
  /**
   * By the newest read before that: the last id timestamp of all earlier tenures, and the least timestamp to
   * be written.
   */
  #found = 0;
  #minTimestamp = 0;
  /** 0 while the window has not been opened yet. */
  #before = 0;
  #stampedUntil = 0;
  readonly #reported = new Set<string>();

  constructor(private readonly options: SessionTimeOptions) {
    const { tenure, zookeeper, clock, random, signal, check } = options;
    this.clock = clock;
    this.signal = signal;
    this.check = check;
    const id = clusterNodeIdOf(tenure.nodeId);
    this.#path = `${stampGroupPath(groupOf(id))}/${hexPair(indexOf(id))}`;
    this.#leaderTime = new StoreTime(clock);
    this.#retry = retrying({
      ...{ clock, random, signal },
      // An earlier holder may have written the record in the meantime, or an attempt of ours. A session that
      // has ended ends the tenure.
      mayPass: (error) => isFault(error, ...TRANSIENT, ...OVERTAKEN, 'closed'),
    });
    // What has been published is never taken back.
    this.width = new TenureWidth(tenure.idWidth, () => options.onAdopted());
    const watch = watchIdWidth(zookeeper, tenure.nodeId);
    watch.onChange((idWidth) => this.width.widen(idWidth));
    onAbort(signal, () => watch.close());
  }

  get idWidth(): number {
    return this.width.value;
  }

  before(): number {
    return this.#before;
  }

  /** By the leader's clock; 0 before anything is known of it. */
  now(): number {
    return this.#leaderTime.now().min;
  }

  stamp(untilMs: number): void {
    this.#stampedUntil = Math.max(this.#stampedUntil, untilMs);
  }

  async prepare(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.check();
    try {
      await orAborted(this.#prepared(), signal);
    } catch (error) {
      this.check();
      throw error;
    }
  }

  /**
   * The additional write of the release, in one transaction with the removal of the claim. The next tenure
   * need not avoid the time that this one has not used. Undefined if there is nothing to write.
   *
   * @throws {ZooKeeperError} when the record cannot be read
   */
  async last(call: CallOptions): Promise<MultiOperation | undefined> {
    const { timestamp } = this.#written;
    if (timestamp === 0) return undefined;
    const found = await this.options.tenure.session.read(this.#path, call);
    // Before a write is known to be applied, no id was made: the record of the tenure before stays as it is.
    if (this.#before === 0 && this.#ownTimestamp(found) === undefined) return undefined;
    const stampedUntil = this.#before > 0 ? Math.max(this.after, this.#stampedUntil) : this.#found;
    return writeOf(this.#path, found, { timestamp, stampedUntil });
  }

  async #prepare(): Promise<void> {
    const { call } = this.options;
    const { session, deadline } = this.options.tenure;
    await this.#retry(async () => {
      // Reads of a session come after its writes, so these show the groups as of the claim or
      // later.
      const [groups, widest] = await Promise.all([
        numbersBelow(session, NODES_PATH, call()),
        readWidest(session, call()),
      ]);
      this.width.widen(Math.max(widest, widthOfGroup(Math.max(0, ...groups))));
      await this.#moveWindow();
    });
    if (this.after > this.now() + deadline.timeoutMs + FAR_AHEAD_MS) this.#reportWait();
    void this.#keepOpen();
  }

  /**
   * Moves the window on until the tenure ends. While that fails ids run out at the worst; the node id is held
   * all the same.
   */
  async #keepOpen(): Promise<void> {
    const { deadline } = this.options.tenure;
    while (!this.signal.aborted) {
      try {
        await this.clock.sleep(deadline.timeoutMs * MOVE_SHARE, this.signal);
        await this.#retry(() => this.#moveWindow());
      } catch (error) {
        if (!this.signal.aborted) this.#report(explain(error));
      }
    }
  }

  /**
   * Writes until the record has a window that begins now and has room for ids, for at least half a time-out.
   */
  async #moveWindow(): Promise<void> {
    const { clock, call, confirm, tenure } = this.options;
    const { session, claimer, deadline } = tenure;
    const path = this.#path;
    const since = clock.monotonic();
    for (let round = 1; round <= ROUNDS; round += 1) {
      // The claim is read after the record: its owner decides whether the content of the record counts.
      const [found] = await Promise.all([session.read(path, call()), confirm()]);
      this.#settle(found);
      if (this.#openedAt >= since && this.now() > 0 && this.#before >= this.now() + deadline.timeoutMs / 2)
        return;
      if (found === undefined) await session.ensurePath(parentOf(path), call());
      const timestamp = Math.max(
        this.#written.timestamp + 1,
        this.#minTimestamp,
        Math.floor(this.now()) + deadline.timeoutMs,
      );
      if (!isMs(timestamp)) continue;
      this.#written = { timestamp, sentAt: clock.monotonic() };
      await session.multi(
        [writeOf(path, found, { timestamp, nonce: claimer.nonce }), { type: 'check', path: tenure.path }],
        call(),
      );
    }
    // Own writes do not count, however many: an attempt after a pause may find the record corrected.
    const problem = 'no times can be written to it that ids could be made with';
    this.#report(problem);
    throw new ZooKeeperError(`${path}: ${problem}`, 'bad-version', 'not-applied', path);
  }

  /** Evaluates a read of the record, once a read that was sent after it has shown that the claim exists. */
  #settle(found: Znode | undefined): void {
    const timestamp = this.#ownTimestamp(found);
    if (found !== undefined && timestamp !== undefined) {
      if (this.#before === 0) this.after = this.#found;
      this.#before = Math.max(this.#before, timestamp);
      if (timestamp < this.#written.timestamp) return;
      this.#openedAt = this.#written.sentAt;
      const { modifiedAt } = found.stat;
      // The leader cuts its clock to whole milliseconds.
      this.#leaderTime.learn({ min: modifiedAt, max: modifiedAt + 1 }, this.#openedAt);
    } else if (this.#before > 0) {
      this.#report('it was deleted or overwritten while the node id is held, and is put right');
    } else {
      const { floor, deadline } = this.options.tenure;
      const record = found && decodeRecord(found);
      if (found && !record)
        this.#report('it cannot be read, ids are stamped after all that its writer may have made');
      this.#found = found ? Math.max(floor, lastIdTimestampIn(found, deadline.timeoutMs)) : floor;
      this.#minTimestamp = Math.max(this.#found, record?.timestamp ?? 0) + 1;
    }
  }

  /**
   * The timestamp that a write of ours has put there; undefined if another tenure wrote the record, or there
   * is none.
   */
  #ownTimestamp(found: Znode | undefined): number | undefined {
    const record = found && decodeRecord(found);
    const isOwn =
      record?.nonce === this.options.tenure.claimer.nonce && record.timestamp <= this.#written.timestamp;
    return isOwn ? record.timestamp : undefined;
  }

  /**
   * Reports, once for each text, that the record is not as it should be. Ids run out at the worst; the node
   * id is held all the same.
   */
  #report(problem: string): void {
    if (this.#reported.has(problem)) return;
    this.#reported.add(problem);
    this.options.emit({ type: 'damaged', key: this.#path, problem });
  }

  /**
   * Reports where ids can be made only long after now, by the leader's clock: a task that waits for ids
   * should know why.
   */
  #reportWait(): void {
    const [until, now] = [this.after, this.now()].map((ms) => new Date(ms).toISOString());
    const source = this.after > this.options.tenure.floor ? 'it' : 'the mark of its group';
    this.#report(
      `${source} says that ids are stamped up to ${until}, and the servers' clock says ${now}: none can be made before that`,
    );
  }
}
