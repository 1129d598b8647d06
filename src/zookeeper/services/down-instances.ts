import type { Clock } from '../../core/base/clock.js';
import { ConfigError } from '../../core/base/errors.js';
import type { ServiceInstance } from './instance/service-instance.js';

/** When an instance that fails is not picked, and for how long. */
export interface DownPolicy {
  /** After how many errors within `timeoutMs` an instance is down, 1 or more. @default 2 */
  readonly threshold?: number | undefined;
  /**
   * How long errors count, from the first one on, and how long an instance is down, from its last error on,
   * in milliseconds. Curator counts both from the first error.
   *
   * @default 30000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * The choice while all instances are down: `any` of them, or `none`, as by Curator. If all seem to be down,
   * usually something else has failed. Then `none` extends a short failure of the network to `timeoutMs`.
   *
   * @default 'any'
   */
  readonly whenAllDown?: 'any' | 'none' | undefined;
}

const DEFAULT_THRESHOLD = 2;
const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_TIMEOUT_MS = 86_400_000;

/** By registration, in the order in which the entries expire. */
type Expiring<T = unknown> = Map<string, T & { readonly expiresAt: number }>;

/**
 * Which instances are down, by the errors that were noted: Curator's DownInstancePolicy, on the monotonic
 * clock and without a timer.
 */
export class DownInstances {
  readonly #threshold: number;
  readonly #timeoutMs: number;
  /** The instances that are not down yet: the errors of each since the first that counts. */
  readonly #noted: Expiring<{ errors: number }> = new Map();
  readonly #down: Expiring = new Map();
  #checkedAt: number | undefined;

  /** @throws {ConfigError} when the policy is out of range */
  constructor(
    private readonly clock: Pick<Clock, 'now' | 'monotonic'>,
    { threshold = DEFAULT_THRESHOLD, timeoutMs = DEFAULT_TIMEOUT_MS }: DownPolicy = {},
  ) {
    if (!Number.isSafeInteger(threshold) || threshold < 1)
      throw new ConfigError('downPolicy.threshold', threshold, 'a whole number, 1 or more');
    if (!(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS))
      throw new ConfigError(
        'downPolicy.timeoutMs',
        timeoutMs,
        `more than 0 and at most ${MAX_TIMEOUT_MS} milliseconds`,
      );
    this.#threshold = threshold;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Whether an instance is to come back, at most a millisecond late. It is called at every pick. The
   * monotonic clock, which may be slow, is read at most once in a millisecond of the wall clock, and no clock
   * is read while no instance is down.
   */
  get due(): boolean {
    if (this.#down.size === 0) return false;
    const now = this.clock.now();
    if (now === this.#checkedAt) return false;
    this.#checkedAt = now;
    const [oldest] = this.#down.values();
    return oldest !== undefined && this.clock.monotonic() >= oldest.expiresAt;
  }

  /**
   * Notes an error. Errors of an instance that is down do not keep it down for longer. Returns whether it
   * went down now.
   */
  note(instance: ServiceInstance): boolean {
    this.#expire(this.#noted);
    this.#expire(this.#down);
    const key = registrationKey(instance);
    if (this.#down.has(key)) return false;
    const expiresAt = this.clock.monotonic() + this.#timeoutMs;
    const noted = this.#noted.get(key) ?? { errors: 0, expiresAt };
    noted.errors += 1;
    this.#noted.set(key, noted);
    if (noted.errors < this.#threshold) return false;
    this.#noted.delete(key);
    // The time of an instance that goes down begins with its last error.
    this.#down.set(key, { expiresAt });
    return true;
  }

  isDown(instance: ServiceInstance): boolean {
    // No key is made while no instance is down.
    return this.#down.size > 0 && this.#down.has(registrationKey(instance));
  }

  /** The given instances that are not down. */
  up<P>(instances: readonly ServiceInstance<P>[]): readonly ServiceInstance<P>[] {
    this.#expire(this.#down);
    return instances.filter((instance) => !this.isDown(instance));
  }

  #expire(entries: Expiring) {
    if (entries.size === 0) return;
    const now = this.clock.monotonic();
    for (const [key, { expiresAt }] of entries) {
      if (now < expiresAt) return;
      entries.delete(key);
    }
  }
}

/**
 * The same text for two values of one registration: equal id, time of registration and address, whatever else
 * has been updated since.
 */
export function registrationKey({
  id,
  registrationTimeUTC,
  address,
  port,
  sslPort,
}: ServiceInstance): string {
  return `${id}\n${registrationTimeUTC}\n${address}\n${port}\n${sslPort}`;
}
