import type { Clock } from '../../clock.js';
import { ConfigError } from '../../errors.js';
import { RegistrationMap } from './registration-map.js';
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

interface Errors {
  readonly instance: ServiceInstance;
  readonly since: number;
  readonly count: number;
}

interface Down {
  readonly instance: ServiceInstance;
  readonly until: number;
}

/** Which instances are down, by the errors that were noted: Curator's DownInstancePolicy, on the monotonic clock and without a timer. */
export class DownInstances {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #threshold: number;
  readonly #timeoutMs: number;
  readonly #errors = new RegistrationMap<Errors>();
  readonly #down = new RegistrationMap<Down>();

  /** @throws {ConfigError} when the policy asks for the impossible */
  constructor(clock: Pick<Clock, 'monotonic'>, { threshold = DEFAULT_THRESHOLD, timeoutMs = DEFAULT_TIMEOUT_MS }: DownPolicy = {}) {
    if (!Number.isSafeInteger(threshold) || threshold < 1)
      throw new ConfigError('downPolicy.threshold', threshold, 'a whole number, 1 or more');
    if (!(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS))
      throw new ConfigError('downPolicy.timeoutMs', timeoutMs, `more than 0 and at most ${MAX_TIMEOUT_MS} milliseconds`);
    this.#clock = clock;
    this.#threshold = threshold;
    this.#timeoutMs = timeoutMs;
  }

  /** On the monotonic clock, when the next instance comes back; infinite while none is down. */
  get nextReturn(): number {
    return this.#down.first?.until ?? Number.POSITIVE_INFINITY;
  }

  /** Whether any is down, or was when {@link expire} was called last. */
  get any(): boolean {
    return this.#down.size > 0;
  }

  /** Notes an error. Those of an instance that is down already do not keep it down for longer. Returns whether it went down now. */
  note(instance: ServiceInstance): boolean {
    const now = this.#clock.monotonic();
    this.expire(now);
    if (this.#down.get(instance) !== undefined) return false;
    const before = this.#errors.get(instance);
    const count = (before?.count ?? 0) + 1;
    if (count < this.#threshold) {
      // The order is that of the first errors, which do not change.
      if (before === undefined) this.#errors.set(instance, { instance, since: now, count });
      else this.#errors.replace(instance, { ...before, count });
      return false;
    }
    this.#errors.delete(instance);
    this.#down.set(instance, { instance, until: now + this.#timeoutMs });
    return true;
  }

  isDown(instance: ServiceInstance): boolean {
    return this.#down.get(instance) !== undefined;
  }

  /** Lets those come back whose time is over, and forgets errors that do not count any more. Returns whether anybody came back. */
  expire(now: number): boolean {
    for (let first = this.#errors.first; first !== undefined && now >= first.since + this.#timeoutMs; first = this.#errors.first)
      this.#errors.delete(first.instance);
    const down = this.#down.size;
    for (let first = this.#down.first; first !== undefined && now >= first.until; first = this.#down.first)
      this.#down.delete(first.instance);
    return this.#down.size < down;
  }
}
