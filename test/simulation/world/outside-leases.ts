import { nativeCodec } from '../../../src/core/lease/model/lease-codec.js';
import { leaseKey } from '../../../src/core/lease/model/lease-state.js';
import type { Interval, ListedObject, StoredObject } from '../../../src/core/store/lease-store.js';

/** How long the leases last, in milliseconds: no other task ever gets these ids. */
const DAY_MS = 86_400_000;

/**
 * Node ids that are held by parties outside of the simulated world from its beginning to its end, renewed all
 * the time: so that a world of a few tasks can have node ids that need more bits than others do. They make
 * ids of 16 bits, and no task has to wait for them.
 */
export class OutsideLeases {
  readonly #rows = new Map<string, ListedObject>();
  readonly #body: string;

  constructor(from: number, to: number, timestamp: number) {
    this.#body = nativeCodec.encode({
      ...{ kind: 'held', taskId: 'outside', version: 1, timestamp, durationMs: DAY_MS, knownNodes: {} },
      ...{ nonce: 'outside', renewal: 1, acquiredAt: 0, idWidth: 16, narrowIdsUntil: 0 },
    }).body;
    for (let id = from; id < to; id += 1) {
      const key = leaseKey(id);
      this.#rows.set(key, {
        key,
        etag: `outside-${id}`,
        size: this.#body.length,
        age: { min: 0, max: 1_000 },
      });
    }
  }

  get rows(): Iterable<ListedObject> {
    return this.#rows.values();
  }

  has(key: string): boolean {
    return this.#rows.has(key);
  }

  read(key: string, storeTime: Interval): StoredObject | undefined {
    const row = this.#rows.get(key);
    return row && { key, body: this.#body, metadata: {}, etag: row.etag, age: row.age, storeTime };
  }
}
