import type { Conditions } from './conditions.js';
import { Dice } from './dice.js';

/** Starts of shards that always fail: on one host, or of one shard on every host until the faults are over. */
export class StartFaults {
  readonly #sickHost: number;
  readonly #badShard: number;
  /** Whether the host never recovers. */
  readonly isForEver: boolean;

  constructor(
    private readonly conditions: Conditions,
    shards: number,
  ) {
    const dice = new Dice(conditions.seed).fork(12);
    this.#sickHost = dice.chance(0.4) ? dice.below(conditions.hosts.length) : -1;
    this.isForEver = dice.chance(0.5) && this.#sickHost >= 0;
    this.#badShard = dice.chance(0.2) ? dice.below(shards) : -1;
  }

  /** How much longer a shard may be without an owner that runs it: it waits after failed starts (T9). */
  get boundMs(): number {
    return this.#sickHost < 0 && this.#badShard < 0 ? 0 : 5 * this.conditions.longestMs;
  }

  isSick(host: number, now: number): boolean {
    return host === this.#sickHost && (this.isForEver || now < this.conditions.quietAt);
  }

  fails(host: number, shard: number, now: number): boolean {
    return this.isSick(host, now) || (shard === this.#badShard && now < this.conditions.quietAt);
  }
}
