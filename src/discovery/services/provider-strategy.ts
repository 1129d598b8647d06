import type { ServiceInstance } from './service-instance.js';

/** How one of several instances is chosen. One object serves one provider. */
export interface ProviderStrategy<P = unknown> {
  /**
   * Chooses one, without waiting for anything, in constant time.
   *
   * @param candidates those that may be chosen, at least one. The same array as the last time means that they are the same; what takes
   *   longer to prepare is prepared when it is another
   */
  pick(candidates: readonly ServiceInstance<P>[]): ServiceInstance<P>;

  /** An instance has failed somebody. It may still be among the candidates. */
  noteError?(instance: ServiceInstance<P>): void;
}
