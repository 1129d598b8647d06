import { types } from 'node:util';
import { anySignal, onAbort } from '../base/abort.js';
import { checked, having } from '../base/arguments.js';
import type { Clock } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import { checkWhole } from './cluster-node-id.js';
import { checkFormat, formatId, type IdFormat } from './id-format.js';
import { checkedLayout, type DecodedId, decodeId, type IdLayout, idsPerMs } from './id-layout.js';
import { IdsExhaustedError, type IdTime } from './id-time.js';

/** Options of {@link UniqueIdGenerator}. */
export interface UniqueIdGeneratorOptions {
  readonly layout: IdLayout;
  /** The node's number in the ids, 0 … 2^nodeBits - 1: with `cluster16` the cluster node id. */
  readonly node: number;
  readonly time: IdTime;
  /** Used only to wait. */
  readonly clock: Pick<Clock, 'sleep'>;
  /**
   * How far the times of ids lag behind while few are made, in milliseconds, 0 … 3600000. A burst uses this
   * reserve.
   * @default 4000
   */
  readonly lagMs?: number | undefined;
  /** How far ahead of that the times may be in a burst, in milliseconds, 0 … 3600000. @default 8000 */
  readonly advanceMs?: number | undefined;
}

/** The most that the times of ids may lag behind, or be ahead of that, in milliseconds. */
const MAX_DISTANCE_MS = 3_600_000;
/** How long a reading of the clock is used while the event loop runs, in milliseconds. */
const FRESH_MS = 100;
/**
 * Maximum number of ids between two reads of the clock: few after a pause, twice as many each time while ids
 * are made fast.
 */
const RUN = { first: 64, max: 4_096 };
const FAST_MS = 10;
const HALF = 2 ** 32;
/**
 * The wait for the renewal of a lease before the next attempt, and the longest wait of all, in milliseconds.
 */
const RENEWAL_WAIT_MS = 50;
const MAX_WAIT_MS = 60_000;
/** The positions of the halves of a 64-bit number on this machine. */
const LOW = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 0 : 1;
const HIGH = 1 - LOW;

const TIME = having('a time with now(), before() and check()', 'now', 'before', 'check');

/**
 * Makes unique, strictly increasing 64-bit ids from a counter whose upper bits are a time. This time is a
 * virtual clock. It follows the given clock at a distance (`lagMs`) while few ids are made, and runs ahead of
 * that by up to `advanceMs` in a burst.
 *
 * No id repeats, whatever the clock does, as long as no other generator with the same node's number uses
 * times within the bounds of the same {@link IdTime}. An id's time is between `lagMs` + 100 ms before and
 * `advanceMs` - `lagMs` after it was made; older if the thread was blocked.
 */
export class UniqueIdGenerator {
  readonly node: number;
  #layout: IdLayout;
  readonly #time: IdTime;
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #lagMs: number;
  readonly #advanceMs: number;
  /** The increment of an id with each step of the sequence. */
  #step: number;
  readonly #id = new BigUint64Array(1);
  readonly #halves = new Uint32Array(this.#id.buffer);
  /**
   * The next id's time, in milliseconds since the Unix epoch, and its position in it, both at the beginning
   * of the run.
   */
  #ms: number;
  #sequence = 0;
  /** When the clock was read last, and how many ids the next run may have. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  #longest = RUN.first;
  /** How many ids the run has, and how many of them are left. */
  #run = 0;
  #left = 0;
  /** How many ids were made before the run. */
  #before = 0;
  /** The first time that does not fit into the layout. */
  readonly #end: number;
  #isTicking = false;

