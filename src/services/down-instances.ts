import type { Clock } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import { InstanceMemory } from './instance-memory.js';
import type { ServiceInstance } from './service-instance.js';

/** When an instance that fails is left alone, and for how long. */
export interface DownPolicy {
  /** After how many errors within `timeoutMs` an instance is down, 1 or more. @default 2 */
  readonly threshold?: number | undefined;
  /**
   * How long errors count, from the first one on, and how long an instance is down, from the error that took it down, in milliseconds. After
   * that it begins anew. Curator counts both from the first error.
   *
   * @default 30000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * What is picked while every instance that could be is down: `any` of them, or `none`. Curator picks none. But when all seem to be down
   * it is most often not they that have failed: then `none` turns a short trouble with the network into one of `timeoutMs`.
   *
   * @default 'any'
   */
  readonly whenAllDown?: 'any' | 'none' | undefined;
}

const DEFAULT_THRESHOLD = 2;
const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_TIMEOUT_MS = 86_400_000;

/** Which instances are down, by the errors that were noted: Curator's DownInstancePolicy, on the monotonic clock and without a timer. */
export class DownInstances {
  readonly #threshold: number;
  /** How many errors each has had since the first that counts. */
  readonly #errors: InstanceMemory<number>;
  readonly #down: InstanceMemory<true>;

  /** @throws {ConfigError} when the policy asks for the impossible */
  constructor(clock: Pick<Clock, 'now' | 'monotonic'>, { threshold = DEFAULT_THRESHOLD, timeoutMs = DEFAULT_TIMEOUT_MS }: DownPolicy = {}) {
    if (!Number.isSafeInteger(threshold) || threshold < 1)
      throw new ConfigError('downPolicy.threshold', threshold, 'a whole number, 1 or more');
    if (!(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS))
      throw new ConfigError('downPolicy.timeoutMs', timeoutMs, `more than 0 and at most ${MAX_TIMEOUT_MS} milliseconds`);
    this.#threshold = threshold;
    this.#errors = new InstanceMemory(clock, timeoutMs);
    this.#down = new InstanceMemory(clock, timeoutMs);
  }

  /** Whether an instance is to come back; see {@link InstanceMemory.due}. */
  get due(): boolean {
    return this.#down.due;
  }

  /** Whether any is down, or was when {@link expire} was called last. */
  get any(): boolean {
    return this.#down.size > 0;
  }

  /** Notes an error. Those of an instance that is down already do not keep it down for longer. Returns whether it went down now. */
  note(instance: ServiceInstance): boolean {
    this.expire();
    this.#errors.expire();
    if (this.isDown(instance)) return false;
    const count = (this.#errors.get(instance) ?? 0) + 1;
    if (count >= this.#threshold) {
      this.#errors.delete(instance);
      this.#down.set(instance, true);
      return true;
    }
    if (count === 1) this.#errors.set(instance, count);
    else this.#errors.replace(instance, count);
    return false;
  }

  isDown(instance: ServiceInstance): boolean {
    return this.#down.get(instance) !== undefined;
  }

  /** Lets those come back whose time is over. */
  expire(): void {
    this.#down.expire();
  }
}
