import type { Clock } from '../../clock.js';
import { explain } from '../../errors.js';
import { clusterNodeIdOf } from '../../id/cluster-node-id.js';
import type { LeaseListener } from '../../lease/lease.js';
import { StoreTime } from '../../lease/store-time.js';
import { parentOf } from '../../zookeeper/znode-path.js';
import type { MultiOperation, Znode } from '../../zookeeper/zookeeper.js';
import { ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import type { BoundCall } from './bound-session.js';
import type { IdTenure } from './id-claim.js';
import { decodeStamp, encodeStamp, isMs, stampedUntilOf, stampPath } from './id-stamp.js';

export interface TenureStampOptions {
  readonly tenure: IdTenure;
  readonly clock: Clock;
  readonly emit: LeaseListener;
}

/** What is wrong with a stamp: it was found so, or it was spoilt since. */
type Finding = 'found' | 'spoilt';

/** How much further in the future than a holder's share can be the first id may be without a word, in milliseconds. */
const LONG_MS = 60_000;

/** What was found where the stamp stands; undefined where nothing was learned. */
export type SeenStamp = Znode | 'absent' | undefined;

/**
 * The bounds between which one tenure stamps its unique ids, as they stand in a persistent znode beside the claim.
 *
 * Why two tenures of a node id never stamp the same millisecond, although a holder can be paused for as long as it likes, and its session be
 * gone for long when it wakes:
 *
 * - The stamp changes only by a write that names the version which was read. So the writes of all tenures stand in one order.
 * - A tenure begins with such a write, and stamps only *after* what stood there before it: `stampedUntil`, or else the millisecond before
 *   `timestamp`. Whoever wrote earlier than that stays below it, awake or not. Its version is used up, so it writes nothing later.
 * - A tenure stamps only *before* the `timestamp` of a write of its own that is known to be applied, and that was followed by a look at the
 *   claim that found it still standing. One whose claim was gone by then, and whose write came before that of its successor's all the same,
 *   has widened nothing for itself.
 * - `timestamp` never decreases from one write of a tenure to the next, nor below what the tenure found.
 *
 * Clocks take no part in that. They only say how far ahead `timestamp` is put: one session's time-out, by the leader's clock. A leader with
 * another clock makes ids stand still, or leap; it never makes one twice.
 *
 * Not covered: a stamp that somebody else deletes or overwrites, unless its holder has put it right since.
 */
export class TenureStamp {
  readonly path: string;
  readonly #time: StoreTime;
  /** The version to be replaced; undefined where it has to be looked up first. */
  #standing: number | 'absent' | undefined;
  /** The last write that was sent. Each has a later timestamp than the one before. */
  #sent = { timestamp: 0, sentAt: 0 };
  /** True once a write of ours is known to be applied. */
  #isTaken = false;
  /** By the newest look before that: the last millisecond that anybody before may have stamped, and the least timestamp to be written. */
  #found = 0;
  #leastTimestamp = 0;
  #after = Number.POSITIVE_INFINITY;
  #before = 0;
  #reserved = 0;
  readonly #reported = new Set<Finding>();

  constructor(private readonly options: TenureStampOptions) {
    this.path = stampPath(clusterNodeIdOf(options.tenure.nodeId));
    this.#time = new StoreTime(options.clock);
  }

  /** Ids are stamped after this; infinity before the tenure has written. */
  get after(): number {
    return this.#after;
  }

  /** Ids are stamped before this. */
  get before(): number {
    return this.#before;
  }

  /** The leader's clock at the least; 0 before anything is known of it. */
  get now(): number {
    return this.#time.now().min;
  }

  /** Whether the tenure has written, and so may have made ids. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  /** Whether a write was sent that may have been carried out. */
  get isSent(): boolean {
    return this.#sent.timestamp > 0;
  }

  /** Whether it is known what is to be replaced by the next write. */
  get isKnown(): boolean {
    return this.#standing !== undefined;
  }

  /** Whether there is room for ids, for half a time-out at the least. */
  get isReady(): boolean {
    return this.#isTaken && this.now > 0 && this.#before >= this.now + this.#timeoutMs / 2;
  }

  /** Takes note of the last millisecond that ids may be stamped with. */
  reserve(untilMs: number): void {
    this.#reserved = Math.max(this.#reserved, untilMs);
  }

  /** Reads what stands there; to be settled once the claim was seen to stand, by a read that was sent after this one. */
  async look(call: BoundCall): Promise<SeenStamp> {
    return (await this.options.tenure.session.read(this.path, call)) ?? 'absent';
  }

  /** Takes note of what is to be replaced by the next write, and of nothing else. */
  note(seen: SeenStamp): void {
    this.#standing = typeof seen === 'object' ? seen.stat.version : seen;
  }

  /** Draws the conclusions from a {@link look}. */
  settle(seen: SeenStamp): void {
    this.note(seen);
    if (seen === undefined) return;
    const timestamp = this.#ownIn(seen);
    if (seen !== 'absent' && timestamp !== undefined) {
      if (!this.#isTaken) this.#after = this.#found;
      this.#isTaken = true;
      this.#before = Math.max(this.#before, timestamp);
      const { modifiedAt } = seen.stat;
      // The leader cuts its clock to whole milliseconds.
      if (timestamp === this.#sent.timestamp) this.#time.learn({ min: modifiedAt, max: modifiedAt + 1 }, this.#sent.sentAt);
    } else if (!this.#isTaken) this.#inherit(seen);
    else this.report(`${seen === 'absent' ? 'it was deleted' : 'it was overwritten'} while the node id is held, and is put right`);
  }

  /** Says so where ids can be made only long after now, by the leader's clock: whoever waits for them should know why. */
  tellWait(): void {
    if (this.#after <= this.now + this.#timeoutMs + LONG_MS) return;
    const [until, now] = [this.#after, this.now].map((ms) => new Date(ms).toISOString());
    const source = this.#after > this.options.tenure.floor ? 'it' : 'the mark of its group';
    this.report(
      `${source} says that ids are stamped up to ${until}, and the servers' clock says ${now}: none can be made before that`,
      'found',
    );
  }

  /** What is to be done in the transaction that proves the tenure; undefined where it has to be looked up first what stands there, or time is at its end. */
  next(): MultiOperation | undefined {
    if (this.#standing === undefined) return undefined;
    const timestamp = Math.max(this.#sent.timestamp + 1, this.#leastTimestamp, Math.floor(this.now) + this.#timeoutMs);
    if (!isMs(timestamp)) return undefined;
    this.#sent = { timestamp, sentAt: this.options.clock.monotonic() };
    return this.#put(encodeStamp({ timestamp, nonce: this.options.tenure.claimer.nonce }));
  }

  /**
   * What is to be done in the transaction that ends the tenure; undefined where nothing is, or can be.
   *
   * @param seen by a {@link look}, where that is not known yet
   */
  last(seen?: SeenStamp): MultiOperation | undefined {
    if (seen !== undefined) this.note(seen);
    // Before a write is known to be applied, no id was made: what the one before left is as it was.
    if (!this.#isTaken && (seen === undefined || this.#ownIn(seen) === undefined)) return undefined;
    const stampedUntil = this.#isTaken ? Math.max(this.#after, this.#reserved) : this.#found;
    return this.#put(encodeStamp({ timestamp: this.#sent.timestamp, stampedUntil }));
  }

  /** A write of unknown or bad outcome: what stands there has to be looked up. */
  forget(): void {
    this.#standing = undefined;
  }

  /** Makes what is missing above the stamp, before it can be made itself. */
  async makeRoom(call: BoundCall): Promise<void> {
    const parent = parentOf(this.path);
    if (this.#standing === 'absent' && parent !== undefined) await this.options.tenure.session.ensurePath(parent, call);
  }

  /** Says, once, that the stamp is not as it was left, or not as it should have been found. Ids run out at the worst; the node id is held all the same. */
  report(problem: unknown, finding: Finding = 'spoilt'): void {
    if (this.#reported.has(finding)) return;
    this.#reported.add(finding);
    this.options.emit({ type: 'damaged', key: this.path, problem: problem instanceof ZooKeeperError ? explain(problem) : String(problem) });
  }

  get #timeoutMs(): number {
    return this.options.tenure.proof.timeoutMs;
  }

  /** The timestamp that a write of ours has put there; undefined where what stands there is of nobody, or somebody else. */
  #ownIn(seen: Znode | 'absent'): number | undefined {
    const stamp = seen === 'absent' ? undefined : decodeStamp(seen);
    const isOwn = stamp?.nonce === this.options.tenure.claimer.nonce && stamp.timestamp <= this.#sent.timestamp;
    return isOwn ? stamp.timestamp : undefined;
  }

  #inherit(seen: Znode | 'absent'): void {
    const { floor } = this.options.tenure;
    this.#found = floor;
    this.#leastTimestamp = floor + 1;
    if (seen === 'absent') return;
    const stamp = decodeStamp(seen);
    if (stamp === undefined) this.report('it cannot be read, ids are stamped after all that whoever wrote it may have made', 'found');
    this.#found = Math.max(floor, stampedUntilOf(seen, this.#timeoutMs));
    this.#leastTimestamp = Math.max(this.#found, stamp?.timestamp ?? 0) + 1;
  }

  #put(data: string): MultiOperation | undefined {
    const standing = this.#standing;
    if (standing === undefined) return undefined;
    if (standing === 'absent') return { type: 'create', path: this.path, data, mode: 'shared' };
    return { type: 'set', path: this.path, data, version: standing };
  }
}
