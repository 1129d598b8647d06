import type { Clock, RandomSource } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import { DownInstances, type DownPolicy } from './down-instances.js';
import type { InstanceSource } from './instance-source.js';
import { NoInstanceError } from './no-instance-error.js';
import type { ServiceInstance } from './service-instance.js';
import { isInService } from './spring-payload.js';
import type { ProviderStrategy, StrategyContext, StrategyFactory } from './strategies/provider-strategy.js';
import { roundRobin } from './strategies/round-robin.js';
import { instanceUrl, type UriVariables } from './uri-spec.js';

/** What may be chosen about a provider. */
export interface ProviderChoices<P = unknown> {
  /** How one of several is chosen. @default `roundRobin()` */
  readonly strategy?: StrategyFactory<P> | undefined;
  /** When an instance that fails is left alone, and for how long. @default two errors within 30 s, for 30 s */
  readonly downPolicy?: DownPolicy | undefined;
  /**
   * Which of the enabled instances may be picked at all. Asked once for each whenever something has changed. Must not throw.
   *
   * @default those with an address, or with a uriSpec
   */
  readonly accept?: ((instance: ServiceInstance<P>) => boolean) | undefined;
}

export interface ServiceProviderOptions<P = unknown> extends ProviderChoices<P> {
  readonly source: InstanceSource<P>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly random: Pick<RandomSource, 'next'>;
}

/** How often the strategy is asked again where it chose one that is not wanted. */
const MORE_TRIES = 3;

/**
 * Picks one of the instances of a service for each request, from what is known in memory: without waiting for anything, in constant time,
 * and without leaving anything to collect. Only the first pick after a change looks at all instances: one that has come, gone or been
 * updated, gone down or come back.
 *
 * Disabled instances are never picked, nor those that Spring Cloud's `instance_status` takes out of service. While ZooKeeper is away it picks from what was seen last.
 */
export class ServiceProvider<P = unknown> {
  readonly #options: ServiceProviderOptions<P>;
  readonly #down: DownInstances;
  readonly #accept: (instance: ServiceInstance<P>) => boolean;
  readonly #strategy: ProviderStrategy<P>;
  /** Chooses where the first one's choice is not wanted, so as not to disturb what that prepared for all candidates. */
  readonly #second: ProviderStrategy<P>;
  /** What the candidates were taken from. */
  #seen: readonly ServiceInstance<P>[] | undefined;
  #candidates: readonly ServiceInstance<P>[] = [];

  /** @throws {ConfigError} when the strategy is none, or the down policy asks for the impossible */
  constructor(options: ServiceProviderOptions<P>) {
    const { clock, random, strategy = roundRobin<P>(), downPolicy, accept = isReachable } = options;
    if (typeof strategy !== 'function') throw new ConfigError('strategy', strategy, 'a strategy itself, such as roundRobin()');
    this.#options = options;
    this.#down = new DownInstances(clock, downPolicy);
    this.#accept = accept;
    const context: StrategyContext = { clock, random };
    this.#strategy = strategy(context);
    this.#second = strategy(context);
  }

  /** The service, for people. */
  get name(): string {
    return this.#options.source.name;
  }

  /** All instances that are known, those included that are never picked. The same array until they change. */
  get instances(): readonly ServiceInstance<P>[] {
    return this.#options.source.instances;
  }

  /** Resolves once the instances have been read for the first time. Never rejects, and never resolves when closed before. */
  get ready(): Promise<void> {
    return this.#options.source.ready;
  }

  /** Undefined while ZooKeeper tells of every change; otherwise since when it does not, in milliseconds on the monotonic clock. */
  get stale(): { readonly since: number } | undefined {
    return this.#options.source.stale;
  }

  /**
   * Chooses an instance.
   *
   * @param except those that are not wanted, such as those which this request has been sent to already: the very values that were picked.
   *   With them it may take a look at all candidates
   * @returns undefined when there is none
   */
  pick(except?: ReadonlySet<ServiceInstance<P>>): ServiceInstance<P> | undefined {
    const { instances } = this.#options.source;
    if (instances !== this.#seen || this.#down.due) this.#choose(instances);
    if (this.#candidates.length === 0) return undefined;
    const picked = this.#strategy.pick(this.#candidates);
    return except === undefined || !except.has(picked) ? picked : this.#pickOther(except);
  }

  /**
   * The same for whoever cannot go on without.
   *
   * @throws {NoInstanceError} when there is none
   */
  need(except?: ReadonlySet<ServiceInstance<P>>): ServiceInstance<P> {
    const picked = this.pick(except);
    if (picked === undefined) throw this.#none();
    return picked;
  }

  /**
   * The URL of an instance that is picked for it: by its uriSpec, else of address and port.
   *
   * @param variables values for variables of a uriSpec that are others' own
   * @throws {NoInstanceError} when there is none, or none that tells enough for a URL
   */
  url(variables?: UriVariables): string {
    const url = instanceUrl(this.need(), variables);
    if (url !== undefined) return url;
    const hasUrl = (candidate: ServiceInstance<P>) => instanceUrl(candidate, variables) !== undefined;
    const others = this.#candidates.filter(hasUrl);
    if (others.length === 0) throw this.#none((instance) => this.#accept(instance) && hasUrl(instance));
    return instanceUrl(this.#second.pick(others), variables) as string;
  }

  /** Says that an instance has failed: did not answer, or not as one that is well. Enough of it and it is not picked for a while. */
  noteError(instance: ServiceInstance<P>): void {
    this.#strategy.noteError?.(instance);
    this.#second.noteError?.(instance);
    // The next pick looks at all of them again.
    if (this.#down.note(instance)) this.#seen = undefined;
  }

  /** Closes the source, which is all that there is to close. What was seen last is still picked from. Idempotent. */
  close(): void {
    this.#options.source.close();
  }

  #pickOther(except: ReadonlySet<ServiceInstance<P>>): ServiceInstance<P> | undefined {
    for (let tries = 0; tries < MORE_TRIES; tries += 1) {
      const picked = this.#strategy.pick(this.#candidates);
      if (!except.has(picked)) return picked;
    }
    const others = this.#candidates.filter((candidate) => !except.has(candidate));
    return others.length === 0 ? undefined : this.#second.pick(others);
  }

  #choose(instances: readonly ServiceInstance<P>[]): void {
    const down = this.#down;
    const accept = this.#accept;
    down.expire();
    const usable = instances.filter((instance) => instance.enabled && isInService(instance) && accept(instance));
    const up = down.any ? usable.filter((instance) => !down.isDown(instance)) : usable;
    const anyway = up.length === 0 && this.#options.downPolicy?.whenAllDown !== 'none';
    this.#candidates = anyway ? usable : up;
    this.#seen = instances;
  }

  #none(isUsable = this.#accept): NoInstanceError {
    const { source, clock } = this.#options;
    const enabled = source.instances.filter((instance) => instance.enabled && isInService(instance));
    const usable = enabled.filter(isUsable);
    const { stale } = source;
    return new NoInstanceError(source.name, {
      known: source.instances.length,
      disabled: source.instances.length - enabled.length,
      unacceptable: enabled.length - usable.length,
      down: usable.filter((instance) => this.#down.isDown(instance)).length,
      staleForMs: stale && clock.monotonic() - stale.since,
    });
  }
}

function isReachable({ address, uriSpec }: ServiceInstance): boolean {
  return address !== undefined || uriSpec !== undefined;
}
