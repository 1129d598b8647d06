import { checkArguments, checked, FUNCTION, having, kind, maybe, OBJECT } from '../../core/base/arguments.js';
import { NodeLeaseError } from '../../core/base/errors.js';
import { DownInstances, type DownPolicy } from './down-instances.js';
import { instanceState } from './instance/payload-codec.js';
import type { ServiceInstance } from './instance/service-instance.js';
import { instanceUrl, type UriVariables } from './instance/uri-spec.js';
import type { InstanceSource } from './instance-source.js';
import {
  type ProviderStrategy,
  QuickRandom,
  type StrategyContext,
  type StrategyFactory,
} from './strategies/provider-strategy.js';
import { roundRobin } from './strategies/strategies.js';

/** Options of a provider. */
export interface ProviderChoices<P = unknown> {
  /** How one of several is chosen. @default `roundRobin()` */
  readonly strategy?: StrategyFactory<P> | undefined;
  /**
   * When an instance that fails is not picked, and for how long.
   * @default two errors within 30 s, for 30 s
   */
  readonly downPolicy?: DownPolicy | undefined;
  /**
   * Which of the enabled instances may be picked at all. Called once for each after every change. Must not
   * throw.
   *
   * @default those with an address, or with a uriSpec
   */
  readonly accept?: ((instance: ServiceInstance<P>) => boolean) | undefined;
}

export interface ServiceProviderOptions<P = unknown> extends ProviderChoices<P>, StrategyContext {
  readonly source: InstanceSource<P>;
}

/** How often the strategy is called again after it chose an unwanted instance. */
const MORE_TRIES = 3;

const KINDS = {
  source: kind('a source of instances', (value) => Array.isArray(Object(value).instances)),
  clock: having('a clock, such as systemClock', 'now', 'monotonic'),
  random: having('a source of random numbers, such as systemRandom', 'next'),
  strategy: maybe(kind('a strategy itself, such as roundRobin()', FUNCTION.is)),
  downPolicy: maybe(OBJECT),
  accept: maybe(FUNCTION),
};

/**
 * Picks one of the instances of a service for each request, from memory: at once, in constant time, and
 * without garbage. Only the first pick after a change reads all instances. It never picks a disabled
 * instance, or one that Spring Cloud's `instance_status` takes out of service. While ZooKeeper is away it
 * picks from the last state.
 */
export class ServiceProvider<P = unknown> {
  readonly #down: DownInstances;
  readonly #accept: (instance: ServiceInstance<P>) => boolean;
  readonly #strategy: ProviderStrategy<P>;
  /** Chooses among fewer candidates: the first strategy keeps its preparation for all. */
  readonly #second: ProviderStrategy<P>;
  /** The instances from which the candidates were taken. */
  #seen: readonly ServiceInstance<P>[] | undefined;
  #candidates: readonly ServiceInstance<P>[] = [];

