/** Something that happens at a time. Compared by time, then in the order in which it was put in. */
export interface Timed {
  readonly time: number;
  /** Given out by the queue. */
  order: number;
}

/** A binary heap: the earliest first. */
export class EventQueue<Item extends Timed> {
  readonly #heap: Item[] = [];
  #orders = 0;

  get size(): number {
    return this.#heap.length;
  }

  push(item: Item): void {
    item.order = this.#orders++;
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Item;
      if (!earlier(item, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = item;
  }

  peek(): Item | undefined {
    return this.#heap[0];
  }

  pop(): Item | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || first === last) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && earlier(heap[child + 1] as Item, heap[child] as Item)) child += 1;
      if (!earlier(heap[child] as Item, last)) break;
      heap[at] = heap[child] as Item;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function earlier(a: Timed, b: Timed): boolean {
  return a.time < b.time || (a.time === b.time && a.order < b.order);
}
