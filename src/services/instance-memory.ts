import type { Clock } from '../base/clock.js';
import type { ServiceInstance } from './service-instance.js';

/**
 * The same text for two values that tell of one registration: equal id, time of registration and address, whatever else may have been
 * updated since. An instance that was registered again is another one.
 */
export function registrationKey({ id, registrationTimeUTC, address, port, sslPort }: ServiceInstance): string {
  return `${id}\n${registrationTimeUTC}\n${address}\n${port}\n${sslPort}`;
}

interface Entry<V> {
  readonly instance: ServiceInstance;
  readonly value: V;
  readonly expiresAt: number;
}

/** Something that is known of instances for a while: of each registration a value, for the same time. */
export class InstanceMemory<V> {
  /** In the order in which they expire. */
  readonly #entries = new Map<string, Entry<V>>();
  /** How many entries each instance id has. To look for the id first saves making a key of every instance of a large service. */
  readonly #ids = new Map<string, number>();
  #checkedAt: number | undefined;

  /** @param memoryMs how long a value is remembered, in milliseconds of the monotonic clock */
  constructor(
    private readonly clock: Pick<Clock, 'now' | 'monotonic'>,
    private readonly memoryMs: number,
  ) {}

  get size(): number {
    return this.#entries.size;
  }

  /**
   * Whether something has expired, told at the latest a millisecond afterwards. It may be asked very often: it reads the monotonic clock, which
   * may be slow, once in a millisecond of the wall clock at most, and no clock at all while it is empty.
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
    return this.#ids.has(instance.id) ? this.#entries.get(registrationKey(instance))?.value : undefined;
  }

  /** Remembers a value from now on, in place of the one before. */
  set(instance: ServiceInstance, value: V): void {
    this.delete(instance);
    this.#entries.set(registrationKey(instance), { instance, value, expiresAt: this.clock.monotonic() + this.memoryMs });
    this.#ids.set(instance.id, (this.#ids.get(instance.id) ?? 0) + 1);
  }

  /** Changes a value that is remembered, but not until when it is. */
  replace(instance: ServiceInstance, value: V): void {
    const key = registrationKey(instance);
    const known = this.#entries.get(key);
    if (known !== undefined) this.#entries.set(key, { ...known, value });
  }

  delete(instance: ServiceInstance): void {
    if (!this.#ids.has(instance.id) || !this.#entries.delete(registrationKey(instance))) return;
    const others = (this.#ids.get(instance.id) ?? 1) - 1;
    if (others > 0) this.#ids.set(instance.id, others);
    else this.#ids.delete(instance.id);
  }

  /** Forgets what has expired. */
  expire(): void {
    if (this.#entries.size === 0) return;
    const now = this.clock.monotonic();
    for (const { instance, expiresAt } of this.#entries.values()) {
      if (now < expiresAt) return;
      this.delete(instance);
    }
  }
}