  /** @throws {ConfigError} when the strategy is none, or the down policy is out of range */
  constructor(private readonly options: ServiceProviderOptions<P>) {
    const {
      clock,
      strategy = roundRobin<P>(),
      downPolicy,
      accept = isReachable,
    } = checked(options, KINDS, 'options', []);
    this.#down = new DownInstances(clock, downPolicy);
    this.#accept = accept;
    const context = { clock, random: new QuickRandom(options.random) };
    this.#strategy = strategy(context);
    checkArguments(
      { strategy: this.#strategy },
      { strategy: having('a strategy, which has a method pick', 'pick') },
    );
    this.#second = strategy(context);
  }

  /** The service, for people. */
  get name(): string {
    return this.options.source.name;
  }

  /** All known instances, also the ones that are never picked. The same array until they change. */
  get instances(): readonly ServiceInstance<P>[] {
    return this.options.source.instances;
  }

  /**
   * Resolves once the instances have been read for the first time. Never rejects, and never resolves when
   * closed before.
   */
  get ready(): Promise<void> {
    return this.options.source.ready;
  }

  /**
   * Undefined while ZooKeeper reports every change; otherwise since when it does not, in milliseconds on the
   * monotonic clock.
   */
  get stale(): { readonly since: number } | undefined {
    return this.options.source.stale;
  }

  /**
   * Chooses an instance.
   *
   * @param except unwanted instances, such as the ones that have had this request: the very values
   * that were picked. With them it may read all candidates
   * @returns undefined when there is none
   */
  pick(except?: ReadonlySet<ServiceInstance<P>>): ServiceInstance<P> | undefined {
    if (except !== undefined) checkArguments({ except });
    const { instances } = this.options.source;
    if (instances !== this.#seen || this.#down.due) this.#choose(instances);
    if (this.#candidates.length === 0) return undefined;
    const picked = this.#strategy.pick(this.#candidates);
    return except === undefined || !except.has(picked) ? picked : this.#pickOther(except);
  }

  /**
   * As {@link pick}, for callers that cannot continue without an instance.
   * @throws {NoInstanceError} when there is none
   */
  need(except?: ReadonlySet<ServiceInstance<P>>): ServiceInstance<P> {
    const picked = this.pick(except);
    if (picked === undefined) throw this.#none();
    return picked;
  }

  /**
   * The URL of an instance that is picked for it: from its uriSpec, otherwise from address and port.
   *
   * @param variables values for the other variables of a uriSpec
   * @throws {NoInstanceError} when there is none with enough data for a URL
   */
  url(variables?: UriVariables): string {
    const url = instanceUrl(this.need(), variables);
    if (url !== undefined) return url;
    const hasUrl = (candidate: ServiceInstance<P>) => instanceUrl(candidate, variables) !== undefined;
    const others = this.#candidates.filter(hasUrl);
    if (others.length === 0) throw this.#none((instance) => this.#accept(instance) && hasUrl(instance));
    return instanceUrl(this.#second.pick(others), variables) as string;
  }

  /**
   * Says that an instance has failed: it did not answer, or not as a healthy one. After enough errors it is
   * not picked for a while.
   */
  noteError(instance: ServiceInstance<P>): void {
    checkArguments({ instance });
    this.#strategy.noteError?.(instance);
    this.#second.noteError?.(instance);
    // The next pick reads all of them again.
    if (this.#down.note(instance)) this.#seen = undefined;
  }

  /** Closes the source. It still picks from the last state. Idempotent. */
  close(): void {
    this.options.source.close();
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
    const usable = instances.filter((instance) => isOffered(instance) && this.#accept(instance));
    const up = this.#down.up(usable);
    this.#candidates = up.length === 0 && this.options.downPolicy?.whenAllDown !== 'none' ? usable : up;
    this.#seen = instances;
  }

  #none(isUsable = this.#accept): NoInstanceError {
    const { source, clock } = this.options;
    const { name, instances, stale } = source;
    const offered = instances.filter(isOffered);
    const usable = offered.filter(isUsable);
    return new NoInstanceError(name, {
      known: instances.length,
      disabled: instances.length - offered.length,
      unacceptable: offered.length - usable.length,
      down: usable.filter((instance) => this.#down.isDown(instance)).length,
      staleForMs: stale && clock.monotonic() - stale.since,
    });
  }
}

/** A provider with its own source, which is closed where that cannot be one. @throws as {@link ServiceProvider} */
export function providerOf<P>(options: ServiceProviderOptions<P>) {
  try {
    return new ServiceProvider(options);
  } catch (error) {
    options.source.close();
    throw error;
  }
}

/** Whether an instance is offered to callers: it is enabled, and in service for Spring Cloud. */
export function isOffered(instance: ServiceInstance): boolean {
  return instanceState(instance) === 'enabled';
}

function isReachable({ address, uriSpec }: ServiceInstance): boolean {
  return address !== undefined || uriSpec !== undefined;
}

/** The facts of a service without an instance to pick. */
export interface NoInstanceFacts {
  /** How many are known at all. */
  readonly known: number;
  /** How many of them are disabled, or out of service by Spring Cloud's `instance_status`. */
  readonly disabled: number;
  /** How many of the others are not acceptable, by default those without an address. */
  readonly unacceptable: number;
  /** How many of the rest are down: they failed too often. */
  readonly down: number;
  /** How long ZooKeeper has reported nothing, in milliseconds; undefined while it reports every change. */
  readonly staleForMs: number | undefined;
}

/** A service has no instance for a request, or only instances that were tried already. */
export class NoInstanceError extends NodeLeaseError {
  readonly code = 'NO_INSTANCE';

  /** @param service the service, or another common name of the instances */
  constructor(
    readonly service: string,
    readonly facts?: NoInstanceFacts,
  ) {
    super(`no instance of ${service} can be picked${facts === undefined ? '' : ` (${describe(facts)})`}`);
  }
}

function describe({ known, disabled, unacceptable, down, staleForMs }: NoInstanceFacts): string {
  const parts = [
    [disabled, 'disabled or out of service'],
    [unacceptable, 'without a usable address'],
    [down, 'down'],
    [known - disabled - unacceptable - down, 'tried already'],
  ] as const;
  const counts = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  const since =
    staleForMs === undefined ? '' : `; ZooKeeper has not answered for ${Math.round(staleForMs / 1_000)} s`;
  return `${known === 0 ? 'none is known' : `${known} known: ${counts.join(', ')}`}${since}`;
}
