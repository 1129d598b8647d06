import type { ServiceInstance } from './service-instance.js';

/**
 * The same text for two values that tell of one registration: equal id, time of registration and address, whatever else may have been
 * updated since. An instance that was registered again is another one.
 */
export function registrationKey({ id, registrationTimeUTC, address, port, sslPort }: ServiceInstance): string {
  return `${id}\n${registrationTimeUTC}\n${address}\n${port}\n${sslPort}`;
}

/** Registrations, and something about each, in the order in which they were put in. Quick to tell that one is not among them. */
export class RegistrationMap<V> {
  readonly #values = new Map<string, V>();
  /** How many registrations there are of each id. To look for these first spares making a key of every instance of a large service. */
  readonly #ids = new Map<string, number>();

  get size(): number {
    return this.#values.size;
  }

  /** The one that was put in first. */
  get first(): V | undefined {
    return this.#values.size === 0 ? undefined : (this.#values.values().next().value as V);
  }

  get(instance: ServiceInstance): V | undefined {
    return this.#ids.has(instance.id) ? this.#values.get(registrationKey(instance)) : undefined;
  }

  /** Puts it in as the last one, whether or not it was there. */
  set(instance: ServiceInstance, value: V): void {
    this.delete(instance);
    this.#values.set(registrationKey(instance), value);
    this.#ids.set(instance.id, (this.#ids.get(instance.id) ?? 0) + 1);
  }

  /** Changes what is known of one that is there, in its place. */
  replace(instance: ServiceInstance, value: V): void {
    const key = registrationKey(instance);
    if (this.#values.has(key)) this.#values.set(key, value);
  }

  delete(instance: ServiceInstance): void {
    if (!this.#ids.has(instance.id) || !this.#values.delete(registrationKey(instance))) return;
    const others = (this.#ids.get(instance.id) ?? 1) - 1;
    if (others > 0) this.#ids.set(instance.id, others);
    else this.#ids.delete(instance.id);
  }
}
