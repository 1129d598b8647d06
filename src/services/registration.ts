import type { ReconcileCall, Reconciled, ReconcileLoop } from '../zookeeper/reconcile-loop.js';
import type { Watch, Znode } from '../zookeeper/zookeeper.js';
import { ZooKeeperError, type ZooKeeperFault } from '../zookeeper/zookeeper-error.js';
import { NamedRegistration } from './named-registration.js';
import {
  catchUp,
  type RegisteredZnode,
  type RegistrationContext,
  type WantedZnode,
} from './registered-znode.js';
import { SequentialRegistration } from './sequential-registration.js';
import { busy, CALL_TIMEOUT_MS, type ServiceCall } from './service-directory.js';

export interface RegistrationOptions extends RegistrationContext {
  /** Settles it whenever it is touched. */
  readonly loop: Pick<ReconcileLoop<Registration>, 'touched' | 'until' | 'state'>;
  /** Nothing of it is left, nor wanted. */
  readonly onGone: () => void;
}

/** How often it is tried against others' changes before it counts as a failure. */
const ROUNDS = 8;

/** One registered instance: which znode is wanted for it, and how far ZooKeeper has it. */
export class Registration implements Reconciled {
  dirty = true;
  /** Undefined while it is being removed. */
  wanted: WantedZnode | undefined;
  #znode: RegisteredZnode;
  /** Whether anything may have been written. */
  #begun = false;
  /** Whether ZooKeeper has the wanted instance, or no instance if none is wanted. */
  #settled = false;
  /** How often it was unregistered, or registered again after that. */
  #turns = 0;
  #sessionId: string | undefined;
  #watch: { readonly path: string; readonly watch: Watch } | undefined;
  /** Ends the pause in which the path is left to others. */
  #pause: AbortController | undefined;
  #ended = false;

  constructor(
    wanted: WantedZnode,
    private readonly options: RegistrationOptions,
  ) {
    this.wanted = wanted;
    this.#znode = new (kindOf(wanted))(wanted.path, options);
  }

  get path(): string {
    return this.#znode.path;
  }

  get blockedBy(): string | undefined {
    return this.wanted && this.#znode.blockedBy;
  }

  /** Wants another znode. @param claims whether another registrant's znode is replaced */
  want(wanted: WantedZnode, claims: boolean): void {
    if (this.wanted === undefined) this.#turns += 1;
    if (claims) this.#znode.claim();
    this.wanted = wanted;
    this.#touch();
  }

  /** Wants no znode. Where nothing was ever written, it is gone at once. */
  drop(): void {
    if (this.wanted === undefined) return;
    this.#turns += 1;
    this.wanted = undefined;
    if (!this.#begun) this.#gone();
    this.#touch();
  }

  /**
   * Resolves when ZooKeeper has the wanted instance, or no instance if none is wanted. The end of the wait
   * does not change the registration.
   *
   * @throws {ZooKeeperError} `timeout`; `aborted` when the opposite is wanted in the meantime; `closed`
   * @throws `signal.reason`
   */
  async settled({ timeoutMs = CALL_TIMEOUT_MS, signal }: ServiceCall): Promise<void> {
    const { loop } = this.options;
    const [turn, isWanted] = [this.#turns, this.wanted !== undefined];
    let outcome: 'settled' | 'turned' | undefined;
    const isDecided = () => {
      if (this.#turns !== turn) outcome ??= 'turned';
      else if (this.#settled) outcome ??= 'settled';
      return outcome !== undefined;
    };
    await loop.until(isDecided, timeoutMs, signal);
    if (outcome === 'settled') return;
    if (outcome === 'turned')
      throw this.#failure('aborted', isWanted ? 'it has been unregistered' : 'it has been registered again');
    const { state } = loop;
    if (state.status === 'closed') throw this.#failure('closed', 'the service discovery has been closed');
    const problem = this.blockedBy ?? (state.status === 'degraded' ? state.problem : undefined);
    const late = [isWanted ? 'it does not stand there yet' : 'it is not removed yet', problem]
      .filter(Boolean)
      .join(': ');
    throw this.#failure('timeout', `${late} (not within ${timeoutMs} ms)`);
  }

  /** Takes steps towards the wanted state, and stops until something changes. */
  async settle(call: ReconcileCall): Promise<void> {
    // Its turn may come after its end, when another registration has its path.
    if (this.#ended) return;
    this.#begun = true;
    this.#pause?.abort();
    if (this.#sessionId !== call.sessionId) {
      this.#znode.forgetWrites();
      // The server of a new session may lag behind the writes of the previous one.
      if (this.#sessionId !== undefined) await catchUp(this.options.zookeeper, this.path, call);
      this.#sessionId = call.sessionId;
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      // Every change from here on makes it dirty again.
      this.dirty = false;
      const wanted = this.wanted;
      if (wanted === undefined || !(this.#znode instanceof kindOf(wanted))) {
        if (!(await this.#znode.clear(call)) || wanted !== this.wanted) continue;
        if (wanted === undefined) return this.#gone();
        this.#znode = new (kindOf(wanted))(wanted.path, this.options);
      }
      if (!(await this.#znode.establish(wanted, call)) || wanted !== this.wanted) continue;
      // After the tasks that wait for it.
      process.nextTick(() => this.#follow(call));
      if (this.#znode.pauseMs !== undefined) return this.#settleLater(this.#znode.pauseMs, call);
      this.#settled = this.#znode.blockedBy === undefined;
      return;
    }
    throw busy(this.path);
  }

  /** Stops following its znode, which stays as it is. */
  close(): void {
    this.#pause?.abort();
    this.#watch?.watch.close();
  }

  /** Settles again after a pause, in which it stays dirty: another registrant may be about to write there. */
  #settleLater(ms: number, { signal }: ReconcileCall): void {
    if (signal.aborted) return;
    this.dirty = true;
    this.#pause = new AbortController();
    void this.options.clock.sleep(ms, this.#pause.signal).then(
      () => this.options.loop.touched(this),
      () => undefined,
    );
  }

  #gone(): void {
    this.#ended = true;
    this.#settled = true;
    this.#watch?.watch.close();
    this.options.onGone();
  }

  #touch(): void {
    this.#settled = this.#ended;
    this.#znode.forgetWrites();
    this.options.loop.touched(this);
  }

  /** Watches the znode, whose name may have changed. */
  #follow({ signal }: ReconcileCall): void {
    const { path } = this.#znode;
    if (path === this.#watch?.path || signal.aborted || this.#ended) return;
    this.#watch?.watch.close();
    this.#watch = {
      path,
      watch: this.options.zookeeper.watchData(path, (znode) => this.#onZnode(path, znode)),
    };
  }

  #onZnode(path: string, znode: Znode | undefined): void {
    const { state } = this.options.zookeeper;
    if (this.wanted === undefined || path !== this.path) return;
    const isExpected =
      state.status === 'connected' && this.#znode.expects(znode, this.wanted, state.sessionId);
    if (!isExpected) this.options.loop.touched(this);
  }

  #failure(fault: ZooKeeperFault, reason: string): ZooKeeperError {
    return new ZooKeeperError(`${this.path}: ${reason}`, { fault, outcome: 'unknown', path: this.path });
  }
}

function kindOf({ mode }: WantedZnode) {
  return mode === 'ephemeral-sequential' ? SequentialRegistration : NamedRegistration;
}
