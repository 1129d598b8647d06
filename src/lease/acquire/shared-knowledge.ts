import type { KnownNodes } from '../model/lease-state.js';

/** Fewer entries than this are not worth sharing. */
const FEWEST = 16;
/** How many different states of knowledge are remembered. */
const REMEMBERED = 16;

/**
 * Keeps what the nodes know of each other once for all that know the same: in a large cluster most do, and each knows of all others, so that
 * it would take memory by the square of their number.
 */
export class SharedKnowledge {
  /** By their text, those used last at the end. */
  readonly #known = new Map<string, KnownNodes>();

  /** The known nodes themselves, or the equal ones of an earlier call. */
  shared(knownNodes: KnownNodes): KnownNodes {
    if (Object.keys(knownNodes).length < FEWEST) return knownNodes;
    const text = JSON.stringify(knownNodes);
    const same = this.#known.get(text) ?? knownNodes;
    this.#known.delete(text);
    this.#known.set(text, same);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= REMEMBERED) break;
      this.#known.delete(oldest);
    }
    return same;
  }
}
