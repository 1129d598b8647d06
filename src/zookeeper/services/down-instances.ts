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

/**
 * Which instances are down, by the errors that were noted: Curator's DownInstancePolicy, on the monotonic
 * clock and without a timer.
 */
export class DownInstances {
  readonly #threshold: number;
  readonly #timeoutMs: number;
  /** By registration, in the order in which they expire: the errors of each since the first that counts. */
  readonly #noted = new Map<string, { errors: number; readonly expiresAt: number }>();
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
   * is read without errors.
   */
  get due(): boolean {
    if (this.#noted.size === 0) return false;
    const now = this.clock.now();
    if (now === this.#checkedAt) return false;
    this.#checkedAt = now;
    const [oldest] = this.#noted.values();
    return oldest !== undefined && this.clock.monotonic() >= oldest.expiresAt;
  }

  /**
   * Notes an error. Errors of an instance that is down do not keep it down for longer. Returns whether it
   * went down now.
   */
  note(instance: ServiceInstance): boolean {
    this.#expire();
    const key = registrationKey(instance);
    const noted = this.#noted.get(key);
    const errors = (noted?.errors ?? 0) + 1;
    if (noted && errors !== this.#threshold) {
      noted.errors = errors;
      return false;
    }
    // At the end of the order again: the time of an instance that goes down begins with its last error.
    this.#noted.delete(key);
    this.#noted.set(key, { errors, expiresAt: this.clock.monotonic() + this.#timeoutMs });
    return errors === this.#threshold;
  }

  isDown(instance: ServiceInstance): boolean {
    // Without errors no key is made.
    if (this.#noted.size === 0) return false;
    return (this.#noted.get(registrationKey(instance))?.errors ?? 0) >= this.#threshold;
  }

  /** The given instances that are not down. */
  up<P>(instances: readonly ServiceInstance<P>[]): readonly ServiceInstance<P>[] {
    this.#expire();
    return instances.filter((instance) => !this.isDown(instance));
  }

  #expire(): void {
    if (this.#noted.size === 0) return;
    const now = this.clock.monotonic();
    for (const [key, { expiresAt }] of this.#noted) {
      if (now < expiresAt) return;
      this.#noted.delete(key);
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