  /**
   * @throws {ConfigError} when the layout is invalid, the node's number does not fit into it, its time has
   * not begun yet or is over, or an option is out of range
   */
  constructor(options: UniqueIdGeneratorOptions) {
    const {
      layout: given,
      node,
      time,
      clock,
      lagMs = 4_000,
      advanceMs = 8_000,
    } = checked(
      options,
      { clock: having('a clock, such as systemClock', 'sleep'), time: TIME },
      'options',
      [],
    );
    const layout = checkedLayout(given);
    const { name, nodeBits } = layout;
    checkWhole('node', node, 0, 2 ** nodeBits - 1, `, since layout ${name} has ${nodeBits} bits for it`);
    if (layout.epochMs > time.now())
      throw new ConfigError('layout.epochMs', layout.epochMs, 'a time in the past');
    this.#end = layout.epochMs + 2 ** layout.timeBits;
    if (this.#end <= time.now())
      throw new ConfigError('layout.timeBits', layout.timeBits, 'enough for the time since layout.epochMs');
    checkWhole('lagMs', lagMs, 0, MAX_DISTANCE_MS, ' (milliseconds)');
    checkWhole('advanceMs', advanceMs, 0, MAX_DISTANCE_MS, ' (milliseconds)');
    this.node = node;
    this.#layout = layout;
    this.#time = time;
    this.#clock = clock;
    this.#lagMs = lagMs;
    this.#advanceMs = advanceMs;
    this.#step = stepOf(layout);
    this.#ms = layout.epochMs;
    // The next id then checks the time, and is refused.
    onAbort(time.signal, () => this.#settle());
  }

  /** The layout of the next id. */
  get layout(): IdLayout {
    return this.#layout;
  }

  /** How many ids it has made so far. */
  get issued(): number {
    return this.#before + (this.#run - this.#left);
  }

  /**
   * Makes all further ids with a layout that has more bits for the node, and the same number of bits in all.
   * They are greater than all earlier ids.
   *
   * @throws {ConfigError} when the layout has fewer bits for the node, another time, another number of bits
   * below the time, or is invalid
   */
  adopt(given: IdLayout): void {
    const layout = checkedLayout(given);
    const { epochMs, timeBits, lowest, nodeBits, sequenceBits } = layout;
    const now = this.#layout;
    const isSameTime = epochMs === now.epochMs && timeBits === now.timeBits && lowest === now.lowest;
    // The number of bits below the time must stay the same: the time keeps its position.
    if (
      !isSameTime ||
      nodeBits < now.nodeBits ||
      nodeBits + sequenceBits !== now.nodeBits + now.sequenceBits
    ) {
      const expected = `the time of layout ${now.name} in the same place, and at least ${now.nodeBits} bits for the node`;
      throw new ConfigError('layout', layout.name, expected);
    }
    this.#settle();
    // In the earlier layout, the rest of the millisecond may belong to another node.
    if (this.#sequence > 0) this.#advanceTo(this.#ms + 1);
    this.#layout = layout;
    this.#step = stepOf(layout);
  }

  /**
   * The next id.
   *
   * @throws {IdsExhaustedError} when none may be made yet
   * @throws {LeaseLostError} when the node's number is, or may be, another task's
   */
  next(): bigint {
    if (this.#left <= 0) this.#refill();
    this.#left -= 1;
    // Two halves in one buffer, read as a whole: only the bigint is allocated.
    (this.#halves[LOW] as number) += this.#step;
    return this.#id[0] as bigint;
  }

  /**
   * The next id, as soon as there is one.
   *
   * @throws {LeaseLostError} when the node's number is, or may be, another task's
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async nextAsync(signal?: AbortSignal): Promise<bigint> {
    checked({ signal });
    for (;;) {
      signal?.throwIfAborted();
      try {
        return this.next();
      } catch (error) {
        if (!(error instanceof IdsExhaustedError)) throw error;
        const over = anySignal(signal, this.#time.signal);
        // If the sleep ends early, the loop finds the reason.
        await this.#clock.sleep(error.waitMs, over.signal).catch(() => undefined);
        over.release();
      }
    }
  }

  /** The next id as a text, see {@link formatId}. Throws as {@link next} does. */
  nextString(format: IdFormat = 'decimal'): string {
    // An id that cannot be written would be lost.
    checkFormat(format);
    return formatId(this.next(), format);
  }

  /**
   * Writes the next ids into an array.
   *
   * @param offset where to begin. @default 0
   * @param count how many. @default to the end of the array
   * @throws {ConfigError} when they do not fit into the array, or it is no `BigUint64Array`: nothing is
   * written
   * @throws {IdsExhaustedError} when there are not enough yet; the first `filled` of them have been written
   * @throws {LeaseLostError} when the node's number is, or may be, another task's. How many ids were written
   * before is not reported; they are unique.
   */
  fill(target: BigUint64Array, offset?: number, count?: number): void;
  fill(target: unknown, offset = 0, wanted?: number): void {
    // An array with elements of another size, such as a Buffer, would be written past its end.
    if (!types.isBigUint64Array(target))
      throw new ConfigError('target', Object.prototype.toString.call(target), 'a BigUint64Array');
    checkWhole('offset', offset, 0, target.length, ', the length of the array');
    const count = wanted === undefined ? target.length - offset : wanted;
    checkWhole('count', count, 0, target.length - offset, ', what the array has room for');
    const halves = new Uint32Array(target.buffer, target.byteOffset, target.length * 2);
    const step = this.#step;
    let at = offset;
    while (at < offset + count) {
      if (this.#left <= 0) this.#refill(at - offset);
      const part = Math.min(this.#left, offset + count - at);
      const high = this.#halves[HIGH] as number;
      let low = this.#halves[LOW] as number;
      for (const end = at + part; at < end; at += 1) {
        low += step;
        halves[2 * at + LOW] = low;
        halves[2 * at + HIGH] = high;
      }
      this.#halves[LOW] = low;
      this.#left -= part;
    }
  }

  /** Decodes an id of this layout. Throws as {@link decodeId} does. */
  decode(id: bigint | string): DecodedId {
    return decodeId(id, this.layout);
  }

  /** Begins a run of ids that are made without reading the clock. */
  #refill(filled = 0): void {
    const time = this.#time;
    this.#settle();
    time.check();
    const now = time.now();
    const target = Math.floor(now - this.#lagMs);
    const ms = Math.max(this.#ms, target, Math.floor(time.after) + 1);
    const allowed = target + this.#advanceMs;
    const before = Math.min(Math.ceil(time.before()), this.#end);
    // Checked before any change: a wrong time must have no effect after its correction. NaN fails both
    // comparisons.
    if (!(ms <= allowed && ms < before)) throw this.#exhausted(ms, allowed, before, filled);
    this.#advanceTo(ms);
    this.#longest =
      Math.abs(now - this.#lookedAt) < FAST_MS ? Math.min(this.#longest * 2, RUN.max) : RUN.first;
    this.#lookedAt = now;
    const { lowest, epochMs, sequenceBits, nodeBits } = this.#layout;
    const perMs = 2 ** sequenceBits;
    // Whole milliseconds that the run may use, including the current one.
    const wholeMs = Math.min(allowed + 1, before) - this.#ms;
    const inMs = perMs - this.#sequence;
    const max = lowest === 'node' ? inMs + (wholeMs - 1) * perMs : inMs;
    const sinceEpoch = this.#ms - epochMs;
    const unit = 2 ** (sequenceBits + nodeBits);
    // Divided without losing digits: an id has more bits than a number can hold.
    const perHalf = HALF / unit;
    const nodePart = lowest === 'node' ? this.node : this.node * perMs;
    const base = (sinceEpoch % perHalf) * unit + this.#sequence * this.#step + nodePart;
    const run = Math.min(this.#longest, max, Math.floor((HALF - 1 - base) / this.#step) + 1);
    time.stamp?.(this.#ms + Math.floor((this.#sequence + run - 1) / perMs));
    this.#run = run;
    this.#left = run;
    this.#halves[HIGH] = Math.floor(sinceEpoch / perHalf);
    this.#halves[LOW] = base - this.#step;
    void this.#tick();
  }

  /** Moves time and sequence to the current position of the run. */
  #settle(): void {
    const made = this.#run - this.#left;
    const sequence = this.#sequence + made;
    const perMs = idsPerMs(this.#layout);
    this.#before += made;
    this.#run = 0;
    this.#left = 0;
    this.#ms += Math.floor(sequence / perMs);
    this.#sequence = sequence % perMs;
  }

  #advanceTo(ms: number): void {
    if (ms <= this.#ms) return;
    this.#ms = ms;
    this.#sequence = 0;
  }

  #exhausted(ms: number, allowed: number, before: number, filled: number): IdsExhaustedError {
    const { layout } = this;
    if (ms >= this.#end)
      return new IdsExhaustedError(
        MAX_WAIT_MS,
        filled,
        `the ${layout.timeBits} bits of time of layout ${layout.name} are used up`,
      );
    if (ms > allowed) {
      const early = `they would be stamped more than ${this.#advanceMs - this.#lagMs} ms ahead of the time`;
      const until = new Date(ms - 1).toISOString();
      // In this case the generator has not used up its own ids.
      const why =
        ms > this.#ms ? `, since somebody else with the node's number may have used it up to ${until}` : '';
      return new IdsExhaustedError(Math.min(ms - allowed, MAX_WAIT_MS), filled, early + why);
    }
    const waitMs = Math.min(MAX_WAIT_MS, Math.max(RENEWAL_WAIT_MS, ms - before || 0));
    return new IdsExhaustedError(
      waitMs,
      filled,
      'they would be stamped past the end of the lease, which has to be renewed first',
    );
  }

  /** Ends the run after a while, so that later ids do not have an old time. */
  async #tick(): Promise<void> {
    if (this.#isTicking) return;
    this.#isTicking = true;
    await this.#clock.sleep(FRESH_MS);
    this.#isTicking = false;
    this.#settle();
  }
}

function stepOf({ lowest, nodeBits }: IdLayout): number {
  return lowest === 'node' ? 2 ** nodeBits : 1;
}
