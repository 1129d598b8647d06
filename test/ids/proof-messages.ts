import type { HurriedTime } from './hurried-clock.js';
import type { BitmapShape } from './id-bitmap.js';
import type { IdFaults } from './id-witness.js';
import type { Plant } from './planted-ids.js';

/** What a thread gets when it starts. */
export interface ThreadSettings {
  readonly thread: number;
  readonly seed: number;
  readonly plant: Plant | undefined;
  readonly directory: string;
  readonly durationMs: number;
  readonly graceMs: number;
  readonly time: HurriedTime;
  readonly shape: BitmapShape;
  /** True where the generators choose the layout themselves. */
  readonly defaultLayout: boolean;
  readonly bitmap: SharedArrayBuffer;
  /** See {@link Shared}. */
  readonly shared: SharedArrayBuffer;
}

/** How a tenure came to its end. */
export type Ending =
  /** Given back, and asked for ids all the while. */
  | 'released'
  /** Cut off from the store, and asked for ids for as long as it gave any. */
  | 'requests cut'
  | 'replies cut'
  /** Cut off, and never heard of again: a crash. */
  | 'crashed'
  /** Taken away by an operator, and asked for ids for as long as it gave any. */
  | 'evicted'
  /** Lost for reasons of its own, a thread that got no turn for too long for one. */
  | 'lost';

/** What a thread reports of a tenure when it is over. */
export interface TenureReport {
  readonly thread: number;
  readonly nodeId: number;
  readonly version: number;
  readonly from: 'vacant' | 'released' | 'expired';
  readonly ending: Ending;
  readonly ids: number;
  readonly first: bigint | undefined;
  readonly last: bigint;
  readonly faults: IdFaults;
  /** How often the wall clock was stepped in it. */
  readonly steps: number;
}

/** What all threads of a run see: how many ids there are, and whether to go on. */
export class Shared {
  readonly #ids: BigInt64Array;
  readonly #stopped: Int32Array;

  constructor(readonly memory = new SharedArrayBuffer(16)) {
    this.#ids = new BigInt64Array(memory, 0, 1);
    this.#stopped = new Int32Array(memory, 8, 1);
  }

  get ids(): number {
    return Number(Atomics.load(this.#ids, 0));
  }

  add(ids: number): void {
    Atomics.add(this.#ids, 0, BigInt(ids));
  }

  get isStopped(): boolean {
    return Atomics.load(this.#stopped, 0) === 1;
  }

  stop(): void {
    Atomics.store(this.#stopped, 0, 1);
  }
}
