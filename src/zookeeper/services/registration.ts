import type { ReconcileCall, Reconciled, ReconcileLoop } from '../client/reconcile-loop.js';
import { catchUp } from '../client/retry.js';
import { parentOf } from '../client/znode-path.js';
import { CALL_TIMEOUT_MS, type Znode, ZooKeeperError } from '../client/zookeeper.js';
import { isReadAlike, mixedWithPresent, refusalOf } from './mixed-payloads.js';
import { NamedRegistration } from './named-registration.js';
import type { RegisteredZnode, RegistrationContext, WantedZnode } from './registered-znode.js';
import { SequentialRegistration } from './sequential-registration.js';
import type { ServiceCall } from './service-directory.js';

interface RegistrationOptions extends RegistrationContext {
  /** Keeps it registered, or removes it. */
  readonly loop: ReconcileLoop;
  /** Called when nothing of it is left, nor wanted. */
  readonly onGone: () => void;
}

/** One registered instance: which znode is wanted for it, and how far ZooKeeper has it. */
export class Registration implements Reconciled {
  dirty = true;
  /** Undefined while it is being removed. */
  wanted: WantedZnode | undefined;
  #znode: RegisteredZnode;
  /** Whether ZooKeeper has what is wanted, or nothing where nothing is. */
  #isApplied = false;
  #refusal: ZooKeeperError | undefined;
  /** What was wanted last and is not refused; undefined while it is being removed. */
  #accepted: WantedZnode | undefined;
  /** What was wanted before, and has not been compared yet. */
  #earlier: WantedZnode | undefined;
  /** Whether it has been compared with present instances after it was written, too. */
  #isComparedAgain = false;
  /** The session in which a step was made last; undefined where nothing can have been written. */
  #sessionId: string | undefined;

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

  /** Registers an instance, in place of another registrant's, too. */
  register(wanted: WantedZnode): void {
    this.#znode.takeOver();
    this.update(wanted);
  }

  /** Changes the instance that is registered. */
  update(wanted: WantedZnode): void {
    if (this.#accepted && isReadAlike(this.#accepted.data, wanted.data)) this.#accepted = wanted;
    if (this.wanted !== wanted) this.#earlier = this.wanted;
    this.#refusal = undefined;
    this.wanted = wanted;
    this.#apply();
  }

  /** Removes the instance. Where nothing was ever written, it is gone at once. */
  unregister(): void {
    if (this.wanted === undefined) return;
    this.wanted = undefined;
    this.#accepted = undefined;
    this.#earlier = undefined;
    if (this.#sessionId === undefined) this.#gone();
    else this.#apply();
  }

  /**
   * Resolves when ZooKeeper has the wanted instance, or no instance if none is wanted. The end of the wait
   * does not change the registration.
   *
   * @throws {ZooKeeperError} `timeout`; `aborted` when the opposite is wanted in the meantime; `closed`;
   * `mixed-payloads` when it is refused
   * @throws `signal.reason`
   */
  async whenApplied({ timeoutMs = CALL_TIMEOUT_MS, signal }: ServiceCall): Promise<void> {
    const { loop } = this.options;
    const isWanted = this.wanted !== undefined;
    let outcome: 'applied' | 'reversed' | undefined;
    // Asked at each change of what is wanted.
    const isDecided = () => {
      if (isWanted !== (this.wanted !== undefined)) outcome ??= 'reversed';
      else if (this.#isApplied) outcome ??= 'applied';
      return outcome !== undefined;
    };
    await loop.until(isDecided, timeoutMs, signal);
    if (isWanted && this.#refusal) throw this.#refusal;
    if (outcome === 'applied') return;
    if (outcome === undefined)
      throw loop.late(`${this.path}: it is not ${isWanted ? 'registered' : 'removed'}`, timeoutMs, this);
    throw new ZooKeeperError(
      `${this.path}: it has been ${isWanted ? 'unregistered' : 'registered again'}`,
      'aborted',
      'unknown',
      this.path,
    );
  }

  async step(call: ReconcileCall): Promise<boolean | number> {
    if (this.#sessionId !== call.sessionId) {
      this.#znode.forgetWrites();
      // The server of a new session may lag behind the writes of the previous one.
      if (this.#sessionId !== undefined) await catchUp(this.options.zookeeper, this.path, call);
      this.#sessionId = call.sessionId;
    }
    const { wanted } = this;
    if (wanted !== undefined && wanted !== this.#accepted) {
      const refusal = await refusalOf(this.options.zookeeper, wanted, call);
      if (wanted !== this.wanted) return false;
      if (refusal) {
        this.#refusal = refusal;
        this.wanted = this.#accepted ?? this.#earlier;
        this.#earlier = undefined;
        return false;
      }
      this.#accepted = wanted;
      this.#isComparedAgain = false;
    }
    if (wanted === undefined || !(this.#znode instanceof kindOf(wanted))) {
      await this.#znode.unregister(call);
      if (wanted !== this.wanted) return false;
      if (wanted === undefined) {
        this.#gone();
        return true;
      }
      this.#znode = new (kindOf(wanted))(wanted.path, this.options);
    }
    const done = await this.#znode.register(wanted, call);
    if (wanted !== this.wanted) return false;
    this.#isApplied = done === true && this.#znode.blockedBy === undefined;
    if (this.#isApplied && !this.#isComparedAgain) void this.#compareAgain(wanted);
    return done;
  }

  expects(znode: Znode | undefined, sessionId: string): boolean {
    return this.wanted === undefined || this.#znode.expects(znode, this.wanted, sessionId);
  }

  /** Another program may have registered at the same moment. */
  async #compareAgain(wanted: WantedZnode) {
    const { zookeeper, emit } = this.options;
    this.#isComparedAgain = true;
    const problem = await mixedWithPresent(zookeeper, wanted).catch(() => undefined);
    if (problem) emit({ type: 'mixed-payloads', path: parentOf(wanted.path), problem });
  }

  #gone() {
    this.#isApplied = true;
    this.options.onGone();
    this.options.loop.forget(this);
  }

  #apply() {
    this.#isApplied = false;
    this.#znode.forgetWrites();
    this.options.loop.reconcile(this);
  }
}

function kindOf({ mode }: WantedZnode) {
  return mode === 'ephemeral-sequential' ? SequentialRegistration : NamedRegistration;
}
