import { decodeId } from '../../src/core/id/index.js';
import { bitCount, type IdBitmap } from './id-bitmap.js';

/** What is wrong with ids. */
export interface IdFaults {
  /** Made before, by whomever. */
  repeated: number;
  /** Not greater than the one before of the same generator. */
  disordered: number;
  /** With another node in it than its maker's. */
  foreign: number;
  /** Outside of what the bitmap can distinguish. */
  outside: number;
  /** The first ones that repeat. */
  readonly examples: bigint[];
}

const EXAMPLES = 3;
/** Where the halves of a 64-bit number stand on this machine. */
const LOW = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 0 : 1;
const HIGH = 1 - LOW;

/** Looks at all ids of one generator, in the order in which they were made. */
export class IdWitness {
  readonly faults: IdFaults = { repeated: 0, disordered: 0, foreign: 0, outside: 0, examples: [] };
  first: bigint | undefined;
  last = -1n;
  seen = 0;
  #lastHigh = -1;
  #lastLow = 0;

  /** @param node that has to stand in every one of the ids */
  constructor(
    private readonly bitmap: IdBitmap,
    private readonly node: number,
  ) {}

  /** Looks at the first `count` ids of an array. */
  see(ids: BigUint64Array, count: number): void {
    if (count === 0) return;
    const { bitmap, node, faults } = this;
    const { epochMs, sequenceBits, nodeBits, lowest } = bitmap.shape.layout;
    const timeShift = sequenceBits + nodeBits;
    const perHigh = 2 ** (32 - timeShift);
    const [nodeShift, sequenceShift] = lowest === 'node' ? [0, nodeBits] : [sequenceBits, 0];
    const [nodeMask, sequenceMask] = [2 ** nodeBits - 1, 2 ** sequenceBits - 1];
    const halves = new Uint32Array(ids.buffer, ids.byteOffset, 2 * count);
    let word = -1;
    let bits = 0;
    for (let at = 0; at < count; at += 1) {
      const high = halves[2 * at + HIGH] as number;
      const low = halves[2 * at + LOW] as number;
      if (high < this.#lastHigh || (high === this.#lastHigh && low <= this.#lastLow)) faults.disordered += 1;
      this.#lastHigh = high;
      this.#lastLow = low;
      if (((low >>> nodeShift) & nodeMask) !== node) faults.foreign += 1;
      const sequence = (low >>> sequenceShift) & sequenceMask;
      const next = bitmap.wordOf(
        (low >>> nodeShift) & nodeMask,
        high * perHigh + (low >>> timeShift) + epochMs,
        sequence,
      );
      const bit = 1 << (sequence & 31);
      // One step for the ids that share a word; one that is there twice would be lost in it.
      if (next !== word || (bits & bit) !== 0) {
        this.#set(word, bits, ids, at);
        word = next;
        bits = 0;
      }
      bits |= bit;
      if (next === -1) {
        faults.outside += 1;
        bits = 0;
      }
    }
    this.#set(word, bits, ids, count);
    this.first ??= ids[0] as bigint;
    this.last = ids[count - 1] as bigint;
    this.seen += count;
    // The product's own way to take an id apart, in addition to this one.
    if (decodeId(this.last, bitmap.shape.layout).node !== node) faults.foreign += 1;
  }

  #set(word: number, bits: number, ids: BigUint64Array, end: number): void {
    if (bits === 0) return;
    const before = this.bitmap.set(word, bits);
    if (before === 0) return;
    const { faults } = this;
    faults.repeated += bitCount(before);
    const from = Math.max(0, end - bitCount(bits));
    for (let at = from; at < end && faults.examples.length < EXAMPLES; at += 1) {
      const id = ids[at] as bigint;
      if ((before & (1 << (decodeId(id, this.bitmap.shape.layout).sequence & 31))) !== 0)
        faults.examples.push(id);
    }
  }
}
