import { checkArguments, checked, LEASE, maybe } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { notify } from '../../core/base/listeners.js';
import { shareAnswer } from '../../core/base/share-answer.js';
import type { Lease } from '../../core/lease/model/lease.js';
import { type ReconcileEvent, ReconcileLoop, type ReconcileState } from '../client/reconcile-loop.js';
import { closedError, type ZooKeeperContext } from '../client/zookeeper.js';
import { encodeInstance, UnreadableReports } from './instance/instance-codec.js';
import { newInstance, type ServiceInstanceInit } from './instance/new-instance.js';
import { jsonPayload, PAYLOAD, type PayloadCodec } from './instance/payload-codec.js';
import type { ServiceInstance } from './instance/service-instance.js';
import type { RegistrationEvent, WantedZnode } from './registered-znode.js';
import { Registration } from './registration.js';
import { ServiceCache } from './service-cache.js';
import { createModeOf, type ServiceCall, ServiceDirectory } from './service-directory.js';
import { instancePath } from './service-path.js';
import { type ProviderChoices, providerOf, type ServiceProvider } from './service-provider.js';

/** Events of service discovery, for logs. */
export type ServiceEvent =
  | ReconcileEvent
  | RegistrationEvent
  /**
   * An instance that is left out; reported once while its problem is the same. `problem` is the rest of the
   * sentence "<path> …".
   */
  | { readonly type: 'unreadable'; readonly path: string; readonly problem: string };

/** Options of {@link ServiceDiscovery}. The client stays open when it is closed: its session may have other uses. */
export interface ServiceDiscoveryOptions<P> extends ZooKeeperContext {
  /** The parent of all services, within the chroot; to be agreed on with all others. @default "/services" */
  readonly basePath?: string | undefined;
  /** The codec of the instances' payloads. @default any JSON, as it is */
  readonly payload?: PayloadCodec<P> | undefined;
  /**
   * While this lease is not valid nothing is written, only removed. Persistent instances, which would outlive
   * it, are refused.
   * @default none
   */
  readonly lease?: Pick<Lease, 'isValid'> | undefined;
  /** Must not block. One that throws has its error surface as an uncaught one, and does no harm here. */
  readonly onEvent?: ((event: ServiceEvent) => void) | undefined;
}

/** How long everything may take to be unregistered at the end, in milliseconds. */
const CLOSE_TIMEOUT_MS = 2_000;

/**
 * Registers instances of services in Curator's tree, keeps them registered, and finds those of other clients.
 *
 * Registrations are kept in memory and restored in every new session, and when another client removes or
 * overwrites a znode. That is at once, or after 100 to 300 ms if the znode is gone, since Curator replaces a
 * znode by removing and creating it. Calls without a connection take effect when it returns.
 *
 * If another client enables or disables an instance, that is kept until the instance is registered or updated
 * here again, as in Curator.
 *
 * The last registrant of an id holds it. `register` replaces the existing znode in one transaction, so a
 * restarted process does not wait for the end of its former session. A registrant that was replaced reports
 * `superseded`, is `degraded`, and registers again when the other has gone.
 *
 * Not guaranteed: which of two registrants holds the id when both return at the same moment; anything against
 * a registrant of another kind that removes and writes repeatedly. A znode that is replaced between a read
 * and its removal may be removed instead of the one that was read; its registrant creates it again. A
 * persistent instance may stay if its data were changed before its registrant first read it.
 *
 * @typeParam P the payload
 */
export class ServiceDiscovery<P = unknown> {
  readonly #payload: PayloadCodec<P>;
  readonly #directory: ServiceDirectory<P>;
  readonly #caches = new Set<ServiceCache<P>>();
  /** By path, a sequential one's without its number; also the ones that are being removed. */
  readonly #registrations = new Map<string, Registration>();
  readonly #loop: ReconcileLoop;
  #withdrawn = false;
  readonly #closed = shareAnswer(() => this.#close());

