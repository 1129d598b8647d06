import type { Clock } from '../../base/clock.js';
import type { Interval } from '../lease-store.js';
import type { BootClock } from './boot-clock.js';
import type { Stamp } from './seat-record.js';

interface Sighting {
  readonly etag: string;
  /** On the monotonic clock of this process. */
  readonly since: number;
}

/**
 * How old objects are. A stamp of this machine's boot clock tells; without one (another boot or another machine wrote it, or
 * a person did) all that is certain is how long this process itself has seen the object unchanged.
 */
export class ObjectAges {
  readonly #boot: BootClock;
  readonly #clock: Clock;
  readonly #sightings = new Map<string, Sighting>();

  constructor(boot: BootClock, clock: Clock) {
    this.#boot = boot;
    this.#clock = clock;
  }

  /** A stamp for a write that begins now. */
  stamp(): Stamp {
    return { clock: this.#boot.id, ms: this.#boot.now() };
  }

  /**
   * The age, in milliseconds.
   *
   * @param key of the object
   * @param etag of its state; the same one means that nothing changed
   * @param stamp when that state was written; undefined when nobody knows
   * @param lookedAt `Clock.monotonic()` before the object was looked at
   */
  of(key: string, etag: string, stamp: Stamp | undefined, lookedAt: number): Interval {
    if (stamp?.clock === this.#boot.id) {
      this.#sightings.delete(key);
      // Both times are cut to the clock's step, so the difference is off by less than one step either way.
      const age = this.#boot.now() - stamp.ms;
      return { min: Math.max(0, age - this.#boot.resolutionMs), max: Math.max(0, age) + this.#boot.resolutionMs };
    }
    const known = this.#sightings.get(key);
    if (known?.etag === etag) return { min: Math.max(0, lookedAt - known.since), max: Number.POSITIVE_INFINITY };
    this.#sightings.set(key, { etag, since: this.#clock.monotonic() });
    return { min: 0, max: Number.POSITIVE_INFINITY };
  }
}
