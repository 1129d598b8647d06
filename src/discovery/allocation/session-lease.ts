import type { Clock, RandomSource } from '../../base/clock.js';
import { explain } from '../../base/errors.js';
import { sleepUntil } from '../../base/sleep-until.js';
import { type Lease, type LeaseListener, LeaseLostError, LeaseReleasedError, type LossReason } from '../../lease/model/lease.js';
import { type LeaseTiming, leaseTiming } from '../../lease/model/lease-timing.js';
import type { LeaseAttributes, LeaseTracer } from '../../lease/model/lease-tracer.js';
import { retry } from '../../lease/session/retry.js';
import type { SessionState } from '../../zookeeper/session-state.js';
import type { CallOptions, Watch, Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import { type IdTenure, isOurs, tenureData } from './id-claim.js';
import { SessionTime } from './session-time.js';

export interface SessionLeaseOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly emit: LeaseListener;
  /** Must do no harm, see `harmless`. */
  readonly tracer: LeaseTracer;
}

/** How long a release may take when no server answers, in milliseconds. */
const RELEASE_TIMEOUT_MS = 3_000;

/**
 * Holds one node id by its claim: probes again and again whether its session lives, knows until when it certainly does, and gives the id up before that
 * time where it cannot tell.
 *
 * The probe is a heartbeat that only the leader, with a majority, can answer: a transaction that checks that the claim is there and
 * changes nothing, so that it triggers no watch. A read of the claim, which in the same session comes after it, tells whose the claim is.
 * {@link SessionDeadline} says how far that carries. Validity rests on {@link isValid} comparing clocks, never on the loop being on time.
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
  readonly #watch: Watch;
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
      onAdopted: () => this.addChore(() => this.announce()),
    });
    this.#watch = zookeeper.watchData(tenure.path, (znode) => void this.#stillOurs(znode));
    this.#forgetSession = zookeeper.onState((state) => this.#onSession(state));
    this.#onSession(zookeeper.state);
    this.#loop = this.#keep();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get deadline(): number {
    return this.tenure.deadline.until;
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

  /**
   * Has the claim say who holds the id, and how wide its ids are. Where that fails, the next heartbeat does it.
   *
   * @param known the claim as it was just read
   */
  async announce(known?: Znode): Promise<void> {
    const { session, path } = this.tenure;
    try {
      const claim = known ?? (await session.read(path, this.#call()));
      const data = tenureData(this.tenure, this.tenureTime.adoptedWidth);
      if (!this.#stillOurs(claim) || claim.data.toString('utf8') === data) return;
      await session.setData(path, data, claim.stat.version, this.#call());
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
    }
  }

  /** A heartbeat every sixth of the session's time-out; from five twelfths on the work has to be ended. */
  get #timing(): LeaseTiming {
    return leaseTiming(this.tenure.deadline.timeoutMs / 2);
  }

  get #stopAt(): number {
    return this.deadline - this.#timing.stopMarginMs;
  }

  async #keep(): Promise<void> {
    const { clock, tracer } = this.options;
    const { deadline } = this.tenure;
    while (this.#state === 'held') {
      try {
        await sleepUntil(clock, deadline.sentAt + this.#timing.renewEveryMs, this.#ending.signal);
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
    const { session, path, deadline } = this.tenure;
    // A server that stands still is left for another while there is time for it: the client alone would take longer than the id lasts.
    const call = () => ({ ...this.#call(), reconnectOnTimeout: true });
    const sentAt = clock.monotonic();
    let claim: Znode | undefined;
    try {
      await session.multi([{ type: 'check', path }], call());
      claim = await session.read(path, call());
    } catch (error) {
      if (!isFault(error, 'no-node')) throw error;
    }
    if (!this.#stillOurs(claim)) return;
    deadline.answered(sentAt, clock.monotonic());
    await this.announce(claim);
  }

  /** Reads whether the id is still ours, and throws when it is not. */
  async #confirm(): Promise<void> {
    this.#stillOurs(await this.tenure.session.read(this.tenure.path, this.#call()));
    this.#check();
  }

  #check(): void {
    if (this.#state === 'held' && this.options.clock.monotonic() >= this.deadline) this.#giveUp('noticed when an id was asked for');
    if (this.#state === 'lost') throw this.#lost.signal.reason;
    if (this.#state === 'released') throw new LeaseReleasedError(this.id, this.version);
  }

  /** Whether this claim is ours; if not, the id is lost. */
  #stillOurs(claim: Znode | undefined): claim is Znode {
    const { session, claimer } = this.tenure;
    if (claim === undefined) this.#loseTo('its znode has been deleted');
    else if (claim.stat.owner !== session.sessionId) this.#loseTo('its znode is that of another session');
    else if (!isOurs(claim, session.sessionId, claimer.nonce)) this.#loseTo('its znode has been overwritten by somebody else');
    return this.#state === 'held';
  }

  #onSession(state: SessionState): void {
    const { session, deadline } = this.tenure;
    if (state.status === 'closed') this.#loseTo('its session has been closed');
    else if (!('sessionId' in state) || state.sessionId !== session.sessionId || state.status === 'expired')
      this.#loseTo('its session has expired');
    else if (state.status === 'connected') deadline.limit(state.timeoutMs);
  }

  /**
   * A first attempt that hangs is soon given up; further ones get twice the time. None outlasts the stop point, so that the loop is there
   * when it comes.
   */
  #call(): CallOptions {
    const timeoutMs = this.#timing.requestTimeoutMs * (this.#retrying ? 2 : 1);
    const left = this.#stopAt - this.options.clock.monotonic();
    return { timeoutMs: Math.max(1, Math.min(timeoutMs, left)), signal: this.#ending.signal };
  }

  /** Out of time: either still before the deadline, with some left to end the work, or found to be past it. */
  #giveUp(detail: string, cause?: unknown): void {
    const now = this.options.clock.monotonic();
    if (now < this.deadline) this.#lose('unreachable', detail, this.deadline, cause);
    else this.#lose('paused', `its deadline passed ${Math.round(now - this.deadline)} ms ago: ${detail}`, now, cause);
  }

  #loseTo(detail: string): void {
    this.#lose('taken', detail, this.options.clock.monotonic());
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
    this.#watch.close();
    this.#forgetSession();
  }

  async #release(): Promise<void> {
    // Work that ended after the deadline was done without an id, even if nothing has noticed yet.
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
    const { clock, random, emit } = this.options;
    const { requestTimeoutMs, retryBaseMs, retryCapMs } = this.#timing;
    try {
      await retry(() => this.#removeOnce({ timeoutMs: requestTimeoutMs * 2 }), {
        clock,
        random,
        // Past the deadline the session may be gone by itself.
        until: Math.min(this.deadline, clock.monotonic() + RELEASE_TIMEOUT_MS),
        baseMs: retryBaseMs,
        capMs: retryCapMs,
        // A write of ours that came late makes another version.
        shouldRetry: (error) => isFault(error, 'connection-loss', 'timeout', 'bad-version'),
      });
      emit({ type: 'released' });
    } catch (error) {
      emit({ type: 'release-failed', error });
    }
  }

  /** Removes the claim, in one transaction with the end of the id time window. Does nothing where the claim is somebody else's by now. */
  async #removeOnce(call: CallOptions): Promise<void> {
    const { session, path, claimer } = this.tenure;
    const record = await this.tenureTime.last(call);
    const claim = await session.read(path, call);
    if (claim === undefined || !isOurs(claim, session.sessionId, claimer.nonce)) return;
    const { version } = claim.stat;
    try {
      if (record !== undefined) return await session.multi([{ type: 'remove', path, version }, record], call);
    } catch (error) {
      // The next tenure waits for the end of the window, then.
      if (!(error instanceof ZooKeeperError) || error.outcome === 'unknown') throw error;
    }
    await session.remove(path, version, call);
  }
}
