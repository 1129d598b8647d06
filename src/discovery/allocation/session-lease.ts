import type { Clock, RandomSource } from '../../clock.js';
import { explain } from '../../errors.js';
import { type Lease, type LeaseListener, LeaseLostError, LeaseReleasedError, type LossReason } from '../../lease/lease.js';
import { type LeaseTiming, leaseTiming } from '../../lease/lease-timing.js';
import type { LeaseAttributes, LeaseTracer } from '../../lease/lease-tracer.js';
import { retry } from '../../lease/retry.js';
import { sleepUntil } from '../../lease/sleep-until.js';
import type { SessionState } from '../../zookeeper/session-state.js';
import type { Watch, Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import type { BoundCall } from './bound-session.js';
import { releaseClaim } from './claim-release.js';
import { type IdTenure, isOurs, tenureData } from './id-claim.js';
import { SessionTime } from './session-time.js';

export interface SessionLeaseOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly emit: LeaseListener;
  /** Must do no harm, see `harmless`. */
  readonly tracer: LeaseTracer;
  /** What is left to do once the znode is removed. Must not throw. */
  readonly onReleased?: () => Promise<void>;
}

/**
 * Holds one node id by an ephemeral znode: proves again and again that its session lives, knows until when it surely does, and says so
 * when it is lost.
 *
 * The proof is a heartbeat that only the leader, with a majority, can answer: a transaction that checks that the znode is there and
 * changes nothing, so that nobody's watch is set off by it; then a look at whose znode it is, which in the same session comes after it.
 * {@link SessionProof} says how far that carries. Validity rests on {@link isValid} comparing clocks, never on the loop being on time.
 */
export class SessionLease implements Lease {
  readonly id: number;
  readonly version: number;
  readonly taskId: string;
  readonly tenureTime: SessionTime;
  /** The ids that ZooKeeper gives out are not retired. */
  readonly retiring: AbortSignal = new AbortController().signal;

  /** True when a first attempt of the present heartbeat has failed. */
  #retrying = false;
  #state: 'held' | 'lost' | 'released' = 'held';
  #releasing: Promise<void> | undefined;
  readonly #lost = new AbortController();
  /** Aborts when the tenure ends in either way; ends the loop and whatever runs for this lease. */
  readonly #ending = new AbortController();
  readonly #znode: Watch;
  readonly #forgetSession: () => void;
  readonly #loop: Promise<void>;
  readonly #chores: Promise<void>[] = [];

  constructor(
    private readonly tenure: IdTenure,
    private readonly options: SessionLeaseOptions,
  ) {
    const { zookeeper } = options;
    this.id = tenure.nodeId;
    this.version = tenure.version;
    this.taskId = tenure.claimer.taskId;
    this.tenureTime = new SessionTime({
      ...options,
      tenure,
      signal: this.#ending.signal,
      call: () => this.#call(),
      confirm: () => this.#confirm(),
      check: () => this.#check(),
      onAdopted: () => this.addChore(() => this.#tellWidth()),
    });
    this.#znode = zookeeper.watchData(tenure.path, (znode) => void this.#stillOurs(znode));
    this.#forgetSession = zookeeper.onState((state) => this.#onSession(state));
    if (zookeeper.state.status === 'connected') tenure.proof.limit(zookeeper.state.timeoutMs);
    this.#loop = this.#keep();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get deadline(): number {
    return this.tenure.proof.until;
  }

  isValid(): boolean {
    return this.#state === 'held' && this.options.clock.monotonic() < this.deadline;
  }

  /** Does nothing: there is no lease object that the others' versions could stand in. */
  setKnownNodes(): void {}

  release(): Promise<void> {
    this.#releasing ??= this.options.tracer.span('nodelease.release', this.#facts, () => this.#release());
    return this.#releasing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** Runs a chore beside the lease: it gets a signal that aborts when the tenure ends, must not throw, and is awaited by `release()`. */
  addChore(run: (ending: AbortSignal) => Promise<void>): void {
    this.#chores.push(run(this.#ending.signal));
  }

  /** A heartbeat every sixth of the session's time-out; from five twelfths on the work has to be ended (rule 7). */
  get #timing(): LeaseTiming {
    return leaseTiming(this.tenure.proof.timeoutMs / 2);
  }

  get #stopAt(): number {
    return this.deadline - this.#timing.stopMarginMs;
  }

