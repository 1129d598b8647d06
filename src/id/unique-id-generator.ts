import type { Clock } from '../clock.js';
import { ConfigError } from '../errors.js';
import { type DecodedId, decodeId } from './decode-id.js';
import { IdsExhaustedError } from './id-error.js';
import { formatId, type IdFormat } from './id-format.js';
import { type IdLayout, idsPerMs } from './id-layout.js';
import type { IdTime } from './id-time.js';

export interface UniqueIdGeneratorOptions {
  readonly layout: IdLayout;
  /** The node's number as it stands in the ids, 0 … 2^nodeBits - 1: with `cluster16` the cluster node id. */
  readonly node: number;
  readonly time: IdTime;
  /** Only to wait with. */
  readonly clock: Pick<Clock, 'sleep'>;
  /**
   * How far behind `time` the ids are stamped while few are made, in milliseconds: what is not used of it serves a burst.
   *
   * @default 4000
   */
  readonly lagMs?: number | undefined;
  /** How far ahead of that they may be stamped in a burst, in milliseconds. @default 8000 */
  readonly advanceMs?: number | undefined;
}

/** How long a look at the clock is good for while the event loop turns, in milliseconds. */
const FRESH_MS = 100;
/** How many ids are made at the most between two looks at the clock. */
const RUN = 4_096;
const HALF = 2 ** 32;
/** How long to wait for the renewal of a lease before one asks again, and for anything, in milliseconds. */
const RENEWAL_WAIT_MS = 50;
const MAX_WAIT_MS = 60_000;
/** Where the halves of a 64-bit number stand on this machine. */
const LOW = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 0 : 1;
const HIGH = 1 - LOW;

/**
 * Makes unique 64-bit ids, strictly increasing, each from a counter whose upper bits are a time: a virtual clock, which follows the given one
 * at a distance (`lagMs`) while few ids are made, and runs ahead of that by up to `advanceMs` in a burst (DESIGN 6).
 *
 * No id repeats, whatever the clock does, as long as nobody else with the same node's number stamps within the bounds of the same
 * {@link IdTime}. The time in an id is for people: it is between `lagMs` + 100 ms before and `advanceMs` - `lagMs` after the moment in
 * which it was made, and older where the thread was busy for longer than those 100 ms with other things.
 */
export class UniqueIdGenerator {
  readonly layout: IdLayout;
  readonly node: number;
  readonly #time: IdTime;
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #lagMs: number;
  readonly #advanceMs: number;
  readonly #perMs: number;
  /** How much the lower half of an id grows by with the sequence. */
  readonly #step: number;
  readonly #timeUnit: number;
  readonly #nodePart: number;
  readonly #id = new BigUint64Array(1);
  readonly #halves = new Uint32Array(this.#id.buffer);
  /** The next id's time, in milliseconds since the Unix epoch, and its place within it, both as of the beginning of the run. */
  #ms: number;
  #sequence = 0;
  /** How many ids the run has, and how many of them are left. */
  #run = 0;
  #left = 0;
  /** The first time that the layout has no bits for. */
  readonly #end: number;
  #isTicking = false;

