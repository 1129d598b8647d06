import { withTimeout } from '../base/abort.js';
import type { Clock, RandomSource } from '../base/clock.js';
import { explain } from '../base/errors.js';
import type { Lease } from '../lease/model/lease.js';
import type { ReconcileCall, Reconciled } from '../zookeeper/reconcile-loop.js';
import type { Watch, Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { ZooKeeperError, type ZooKeeperFault } from '../zookeeper/zookeeper-error.js';
import { NamedRegistration } from './named-registration.js';
import {
  busy,
  catchUp,
  type RegisteredZnode,
  type RegistrationContext,
  type RegistrationEvent,
  type WantedZnode,
  WriteGuard,
} from './registered-znode.js';
import { SequentialRegistration } from './sequential-registration.js';
import type { ServiceCall } from './service-directory.js';

export interface RegistrationOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly lease: Pick<Lease, 'isValid'> | undefined;
  readonly emit: (event: RegistrationEvent) => void;
  /** It has to be settled. */
  readonly onTouched: () => void;
  /** Nothing of it is left, nor wanted. */
  readonly onGone: () => void;
  /** What is wrong with all of them; undefined while nothing is. */
  readonly problem: () => string | undefined;
}

/** How often it is tried against others' changes before it counts as a failure. */
const ROUNDS = 8;

/** One registered instance: which znode is wanted for it, and how far that stands in ZooKeeper. */
export class Registration implements Reconciled {
  dirty = true;
  #wanted: WantedZnode | undefined;
  #znode: RegisteredZnode;
  /** Whether anything may have been written. */
  #begun = false;
  #sessionId: string | undefined;
  #failure: string | undefined;
  #watch: { readonly path: string; readonly watch: Watch } | undefined;
  /** Ends the pause in which the path is left to others. */
  #pause: AbortController | undefined;
  #ended = false;
  readonly #context: RegistrationContext;
  readonly #waiters: RegistrationWaiters;

  constructor(
    wanted: WantedZnode,
    private readonly options: RegistrationOptions,
  ) {
    const { zookeeper, clock, random, lease, emit } = options;
    this.#context = { zookeeper, clock, random, emit, guard: new WriteGuard({ clock, lease }) };
    this.#waiters = new RegistrationWaiters(clock);
    this.#wanted = wanted;
    this.#znode = this.#znodeFor(wanted);
  }

  get path(): string {
    return this.#znode.path ?? this.#wanted?.path ?? '';
  }

  get blockedBy(): string | undefined {
    return this.#wanted && this.#znode.blockedBy;
  }

  /** Whether it is to stand in ZooKeeper. */
  get isWanted(): boolean {
    return this.#wanted !== undefined;
  }