  async #keep(): Promise<void> {
    const { clock, tracer } = this.options;
    const { proof } = this.tenure;
    while (this.#state === 'held') {
      try {
        await sleepUntil(clock, proof.sentAt + this.#timing.renewEveryMs, this.#ending.signal);
        if (clock.monotonic() < this.#stopAt) await tracer.span('nodelease.renew', this.#facts, () => this.#renew());
        else this.#giveUp('no heartbeat was answered in time');
      } catch (error) {
        // The end of the tenure interrupts whatever is under way: that is no failure.
        if (this.#state !== 'held' || this.#ending.signal.aborted) return;
        this.#giveUp(`its session could not be proven to live: ${explain(error)}`, error);
      }
    }
  }

  /** What spans say of this lease. */
  get #facts(): LeaseAttributes {
    return { 'nodelease.node_id': this.id, 'nodelease.version': this.version, 'nodelease.task_id': this.taskId };
  }

  /** Out of time: either still before the deadline, with some left to end the work, or found to be past it. */
  #giveUp(detail: string, cause?: unknown): void {
    const now = this.options.clock.monotonic();
    if (now < this.deadline) this.#lose('unreachable', detail, this.deadline, cause);
    else this.#lose('paused', `its deadline passed ${Math.round(now - this.deadline)} ms ago: ${detail}`, now, cause);
  }