  /** @throws {ConfigError} when the node's number is too large for the layout, or an option out of range */
  constructor({ layout, node, time, clock, lagMs = 4_000, advanceMs = 8_000 }: UniqueIdGeneratorOptions) {
    const most = 2 ** layout.nodeBits - 1;
    if (!Number.isInteger(node) || node < 0 || node > most)
      throw new ConfigError(
        'node',
        node,
        `a whole number from 0 to ${most}, since layout ${layout.name} has ${layout.nodeBits} bits for it`,
      );
    checkMs('lagMs', lagMs);
    checkMs('advanceMs', advanceMs);
    this.layout = layout;
    this.node = node;
    this.#time = time;
    this.#clock = clock;
    this.#lagMs = lagMs;
    this.#advanceMs = advanceMs;
    this.#perMs = idsPerMs(layout);
    this.#timeUnit = 2 ** (layout.sequenceBits + layout.nodeBits);
    this.#step = layout.lowest === 'node' ? 2 ** layout.nodeBits : 1;
    this.#nodePart = layout.lowest === 'node' ? node : node * 2 ** layout.sequenceBits;
    this.#ms = layout.epochMs;
    this.#end = layout.epochMs + 2 ** layout.timeBits;
    // The next id asks then, and is refused.
    time.signal?.addEventListener('abort', () => this.#settle(), { once: true });
  }

  /**
   * The next id.
   *
   * @throws {IdsExhaustedError} when none may be made yet
   * @throws {LeaseLostError} when the node's number is, or may be, somebody else's
   */
  next(): bigint {
    if (this.#left === 0) this.#refill();
    this.#left -= 1;
    // Two halves in one buffer, read as a whole: nothing is made but the bigint itself.
    (this.#halves[LOW] as number) += this.#step;
    return this.#id[0] as bigint;
  }

  /**
   * The next id, as soon as there is one.
   *
   * @throws {LeaseLostError} when the node's number is, or may be, somebody else's
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async nextAsync(signal?: AbortSignal): Promise<bigint> {
    for (;;) {
      signal?.throwIfAborted();
      try {
        return this.next();
      } catch (error) {
        if (!(error instanceof IdsExhaustedError)) throw error;
        await this.#clock.sleep(error.waitMs, signal);
      }
    }
  }

  /** The next id as a text, see {@link formatId}. Throws as {@link next} does. */
  nextString(format: IdFormat = 'decimal'): string {
    return formatId(this.next(), format);
  }

  /**
   * Writes the next ids into an array.
   *
   * @param offset where to begin. @default 0
   * @param count how many. @default to the end of the array
   * @throws {ConfigError} when they do not fit into the array: nothing is written
   * @throws {IdsExhaustedError} when there are not so many yet; the first `filled` of them have been written
   * @throws {LeaseLostError} when the node's number is, or may be, somebody else's; what was written before is not told, and unique nevertheless
   */
  fill(target: BigUint64Array, offset = 0, count = target.length - offset): void {
    if (!Number.isInteger(offset) || offset < 0 || offset > target.length)
      throw new ConfigError('offset', offset, `a whole number from 0 to ${target.length}, the length of the array`);
    if (!Number.isInteger(count) || count < 0 || count > target.length - offset)
      throw new ConfigError('count', count, `a whole number from 0 to ${target.length - offset}, what the array has room for`);
    const halves = new Uint32Array(target.buffer, target.byteOffset, target.length * 2);
    const step = this.#step;
    let at = offset;
    while (at < offset + count) {
      if (this.#left === 0) this.#refill(at - offset);
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

  /** Takes an id of this layout apart. Throws as {@link decodeId} does. */
  decode(id: bigint | string): DecodedId {
    return decodeId(id, this.layout);
  }

  /** Begins a run of ids that need not look at the clock. */
  #refill(filled = 0): void {
    const time = this.#time;
    this.#settle();
    time.check();
    const target = Math.floor(time.now() - this.#lagMs);
    this.#advanceTo(Math.max(target, time.after + 1));
    const allowed = target + this.#advanceMs;
    const before = Math.min(time.before(), this.#end);
    if (this.#ms > allowed || this.#ms >= before) throw this.#exhausted(allowed, before, filled);
    // Whole milliseconds that the run may use, the one that has begun among them.
    const wholeMs = Math.min(allowed + 1, before) - this.#ms;
    const inMs = this.#perMs - this.#sequence;
    const most = this.layout.lowest === 'node' ? inMs + (wholeMs - 1) * this.#perMs : inMs;
    const sinceEpoch = this.#ms - this.layout.epochMs;
    const unit = this.#timeUnit;
    // Divided without losing digits: the time's bits are more than a number has below it.
    const perHalf = HALF / unit;
    const base = (sinceEpoch % perHalf) * unit + this.#sequence * this.#step + this.#nodePart;
    this.#run = Math.min(RUN, most, Math.floor((HALF - 1 - base) / this.#step) + 1);
    this.#left = this.#run;
    this.#halves[HIGH] = Math.floor(sinceEpoch / perHalf);
    this.#halves[LOW] = base - this.#step;
    void this.#tick();
  }

  /** Brings time and sequence to where the run was left. */
  #settle(): void {
    const place = this.#sequence + (this.#run - this.#left);
    this.#run = 0;
    this.#left = 0;
    this.#ms += Math.floor(place / this.#perMs);
    this.#sequence = place % this.#perMs;
  }

  #advanceTo(ms: number): void {
    if (ms <= this.#ms) return;
    this.#ms = ms;
    this.#sequence = 0;
  }

  #exhausted(allowed: number, before: number, filled: number): IdsExhaustedError {
    const { layout } = this;
    if (this.#ms >= this.#end)
      return new IdsExhaustedError(MAX_WAIT_MS, filled, `the ${layout.timeBits} bits of time of layout ${layout.name} are used up`);
    if (this.#ms > allowed) {
      const waitMs = this.#ms - allowed;
      return new IdsExhaustedError(
        Math.min(waitMs, MAX_WAIT_MS),
        filled,
        `they would be stamped more than ${this.#advanceMs - this.#lagMs} ms ahead of the time`,
      );
    }
    const waitMs = Math.min(MAX_WAIT_MS, Math.max(RENEWAL_WAIT_MS, this.#ms - before));
    return new IdsExhaustedError(waitMs, filled, 'they would be stamped past the end of the lease, which has to be renewed first');
  }

  /** Ends the run after a while: ids that are made later shall not be stamped with a time of long ago. */
  async #tick(): Promise<void> {
    if (this.#isTicking) return;
    this.#isTicking = true;
    await this.#clock.sleep(FRESH_MS);
    this.#isTicking = false;
    this.#settle();
  }
}

function checkMs(name: string, ms: number): void {
  if (!(ms >= 0 && ms <= 3_600_000)) throw new ConfigError(name, ms, 'a number of milliseconds from 0 to 3600000');
}
