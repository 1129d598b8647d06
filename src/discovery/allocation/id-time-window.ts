import type { Clock } from '../../base/clock.js';
import { explain } from '../../base/errors.js';
import { clusterNodeIdOf, groupOf, indexOf } from '../../id/cluster-node-id.js';
import type { LeaseListener } from '../../lease/model/lease.js';
import { END_OF_TIME } from '../../lease/model/lease-state.js';
import { StoreTime } from '../../lease/session/store-time.js';
import type { MultiOperation, Znode } from '../../zookeeper/zookeeper.js';
import { ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import { hexPair, stampGroupPath } from '../tree-paths.js';
import type { BoundCall } from './bound-session.js';
import { fieldsOf, type IdTenure } from './id-claim.js';

export interface IdTimeWindowOptions {
  readonly tenure: IdTenure;
  readonly clock: Clock;
  readonly emit: LeaseListener;
}

/** What stands in a record. Times are milliseconds since the Unix epoch, by the leader's clock. */
interface TimeRecord {
  /** Ids have timestamps before this, in the present tenure and all before it. */
  readonly timestamp: number;
  /** The last id timestamp, where the holder said so when it released. */
  readonly stampedUntil?: number | undefined;
  /** Whose tenure wrote it, as in the claim; none after a release. */
  readonly nonce?: string | undefined;
}

/** How much further in the future than a holder's window the first id may be without a report, in milliseconds. */
const FAR_AHEAD_MS = 60_000;

/**
 * The time window in which one tenure makes its unique ids, on record in a persistent znode beside the claim, `stamps/<GG>/<II>`: two tenures of one
 * node id never issue the same id.
 *
 * This holds although a holder can be paused for as long as it likes, and its session be gone for long when it wakes:
 *
 * - The record changes only by a write that names the version which was read. So the writes of all tenures stand in one order.
 * - A tenure begins with such a write, and its ids come *after* what stood there before it: `stampedUntil`, or else the millisecond before
 *   `timestamp`. A holder that wrote earlier stays below it, awake or not. Its version is used up, so it writes nothing later.
 * - Its ids come *before* the `timestamp` of a write of its own that is known to be applied, and that was followed by a read of the
 *   claim that found it still standing. A holder whose claim was gone by then, and whose write came before that of its successor's all the same,
 *   has widened nothing for itself.
 * - `timestamp` never decreases from one write of a tenure to the next, nor below what the tenure found.
 *
 * Clocks only say how far ahead `timestamp` is put: one session's time-out, by the leader's clock. A leader with
 * another clock makes ids stand still, or leap; it never makes one twice.
 *
 * Not covered: a record that somebody else deletes or overwrites, unless its holder has put it right since.
 */
export class IdTimeWindow {
  readonly path: string;
  readonly #leaderTime: StoreTime;
  /** The last write that was sent. Each has a later timestamp than the one before. */
  #written = { timestamp: 0, sentAt: 0 };
  /** When the last write was sent, once it is known to be applied. */
  #openedAt = Number.NEGATIVE_INFINITY;
  /** By the newest read before that: the last id timestamp of all earlier tenures, and the least timestamp to be written. */
  #found = 0;
  #minTimestamp = 0;
  #after = Number.POSITIVE_INFINITY;
  #before = 0;
  #reserved = 0;
  readonly #reported = new Set<string>();

  constructor(private readonly options: IdTimeWindowOptions) {
    this.path = recordPath(clusterNodeIdOf(options.tenure.nodeId));
    this.#leaderTime = new StoreTime(options.clock);
  }

  /** Ids come after this; infinity before the tenure has written. */
  get after(): number {
    return this.#after;
  }

  /** Ids come before this. */
  get before(): number {
    return this.#before;
  }

  /** The least that the leader's clock can be; 0 before anything is known of it. */
  get now(): number {
    return this.#leaderTime.now().min;
  }

  /** Whether a write was sent that may have been carried out. */
  get isWritten(): boolean {
    return this.#written.timestamp > 0;
  }

  /** Whether ids can be made for half a time-out at the least, by a write that was sent after `since`. */
  isOpenSince(since: number): boolean {
    return this.#openedAt >= since && this.now > 0 && this.#before >= this.now + this.#timeoutMs / 2;
  }

  /** Takes note of the last millisecond that ids may be made in. */
  reserve(untilMs: number): void {
    this.#reserved = Math.max(this.#reserved, untilMs);
  }

  /** Reads the record: undefined where there is none. To be settled once the claim was seen to stand, by a read that was sent after this one. */
  read(call: BoundCall): Promise<Znode | undefined> {
    return this.options.tenure.session.read(this.path, call);
  }

  /** Draws the conclusions from a {@link read}. */
  settle(found: Znode | undefined): void {
    const timestamp = this.#ownTimestamp(found);
    if (found !== undefined && timestamp !== undefined) {
      if (!this.#isOpen) this.#after = this.#found;
      this.#before = Math.max(this.#before, timestamp);
      if (timestamp < this.#written.timestamp) return;
      this.#openedAt = this.#written.sentAt;
      const { modifiedAt } = found.stat;
      // The leader cuts its clock to whole milliseconds.
      this.#leaderTime.learn({ min: modifiedAt, max: modifiedAt + 1 }, this.#openedAt);
    } else if (!this.#isOpen) this.#inherit(found);
    else this.report(`${found === undefined ? 'it was deleted' : 'it was overwritten'} while the node id is held, and is put right`);
  }

  /** The write that moves the window on from what a {@link read} found; undefined where time is at its end. */
  next(found: Znode | undefined): MultiOperation | undefined {
    const timestamp = Math.max(this.#written.timestamp + 1, this.#minTimestamp, Math.floor(this.now) + this.#timeoutMs);
    if (!isMs(timestamp)) return undefined;
    this.#written = { timestamp, sentAt: this.options.clock.monotonic() };
    return this.#replace(found, { timestamp, nonce: this.options.tenure.claimer.nonce });
  }

  /**
   * The write that ends the tenure: the next one then need not keep away from what this one has not used. Undefined where there is none to make.
   *
   * @param found by a {@link read} just before
   */
  last(found: Znode | undefined): MultiOperation | undefined {
    // Before a write is known to be applied, no id was made: the record of the tenure before stays as it is.
    if (!this.#isOpen && this.#ownTimestamp(found) === undefined) return undefined;
    const stampedUntil = this.#isOpen ? Math.max(this.#after, this.#reserved) : this.#found;
    return this.#replace(found, { timestamp: this.#written.timestamp, stampedUntil });
  }

  /** Reports, once for each text, that the record is not as it should be. Ids run out at the worst; the node id is held all the same. */
  report(error: unknown): void {
    const problem = error instanceof ZooKeeperError ? explain(error) : String(error);
    if (this.#reported.has(problem)) return;
    this.#reported.add(problem);
    this.options.emit({ type: 'damaged', key: this.path, problem });
  }

  /** Reports where ids can be made only long after now, by the leader's clock: a task that waits for ids should know why. */
  reportWait(): void {
    if (this.#after <= this.now + this.#timeoutMs + FAR_AHEAD_MS) return;
    const [until, now] = [this.#after, this.now].map((ms) => new Date(ms).toISOString());
    const source = this.#after > this.options.tenure.floor ? 'it' : 'the mark of its group';
    this.report(`${source} says that ids are stamped up to ${until}, and the servers' clock says ${now}: none can be made before that`);
  }

  get #isOpen(): boolean {
    return this.#before > 0;
  }

  get #timeoutMs(): number {
    return this.options.tenure.deadline.timeoutMs;
  }

  /** The timestamp that a write of ours has put there; undefined where another tenure wrote what stands there, or none. */
  #ownTimestamp(found: Znode | undefined): number | undefined {
    const record = found && decode(found);
    const isOwn = record?.nonce === this.options.tenure.claimer.nonce && record.timestamp <= this.#written.timestamp;
    return isOwn ? record.timestamp : undefined;
  }

  #inherit(found: Znode | undefined): void {
    const { floor } = this.options.tenure;
    const record = found && decode(found);
    if (found && !record) this.report('it cannot be read, ids are stamped after all that its writer may have made');
    this.#found = found ? Math.max(floor, lastIdTimestampIn(found, this.#timeoutMs)) : floor;
    this.#minTimestamp = Math.max(this.#found, record?.timestamp ?? 0) + 1;
  }

  #replace(found: Znode | undefined, record: TimeRecord): MultiOperation {
    const { path } = this;
    const data = JSON.stringify(record);
    return found ? { type: 'set', path, data, version: found.stat.version } : { type: 'create', path, data, mode: 'shared' };
  }
}

/**
 * The last id timestamp of all tenures that have written a record, in milliseconds since the Unix epoch.
 *
 * @param timeoutMs how far ahead of the leader's clock a holder may go, where what it wrote cannot be read any more
 */
export function lastIdTimestampIn(znode: Znode, timeoutMs: number): number {
  const record = decode(znode);
  if (record === undefined) return znode.stat.modifiedAt + timeoutMs;
  return record.stampedUntil ?? record.timestamp - 1;
}

/** Whether a value can be the time of an id, in milliseconds since the Unix epoch: there are 48 bits for it. */
export function isMs(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < END_OF_TIME;
}

function recordPath(clusterNodeId: number): string {
  return `${stampGroupPath(groupOf(clusterNodeId))}/${hexPair(indexOf(clusterNodeId))}`;
}

/** Undefined for what is no record. Never throws. */
function decode({ data }: Znode): TimeRecord | undefined {
  const { timestamp, stampedUntil, nonce } = fieldsOf(data);
  if (!isMs(timestamp) || (stampedUntil !== undefined && !isMs(stampedUntil))) return undefined;
  return { timestamp, stampedUntil, nonce: typeof nonce === 'string' ? nonce : undefined };
}
