const FIRST_SLOTS = 8_192;

/**
 * 64-bit numbers above 2^32, each at most once. With millions of them a set of bigints would cost more than
 * all that makes them.
 */
export class IdSet {
  size = 0;
  /** High and low half in turn; a high half of 0 is an empty slot. */
  #slots = new Uint32Array(2 * FIRST_SLOTS);
  #mask = FIRST_SLOTS - 1;

  /** False when it is in there already. */
  add(high: number, low: number): boolean {
    const slots = this.#slots;
    let slot = mixed(high, low) & this.#mask;
    for (; slots[2 * slot] !== 0; slot = (slot + 1) & this.#mask) {
      if (slots[2 * slot] === high && slots[2 * slot + 1] === low) return false;
    }
    slots[2 * slot] = high;
    slots[2 * slot + 1] = low;
    this.size += 1;
    if (2 * this.size > this.#mask) this.#grow();
    return true;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(2 * old.length);
    this.#mask = 2 * this.#mask + 1;
    this.size = 0;
    for (let at = 0; at < old.length; at += 2)
      if (old[at] !== 0) this.add(old[at] as number, old[at + 1] as number);
  }
}

function mixed(high: number, low: number): number {
  const h = Math.imul(low ^ Math.imul(high, 0x9e3779b1), 0x85ebca6b);
  return h ^ (h >>> 15);
}
