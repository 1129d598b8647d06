import type { Clock } from '../base/clock.js';
import { Listeners } from '../base/listeners.js';
import type { SessionState } from '../zookeeper/session-state.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import type { ServiceInstance } from './service-instance.js';

/**
 * Where the instances of a service come from: a cache of Curator's tree, the providers of an endpoint, a
 * fixed list.
 */
export interface InstanceSource<P = unknown> {
  /** What the instances have in common, for people: a service's name. */
  readonly name: string;
  /**
   * The instances that were seen last, disabled ones included, in a stable order. The same array until they
   * change, then another.
   */
  readonly instances: readonly ServiceInstance<P>[];
  /**
   * Resolves once they have been read for the first time. Never rejects, and never resolves when closed
   * before.
   */
  readonly ready: Promise<void>;
  /**
   * Undefined while ZooKeeper tells of every change; otherwise since when it does not, in milliseconds on the
   * monotonic clock. Until then `instances` was right.
   */
  readonly stale: { readonly since: number } | undefined;
  /**
   * Calls `listener` after every change, with the new instances, until the returned function is called.
   * Listeners must not throw.
   */
  onChange(listener: (instances: readonly ServiceInstance<P>[]) => void): () => void;
  /** Follows no changes any more. What was seen last can still be asked for. Idempotent. */
  close(): void;
}

/**
 * A fixed list as a source: for instances that no ZooKeeper knows of, and for tests. Nothing is checked, and
 * nothing ever changes.
 */
export function fixedInstances<P>(name: string, instances: readonly ServiceInstance<P>[]): InstanceSource<P> {
  return {
    name,
    instances: [...instances],
    ready: Promise.resolve(),
    stale: undefined,
    onChange: () => () => {},
    close: () => {},
  };
}

export interface FollowedInstancesOptions {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** What the instances have in common, for people. */
  readonly name: string;
  /** Called at the end, once. */
  readonly onClose?: (() => void) | undefined;
}

/**
 * A source that follows ZooKeeper from one session to the next. A subclass says what is watched there and
 * what has been found.
 */
export abstract class FollowedInstances<P> implements InstanceSource<P> {
  readonly name: string;
  readonly ready: Promise<void>;
  /** @internal Since when changes may go unnoticed, on the monotonic clock; undefined while they do not. */
  protected staleSince: number | undefined;
  readonly #options: FollowedInstancesOptions;
  readonly #listeners = new Listeners<readonly ServiceInstance<P>[]>();
  #becomeReady: () => void = () => undefined;
  #forgetSession: () => void = () => undefined;
  #instances: readonly ServiceInstance<P>[] = [];
  #telling = false;
  #closed = false;

  /** The constructor of a subclass calls {@link start} at its end. */
  constructor(options: FollowedInstancesOptions) {
    this.#options = options;
    this.name = options.name;
    this.staleSince = options.clock.monotonic();
    this.ready = new Promise((resolve) => {
      this.#becomeReady = resolve;
    });
  }

  /** Empty until {@link ready}. */
  get instances(): readonly ServiceInstance<P>[] {
    return this.#instances;
  }

  get stale(): { readonly since: number } | undefined {
    return this.staleSince === undefined ? undefined : { since: this.staleSince };
  }

  /**
   * Calls `listener` after every change, from {@link ready} on. Changes in one packet of the servers are told
   * as one.
   */
  onChange(listener: (instances: readonly ServiceInstance<P>[]) => void): () => void {
    return this.#closed ? () => undefined : this.#listeners.add(listener);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#forgetSession();
    this.#listeners.clear();
    this.staleSince ??= this.#options.clock.monotonic();
    this.stop();
    this.#options.onClose?.();
  }

  /** @internal Opens all watches, with every connection anew: only a new watch tells that it has read. */
  protected abstract watch(): void;

  /** @internal Closes all watches. */
  protected abstract stop(): void;

  /**
   * @internal All instances, in their order; undefined while they have not all been read for the first time.
   */
  protected abstract collect(): readonly ServiceInstance<P>[] | undefined;

  /** @internal Begins to follow ZooKeeper. */
  protected start(): void {
    const { zookeeper } = this.#options;
    this.#forgetSession = zookeeper.onState((state) => this.#onSession(state));
    this.#onSession(zookeeper.state);
  }

  /** @internal Tells of changes, once for one packet of the servers. */
  protected tellSoon(): void {
    if (this.#telling) return;
    this.#telling = true;
    queueMicrotask(() => {
      this.#telling = false;
      if (!this.#closed) this.tell();
    });
  }

  /** @internal Tells of changes, and that all has been read. */
  protected tell(): void {
    const [before, now] = [this.#instances, this.collect()];
    if (now === undefined) return;
    if (now.length !== before.length || now.some((instance, index) => instance !== before[index])) {
      this.#instances = now;
      this.#listeners.tell(now);
    }
    this.#becomeReady();
  }

  #onSession({ status }: SessionState): void {
    if (this.#closed) return;
    this.staleSince ??= this.#options.clock.monotonic();
    if (status === 'connected') this.watch();
  }
}
