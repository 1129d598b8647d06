import { CLUSTER_NODE_ID_OFFSET, type IdLayout, idsPerMs } from '../../src/core/id/index.js';

/** Which ids can be distinguished: those of some node ids in some stretch of time. */
export interface BitmapShape {
  readonly layout: IdLayout;
  /** Node ids 0 … nodes - 1. */
  readonly nodes: number;
  /** The first millisecond since the Unix epoch, and how many there are from it on. */
  readonly fromMs: number;
  readonly spanMs: number;
}

const WORD = 32;

/**
 * One bit for every id that there can be within a shape, in memory that threads share: place = (node ×
 * milliseconds + millisecond) × ids of a millisecond + sequence. Each id has a bit of its own, so a bit that
 * is found set is an id that was made before: nothing is guessed.
 */
export class IdBitmap {
  readonly #words: Int32Array;
  readonly #wordsPerMs: number;

  /** @param memory of {@link IdBitmap.bytes} zeros; the same one in all threads */
  constructor(
    readonly shape: BitmapShape,
    readonly memory: SharedArrayBuffer,
  ) {
    this.#words = new Int32Array(memory);
    this.#wordsPerMs = idsPerMs(shape.layout) / WORD;
  }

  /** @throws RangeError for a layout with fewer than 32 ids a millisecond: they would share words */
  static create(shape: BitmapShape): IdBitmap {
    return new IdBitmap(shape, new SharedArrayBuffer(IdBitmap.bytes(shape)));
  }

  /** How much memory a shape takes. */
  static bytes({ layout, nodes, spanMs }: BitmapShape): number {
    const perMs = idsPerMs(layout);
    if (perMs % WORD !== 0)
      throw new RangeError(`layout ${layout.name} has ${perMs} ids a millisecond, which fill no word`);
    return (nodes * spanMs * perMs) / 8;
  }

  /**
   * The word that an id's bit stands in, or -1 for an id outside of the shape; its bit is
   * `1 << (sequence % 32)`.
   */
  wordOf(node: number, ms: number, sequence: number): number {
    const { nodes, fromMs, spanMs } = this.shape;
    const index = node - CLUSTER_NODE_ID_OFFSET;
    const place = ms - fromMs;
    if (index < 0 || index >= nodes || place < 0 || place >= spanMs) return -1;
    return (index * spanMs + place) * this.#wordsPerMs + (sequence >>> 5);
  }

  /**
   * Sets bits of a word, in one step that no other thread can come between; those of them that were set
   * before.
   */
  set(word: number, bits: number): number {
    return Atomics.or(this.#words, word, bits) & bits;
  }
}

/** How many bits are set in a word. */
export function bitCount(word: number): number {
  let count = 0;
  for (let rest = word; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}