  /** One heartbeat, with as many attempts as fit before the stop point. */
  async #renew(): Promise<void> {
    const { clock, random, emit } = this.options;
    const timing = this.#timing;
    const begun = clock.monotonic();
    this.#retrying = false;
    await retry(() => this.#beat(), {
      clock,
      random,
      until: this.#stopAt,
      baseMs: timing.retryBaseMs,
      capMs: timing.retryCapMs,
      signal: this.#ending.signal,
      // Until the stop point nothing is lost by asking again, whatever the answer was.
      shouldRetry: (error) => this.#state === 'held' && error instanceof ZooKeeperError,
      onFailure: (error, attempt) => {
        this.#retrying = true;
        emit({ type: 'renewal-failed', error, attempt });
      },
    });
    if (this.#state === 'held') emit({ type: 'renewed', deadline: this.deadline, tookMs: clock.monotonic() - begun });
  }

  async #beat(): Promise<void> {
    const { clock } = this.options;
    const { session, path, proof } = this.tenure;
    const sentAt = clock.monotonic();
    try {
      await this.#prove();
      // Before the look at the claim, never after it: see there.
      const stamp = this.tenureTime.look(this.#call());
      const znode = await session.read(path, { ...this.#call(), reconnectOnTimeout: true });
      if (!this.#stillOurs(znode)) return;
      proof.answered(sentAt, clock.monotonic());
      await this.tenureTime.settle(await stamp, this.#call());
      await this.#correct(znode);
    } catch (error) {
      if (isFault(error, 'no-node')) this.#loseTo('its znode has been deleted');
      else if (isFault(error, 'session-expired')) this.#loseTo('its session has ended', error);
      else if (isFault(error, 'closed')) this.#loseTo('its session has been closed', error);
      else throw error;
    }
  }

  /** The transaction that proves the session, the stamp of the unique ids with it where there is one. */
  async #prove(): Promise<void> {
    const { session, path } = this.tenure;
    const check = { type: 'check', path } as const;
    // A server that stands still is left for another while there is time for it: the client alone would take longer than the id lasts.
    const call = () => ({ ...this.#call(), reconnectOnTimeout: true });
    const stamp = this.tenureTime.next();
    if (stamp !== undefined) {
      try {
        return await session.multi([check, stamp], call());
      } catch (error) {
        this.tenureTime.failed(error);
        if (!(error instanceof ZooKeeperError) || error.outcome === 'unknown' || error.transient) throw error;
      }
    }
    // The id does not depend on the stamp: what is wrong with that, the look at it tells.
    await session.multi([check], call());
  }

  /** Looks whether the id is still ours, and throws when it is not. */
  async #confirm(): Promise<void> {
    const znode = await this.tenure.session.read(this.tenure.path, this.#call());
    this.#stillOurs(znode);
    this.#check();
  }

  #check(): void {
    if (this.#state === 'held' && this.options.clock.monotonic() >= this.deadline) this.#giveUp('noticed when an id was asked for');
    if (this.#state === 'lost') throw this.#lost.signal.reason;
    if (this.#state === 'released') throw new LeaseReleasedError(this.id, this.version);
  }

  /** Whether this znode proves that the id is ours; if not, it is lost. */
  #stillOurs(znode: Znode | undefined): znode is Znode {
    const { session, claimer } = this.tenure;
    if (znode === undefined) this.#loseTo('its znode has been deleted');
    else if (znode.stat.owner !== session.sessionId) this.#loseTo('its znode is that of another session');
    else if (!isOurs(znode, session.sessionId, claimer.nonce)) this.#loseTo('its znode has been overwritten by somebody else');
    return this.#state === 'held';
  }

  /** Brings the znode's data up to date. Where that fails, the next heartbeat does it. */
  async #correct(znode: Znode): Promise<void> {
    const { session, path } = this.tenure;
    const data = tenureData(this.tenure, this.tenureTime.adoptedWidth);
    if (znode.data.toString('utf8') === data) return;
    try {
      await session.setData(path, data, znode.stat.version, this.#call());
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
    }
  }

  /** This node makes wider ids from now on: the others may wait for that. */
  async #tellWidth(): Promise<void> {
    const { session, path } = this.tenure;
    try {
      const znode = await session.read(path, this.#call());
      if (this.#state === 'held' && this.#stillOurs(znode)) await this.#correct(znode);
    } catch {
      // The next heartbeat does it.
    }
  }

  #onSession(state: SessionState): void {
    const { session, proof } = this.tenure;
    if (state.status === 'closed') this.#loseTo('its session has been closed');
    else if ('sessionId' in state && state.sessionId !== session.sessionId) this.#loseTo('its session has expired');
    else if (state.status === 'expired') this.#loseTo('its session has expired');
    else if (state.status === 'connected') proof.limit(state.timeoutMs);
  }

  /**
   * A first attempt that hangs is soon given up; further ones get twice the time. None outlasts the stop point, so that the loop is there
   * when it comes.
   */
  #call(): BoundCall {
    const timeoutMs = this.#timing.requestTimeoutMs * (this.#retrying ? 2 : 1);
    const left = this.#stopAt - this.options.clock.monotonic();
    return { timeoutMs: Math.max(1, Math.min(timeoutMs, left)), signal: this.#ending.signal };
  }

  #loseTo(detail: string, cause?: unknown): void {
    this.#lose('taken', detail, this.options.clock.monotonic(), cause);
  }

  #lose(reason: LossReason, detail: string, deadline: number, cause?: unknown): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    const error = new LeaseLostError(this.id, this.version, reason, deadline, detail, cause);
    this.#end(error);
    this.#lost.abort(error);
    this.options.emit({ type: 'lost', error });
  }

  #end(reason: Error): void {
    this.#ending.abort(reason);
    this.tenureTime.close();
    this.#znode.close();
    this.#forgetSession();
  }

  async #release(): Promise<void> {
    // Work that ended after the deadline was done without an id, even if nobody has noticed yet.
    if (this.#state === 'held' && this.options.clock.monotonic() >= this.deadline) this.#giveUp('it was released too late');
    const mine = this.#state === 'held';
    if (mine) {
      this.#state = 'released';
      this.#end(new Error('the node id is being released'));
    }
    await this.#loop;
    await Promise.all(this.#chores);
    if (mine) await this.#remove();
  }

  async #remove(): Promise<void> {
    const { emit, onReleased } = this.options;
    try {
      await releaseClaim({ ...this.options, tenure: this.tenure, tenureTime: this.tenureTime });
    } catch (error) {
      return emit({ type: 'release-failed', error });
    }
    emit({ type: 'released' });
    await onReleased?.();
  }
}