  /**
   * Wants something else to stand there.
   *
   * @param claims whether another registrant's znode is replaced
   */
  want(wanted: WantedZnode, claims: boolean): void {
    if (this.#wanted === undefined) this.#waiters.fail(this.path, 'aborted', 'it has been registered again');
    this.#wanted = wanted;
    if (claims) this.#znode.claim();
    this.#context.guard.reset();
    this.options.onTouched();
  }

  /** Wants nothing to stand there. Where nothing ever did, it is gone at once. */
  drop(): void {
    if (this.#wanted === undefined) return;
    this.#wanted = undefined;
    this.#waiters.fail(this.path, 'aborted', 'it has been unregistered');
    if (!this.#begun) this.#gone();
    else this.options.onTouched();
  }

  /**
   * Resolves when it stands as it is wanted, or is gone where it is not. Giving up to wait changes nothing of the registration.
   *
   * @throws {ZooKeeperError} `timeout`; `aborted` when the opposite is wanted in the meantime; `closed`
   * @throws `signal.reason`
   */
  async settled(call: ServiceCall): Promise<void> {
    if (this.#ended) return;
    const verb = this.isWanted ? 'it does not stand there yet' : 'it is not removed yet';
    const late = () => [verb, this.#failure ?? this.blockedBy ?? this.options.problem()].filter(Boolean).join(': ');
    await this.#waiters.wait(call, this.path, late);
  }

  /** Goes a step towards what is wanted, and no further before something changes. */
  async settle(call: ReconcileCall): Promise<void> {
    // Its turn may come after its end, when another registration has its path.
    if (this.#ended) return;
    this.#begun = true;
    try {
      await this.#enter(call);
      await this.#settle(call);
      this.#failure = undefined;
    } catch (error) {
      this.#failure = explain(error);
      throw error;
    }
  }

  /** Looks after it no more. What stands there stays. */
  close(): void {
    this.#pause?.abort();
    this.#watch?.watch.close();
    this.#waiters.fail(this.path, 'closed', 'the service discovery has been closed');
  }

  /** Makes sure in a new session that its server knows of all that was done in the one before. */
  async #enter(call: ReconcileCall): Promise<void> {
    if (this.#sessionId === call.sessionId) return;
    this.#context.guard.reset();
    if (this.#sessionId !== undefined) await catchUp(this.options.zookeeper, this.path, call);
    this.#sessionId = call.sessionId;
  }

  async #settle(call: ReconcileCall): Promise<void> {
    this.#pause?.abort();
    for (let round = 0; round < ROUNDS; round += 1) {
      // Whatever happens from here on makes it dirty again.
      this.dirty = false;
      const wanted = this.#wanted;
      if (wanted === undefined || !this.#znode.suits(wanted)) {
        if (!(await this.#znode.clear(call)) || wanted !== this.#wanted) continue;
        if (wanted === undefined) return this.#gone();
        this.#znode = this.#znodeFor(wanted);
      }
      if (!(await this.#znode.establish(wanted, call)) || wanted !== this.#wanted) continue;
      this.#follow(call);
      if (this.#znode.pauseMs !== undefined) return this.#settleLater(this.#znode.pauseMs, call);
      if (this.#znode.blockedBy === undefined) this.#waiters.done();
      return;
    }
    throw busy(this.path);
  }

  /** Settles again after a pause, in which it stays dirty: another registrant may be about to write there. */
  #settleLater(ms: number, { signal }: ReconcileCall): void {
    if (signal.aborted) return;
    this.dirty = true;
    const pause = new AbortController();
    this.#pause = pause;
    void this.options.clock.sleep(ms, pause.signal).then(this.options.onTouched, () => undefined);
  }

  #gone(): void {
    this.#ended = true;
    this.#watch?.watch.close();
    this.options.onGone();
    this.#waiters.done();
  }

  /** Watches the znode, whose name may have changed. */
  #follow({ signal }: ReconcileCall): void {
    const { path } = this.#znode;
    if (path === undefined || path === this.#watch?.path || signal.aborted) return;
    this.#watch?.watch.close();
    this.#watch = { path, watch: this.options.zookeeper.watchData(path, (znode) => this.#onZnode(path, znode)) };
  }

  #onZnode(path: string, znode: Znode | undefined): void {
    const { state } = this.options.zookeeper;
    const sessionId = state.status === 'connected' ? state.sessionId : undefined;
    if (this.#wanted === undefined || path !== this.#znode.path) return;
    if (!this.#znode.expects(znode, this.#wanted, sessionId)) this.options.onTouched();
  }

  #znodeFor({ path, mode }: WantedZnode): RegisteredZnode {
    return mode === 'ephemeral-sequential' ? new SequentialRegistration(path, this.#context) : new NamedRegistration(path, this.#context);
  }
}

/** How long to wait where nobody says otherwise, in milliseconds. */
const SETTLE_TIMEOUT_MS = 5_000;

interface Waiter {
  readonly done: () => void;
  readonly fail: (reason: unknown) => void;
}

/** The calls that wait until a registration stands, or is gone. */
export class RegistrationWaiters {
  readonly #waiting = new Set<Waiter>();

  constructor(private readonly clock: Clock) {}

  /**
   * Resolves with the next {@link done}.
   *
   * @param late what is said after the time-out
   * @throws {ZooKeeperError} `timeout`, or as it is {@link fail}ed
   * @throws `signal.reason`
   */
  async wait({ timeoutMs = SETTLE_TIMEOUT_MS, signal }: ServiceCall, path: string, late: () => string): Promise<void> {
    let waiter: Waiter | undefined;
    const settled = new Promise<true>((resolve, reject) => {
      waiter = { done: () => resolve(true), fail: reject };
      this.#waiting.add(waiter);
    });
    try {
      if (await withTimeout(this.clock, timeoutMs, settled, signal)) return;
    } finally {
      if (waiter !== undefined) this.#waiting.delete(waiter);
    }
    throw failure(path, 'timeout', `${late()} (not within ${timeoutMs} ms)`);
  }

  /** What they wait for has come. */
  done(): void {
    for (const { done } of [...this.#waiting]) done();
  }

  /** What they wait for will not come any more. */
  fail(path: string, fault: ZooKeeperFault, reason: string): void {
    for (const waiter of [...this.#waiting]) waiter.fail(failure(path, fault, reason));
  }
}

function failure(path: string, fault: ZooKeeperFault, reason: string): ZooKeeperError {
  return new ZooKeeperError(`${path}: ${reason}`, { fault, outcome: 'unknown', path });
}