  /**
   * @param shared (internal) a loop that its owner closes. @default its own, which reports to `onEvent`
   * @throws {ConfigError} when the base path is not an absolute path
   */
  constructor(
    private readonly options: ServiceDiscoveryOptions<P>,
    private readonly shared?: ReconcileLoop,
  ) {
    const { zookeeper, clock, random, basePath } = checked(options, {
      payload: maybe(PAYLOAD),
      lease: maybe(LEASE),
    });
    checkArguments({ zookeeper, clock, random });
    this.#payload = options.payload ?? (jsonPayload as PayloadCodec<P>);
    this.#directory = new ServiceDirectory<P>({
      ...{ zookeeper, clock, basePath },
      payload: this.#payload,
      onUnreadable: this.#reports,
    });
    const name = 'the service discovery';
    this.#loop = shared ?? new ReconcileLoop({ zookeeper, clock, random, name, onEvent: this.#emit });
  }

  /** The parent of all services. */
  get basePath(): string {
    return this.#directory.basePath;
  }

  /** Whether all registrations are in the tree. */
  get state(): ReconcileState {
    return this.#loop.state;
  }

  /**
   * Calls `listener` with every new state, until the returned function is called. Not with the present one.
   * Listeners must not throw.
   */
  onState(listener: (state: ReconcileState) => void): () => void {
    return this.#loop.onState(listener);
  }

  /** The registrations of this object, whether they are in the tree or not. */
  get registered(): readonly ServiceInstance<P>[] {
    return [...this.#registrations.values()].flatMap(
      ({ wanted }) => (wanted?.instance as ServiceInstance<P> | undefined) ?? [],
    );
  }

  /**
   * An instance to be registered, with defaults for the other fields: a random id, the present time,
   * `DYNAMIC`, enabled. Registers nothing.
   *
   * @throws {ConfigError} that names the first field that is wrong
   */
  newInstance(init: ServiceInstanceInit<P>): ServiceInstance<P> {
    return newInstance(init, this.options);
  }

  /**
   * Registers an instance, in place of any other with its name and id, and keeps it registered. Resolves when
   * it is in the tree. After a rejection it is still registered, and written as soon as possible, until
   * `unregister`; except after a {@link ConfigError}, and if it is refused.
   *
   * @param call how long to wait; it bounds nothing else. @default 5000 ms
   * @throws {ConfigError} when not every reader understands the instance, or it is persistent and tied to a
   * lease; nothing is written then
   * @throws {ZooKeeperError} `timeout` when it is not in the tree in time, with the reason; `aborted` when it
   * is unregistered before; `closed`; `mixed-payloads` when the payload, or want of a port, would make the
   * service unreadable for the program of a present instance. It is not registered then
   * @throws `signal.reason` when `signal` aborts; if it had before, nothing is done
   */
  async register(instance: ServiceInstance<P>, call: ServiceCall = {}): Promise<void> {
    checked(call);
    const wanted = this.#wantedFor(instance);
    if (this.options.lease !== undefined && wanted.mode === 'persistent') {
      throw new ConfigError(
        'instance.serviceType',
        instance.serviceType,
        'DYNAMIC or DYNAMIC_SEQUENTIAL, which go with the session: a persistent one would outlive the lease',
      );
    }
    this.#throwIfClosed();
    call.signal?.throwIfAborted();
    const registration = this.#registrations.get(wanted.path) ?? this.#new(wanted);
    registration.register(wanted);
    await registration.whenApplied(call);
  }

  /**
   * Changes an instance that is registered here. Resolves when the change is in the tree. An instance that
   * another registrant has replaced stays replaced, and has the change when it returns.
   *
   * @param call how long to wait; it bounds nothing else. @default 5000 ms
   * @throws {ConfigError} when it is not registered here, has another type now, or not every reader
   * understands it; nothing is changed then
   * @throws as {@link register}
   */
  async update(instance: ServiceInstance<P>, call: ServiceCall = {}): Promise<void> {
    checked(call);
    const wanted = this.#wantedFor(instance);
    this.#throwIfClosed();
    call.signal?.throwIfAborted();
    const registration = this.#registrations.get(wanted.path);
    const before = registration?.wanted?.instance.serviceType;
    if (registration === undefined || before === undefined)
      throw new ConfigError('instance', wanted.path, 'one that is registered here, to be updated');
    if (before !== instance.serviceType)
      throw new ConfigError('instance.serviceType', instance.serviceType, `${before}, as it was registered`);
    registration.update(wanted);
    await registration.whenApplied(call);
  }

  /**
   * Withdraws an instance. Resolves when it is no longer in the tree, and at once if it is not registered
   * here. Another registrant's znode in its place stays. After a rejection it is still removed as soon as
   * possible, unless this is closed before.
   *
   * @param call how long to wait; it bounds nothing else. @default 5000 ms
   * @throws {ZooKeeperError} `timeout`; `aborted` when it is registered again before; `closed`
   * @throws `signal.reason` when `signal` aborts; if it had before, nothing is done
   */
  async unregister(instance: Pick<ServiceInstance<P>, 'name' | 'id'>, call: ServiceCall = {}): Promise<void> {
    checkArguments({ instance });
    checked(call);
    const { name, id } = instance;
    const path = instancePath(this.basePath, name, id);
    call.signal?.throwIfAborted();
    const registration = this.#registrations.get(path);
    registration?.unregister();
    await registration?.whenApplied(call);
  }

  /** @see ServiceDirectory.names */
  queryForNames(call?: ServiceCall): Promise<readonly string[]> {
    return this.#directory.names(call);
  }

  /** @see ServiceDirectory.instances */
  queryForInstances(name: string, call?: ServiceCall): Promise<readonly ServiceInstance<P>[]> {
    return this.#directory.instances(name, call);
  }

  /** @see ServiceDirectory.instance */
  queryForInstance(name: string, id: string, call?: ServiceCall): Promise<ServiceInstance<P> | undefined> {
    return this.#directory.instance(name, id, call);
  }

  /**
   * Follows the instances of a service, until the cache or this is closed.
   * @throws {ConfigError} when the name cannot be a znode's
   */
  cache(name: string): ServiceCache<P> {
    this.#throwIfClosed();
    const { zookeeper, clock } = this.options;
    const cache = new ServiceCache<P>({
      ...{ zookeeper, clock, basePath: this.basePath, name, payload: this.#payload },
      onUnreadable: this.#reports,
      onClose: () => this.#caches.delete(cache),
    });
    this.#caches.add(cache);
    return cache;
  }

  /**
   * Picks from the instances of a service, which it follows until the provider or this is closed.
   *
   * @throws {ConfigError} when the name cannot be a znode's
   */
  provider(name: string, choices: ProviderChoices<P> = {}): ServiceProvider<P> {
    checkArguments({ choices });
    const { clock, random } = this.options;
    return providerOf({ ...choices, source: this.cache(name), clock, random });
  }

  /**
   * Takes everything back for good. It is removed from the tree, now or when the connection returns, until
   * this is closed.
   *
   * @returns whether everything is known to be gone after `timeoutMs` at the latest
   */
  async withdraw(timeoutMs: number): Promise<boolean> {
    checkArguments({ timeoutMs });
    this.#withdrawn = true;
    for (const registration of [...this.#registrations.values()]) registration.unregister();
    return this.#loop.until(() => this.#registrations.size === 0, timeoutMs);
  }

  /**
   * Unregisters everything, including persistent instances, and closes all caches and providers. Never
   * rejects, and takes at most 2 seconds. A znode that could not be removed by then stays, for a dynamic
   * instance until the session ends.
   */
  close(): Promise<void> {
    return this.#closed();
  }

  async #close() {
    for (const cache of [...this.#caches]) cache.close();
    await this.withdraw(CLOSE_TIMEOUT_MS);
    for (const registration of this.#registrations.values()) this.#loop.forget(registration);
    if (this.shared === undefined) await this.#loop.close();
  }

  /** @throws {ZooKeeperError} `closed` when nothing can be registered any more */
  #throwIfClosed() {
    if (this.#withdrawn || this.state.status === 'closed') throw closedError('the service discovery');
  }

  #new(wanted: WantedZnode) {
    const { zookeeper, clock, random, lease } = this.options;
    const registration = new Registration(wanted, {
      ...{ zookeeper, clock, random, lease, emit: this.#emit, loop: this.#loop },
      onGone: () => this.#registrations.delete(wanted.path),
    });
    this.#registrations.set(wanted.path, registration);
    return registration;
  }

  #wantedFor(instance: ServiceInstance<P>): WantedZnode {
    const data = encodeInstance(instance, this.#payload);
    return {
      instance,
      path: instancePath(this.basePath, instance.name, instance.id),
      data,
      mode: createModeOf(instance.serviceType),
    };
  }

  readonly #emit = (event: ServiceEvent): void => {
    if (this.options.onEvent !== undefined) notify(this.options.onEvent, event);
  };

  /** Shared by queries, caches and providers, so that each znode is reported once. */
  readonly #reports = new UnreadableReports((path, problem) =>
    this.#emit({ type: 'unreadable', path, problem }),
  );
}
