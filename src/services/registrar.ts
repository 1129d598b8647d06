import type { Clock, RandomSource } from '../base/clock.js';
import type { Lease } from '../lease/model/lease.js';
import { type ReconcileEvent, ReconcileLoop, type ReconcileState } from '../zookeeper/reconcile-loop.js';
import type { SessionState } from '../zookeeper/session-state.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import type { RegistrationEvent, WantedZnode } from './registered-znode.js';
import { Registration } from './registration.js';

export interface RegistrarOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly lease: Pick<Lease, 'isValid'> | undefined;
  readonly emit: (event: ReconcileEvent | RegistrationEvent) => void;
}

/** All instances that one process has registered, and the loop that keeps them registered. */
export class Registrar {
  readonly #registrations = new Map<string, Registration>();
  readonly #forgetSession: () => void;
  readonly #loop: ReconcileLoop<Registration>;
  #withdrawn = false;

  constructor(private readonly options: RegistrarOptions) {
    const { zookeeper, clock, random, emit } = options;
    this.#forgetSession = zookeeper.onState((state) => this.#onSession(state));
    this.#loop = new ReconcileLoop({
      ...{ zookeeper, clock, random, name: 'the service discovery', onEvent: emit },
      items: () => this.#registrations.values(),
      settle: (registration, call) => registration.settle(call),
    });
  }

  get state(): ReconcileState {
    return this.#loop.state;
  }

  onState(listener: (state: ReconcileState) => void): () => void {
    return this.#loop.onState(listener);
  }

  /** The registration of this path (without a sequential one's number), also one that is being removed. */
  get(path: string): Registration | undefined {
    return this.#registrations.get(path);
  }

  /** Registers an instance, in place of whatever stands there. */
  add(wanted: WantedZnode): Registration {
    const known = this.#registrations.get(wanted.path);
    if (known !== undefined) {
      known.want(wanted, true);
      return known;
    }
    const { zookeeper, clock, random, lease, emit } = this.options;
    const registration: Registration = new Registration(wanted, {
      ...{ zookeeper, clock, random, lease, emit },
      onTouched: () => this.#loop.touched(registration),
      onGone: () => this.#registrations.delete(wanted.path),
      problem: () => (this.state.status === 'degraded' ? this.state.problem : undefined),
    });
    this.#registrations.set(wanted.path, registration);
    this.#loop.touched(registration);
    return registration;
  }

  /** @throws {ZooKeeperError} `closed` when nothing can be registered any more */
  throwIfClosed(): void {
    if (!this.#withdrawn && this.state.status !== 'closed') return;
    throw new ZooKeeperError('the service discovery has been closed', { fault: 'closed', outcome: 'not-applied' });
  }

  /**
   * Takes everything back for good, as long as it takes, until this is closed.
   *
   * @returns whether everything is known to be gone after that time
   */
  async withdraw(timeoutMs: number): Promise<boolean> {
    this.#withdrawn = true;
    for (const registration of [...this.#registrations.values()]) registration.drop();
    return this.#loop.until(() => this.#registrations.size === 0, timeoutMs);
  }

  /** Ends the loop. What stands in ZooKeeper stays until its session ends. Idempotent. */
  async close(): Promise<void> {
    for (const registration of this.#registrations.values()) registration.close();
    this.#forgetSession();
    await this.#loop.close();
  }

  #onSession(state: SessionState): void {
    if (state.status === 'closed') for (const registration of this.#registrations.values()) registration.close();
  }
}
