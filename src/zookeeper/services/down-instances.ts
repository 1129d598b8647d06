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
  /** The errors of each since the first that counts. */
  readonly #errors: InstanceMemory<{ count: number }>;
  readonly #down: InstanceMemory<true>;

  /** @throws {ConfigError} when the policy is out of range */
  constructor(
    clock: Pick<Clock, 'now' | 'monotonic'>,
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
    this.#errors = new InstanceMemory(clock, timeoutMs);
    this.#down = new InstanceMemory(clock, timeoutMs);
  }

  /** Whether an instance is to come back; see {@link InstanceMemory.due}. */
  get due(): boolean {
    return this.#down.due;
  }

  /**
   * Notes an error. Errors of an instance that is down do not keep it down for longer. Returns whether it
   * went down now.
   */
  note(instance: ServiceInstance): boolean {
    this.#down.expire();
    this.#errors.expire();
    if (this.isDown(instance)) return false;
    const errors = this.#errors.get(instance) ?? { count: 0 };
    errors.count += 1;
    if (errors.count >= this.#threshold) {
      this.#errors.delete(instance);
      this.#down.set(instance, true);
      return true;
    }
    if (errors.count === 1) this.#errors.set(instance, errors);
    return false;
  }

  isDown(instance: ServiceInstance): boolean {
    return this.#down.get(instance) !== undefined;
  }

  /** The given instances that are not down. */
  up<P>(instances: readonly ServiceInstance<P>[]): readonly ServiceInstance<P>[] {
    this.#down.expire();
    return instances.filter((instance) => !this.isDown(instance));
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

/** Temporary facts about instances: a value for each registration, all for the same time. */
class InstanceMemory<V> {
  /** By registration, in the order in which they expire. */
  readonly #entries = new Map<string, { readonly value: V; readonly expiresAt: number }>();
  #checkedAt: number | undefined;

  /** @param memoryMs how long a value is remembered, in milliseconds of the monotonic clock */
  constructor(
    private readonly clock: Pick<Clock, 'now' | 'monotonic'>,
    private readonly memoryMs: number,
  ) {}

  /**
   * Whether an entry has expired, at most a millisecond late. It is called at every pick. The monotonic
   * clock, which may be slow, is read at most once in a millisecond of the wall clock, and no clock is read
   * without entries.
   */
  get due(): boolean {
    if (this.#entries.size === 0) return false;
    const now = this.clock.now();
    if (now === this.#checkedAt) return false;
    this.#checkedAt = now;
    const [oldest] = this.#entries.values();
    return oldest !== undefined && this.clock.monotonic() >= oldest.expiresAt;
  }

  get(instance: ServiceInstance): V | undefined {
    // Without entries no key is made.
    return this.#entries.size === 0 ? undefined : this.#entries.get(registrationKey(instance))?.value;
  }

  /** Remembers a value from now on, in place of the one before. */
  set(instance: ServiceInstance, value: V): void {
    this.delete(instance);
    this.#entries.set(registrationKey(instance), {
      value,
      expiresAt: this.clock.monotonic() + this.memoryMs,
    });
  }

  delete(instance: ServiceInstance): void {
    this.#entries.delete(registrationKey(instance));
  }

  /** Forgets expired entries. */
  expire(): void {
    if (this.#entries.size === 0) return;
    const now = this.clock.monotonic();
    for (const [key, { expiresAt }] of this.#entries) {
      if (now < expiresAt) return;
      this.#entries.delete(key);
    }
  }
}
