import type { Clock, RandomSource } from '../../base/clock.js';
import { explain, NodeLeaseError } from '../../base/errors.js';
import { sleepUntil } from '../../base/sleep-until.js';
import { StoreError } from '../../store/lease-store.js';
import { type Lease, type LeaseListener, LeaseLostError, LeaseReleasedError, LeaseRetiringError, type LossReason } from '../model/lease.js';
import { nativeCodec } from '../model/lease-codec.js';
import { type HeldLease, type KnownNodes, type LeaseState, leaseKey, released, renewed } from '../model/lease-state.js';
import type { LeaseTiming } from '../model/lease-timing.js';
import type { LeaseAttributes, LeaseTracer } from '../model/lease-tracer.js';
import { retry } from '../session/retry.js';
import type { StoreSession } from '../session/store-session.js';
import { StoreTenureTime } from './store-tenure-time.js';
import type { TenureTime } from './tenure-time.js';

/** A tenure as its acquiring write left it. */
export interface Tenure {
  readonly id: number;
  readonly held: HeldLease;
  readonly etag: string;
  /** The monotonic clock just before the acquiring write was sent (rule 3). */
  readonly sentAt: number;
  /** The last timestamp, in store time, of unique ids that other tasks may have made and that could equal this tenure's. */
  readonly stampedUntil: number;
}

export interface KeeperOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly timing: LeaseTiming;
  /** How often the cluster's settings are read, in milliseconds, to the nearest renewal. @default beside each renewal */
  readonly settingsIntervalMs?: number | undefined;
  readonly emit: LeaseListener;
  /** Must do no harm, see `harmless`. */
  readonly tracer: LeaseTracer;
}

/** How long a release may take when the store does not answer, in milliseconds. */
const RELEASE_TIMEOUT_MS = 3_000;

/** A renewal that was refused although the object still is ours: an own write came in between. Tried again. */
class Overtaken extends Error {}

/**
 * Holds one node id: renews its lease, knows until when it is valid, and says so when it is lost.
 *
 * One awaited loop, one request in flight. Validity rests on {@link isValid} comparing clocks, never on this loop being on time.
 */
export class Keeper implements Lease {
  readonly id: number;
  readonly version: number;
  readonly taskId: string;

  #held: HeldLease;
  #etag: string;
  /** The monotonic clock before the last write was sent that is known to be applied. */
  #sentAt: number;
  /** The number of the last write that was sent, and when each write was sent that may still be applied. */
  #renewal = 0;
  readonly #sent = new Map<number, number>();
  /** True while the object may be ahead of what is known of it: an own write has no known outcome. */
  #uncertain = false;
  /** True when the first attempt of the present renewal has failed. */
  #retrying = false;
  #known: KnownNodes = {};
  #state: 'held' | 'lost' | 'released' = 'held';
  #releasing: Promise<void> | undefined;
  readonly #lost = new AbortController();
  readonly #retiring = new AbortController();
  /** Aborts when the tenure ends in either way; ends the loop and whatever runs for this lease. */
  readonly #ending = new AbortController();
  readonly #time: StoreTenureTime;
  readonly #loop: Promise<void>;
  readonly #chores: Promise<void>[] = [];

  constructor(
    tenure: Tenure,
    private readonly options: KeeperOptions,
  ) {
    this.id = tenure.id;
    this.version = tenure.held.version;
    this.taskId = tenure.held.taskId;
    this.#held = tenure.held;
    this.#etag = tenure.etag;
    this.#sentAt = tenure.sentAt;
    this.#sent.set(0, tenure.sentAt);
    const { session, clock, random } = options;
    this.#time = new StoreTenureTime({
      ...{ session, clock, random, signal: this.#ending.signal },
      ...{ stampedUntil: tenure.stampedUntil, idWidth: tenure.held.idWidth },
      before: () => this.#held.timestamp,
      check: () => this.#check(),
    });
    this.#loop = this.#keep();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get retiring(): AbortSignal {
    return this.#retiring.signal;
  }

  get deadline(): number {
    return this.#sentAt + this.options.timing.durationMs;
  }

  isValid(): boolean {
    return this.#state === 'held' && this.options.clock.monotonic() < this.deadline;
  }

  get tenureTime(): TenureTime {
    return this.#time;
  }

  setKnownNodes(versions: Readonly<Record<number, number>>): void {
    this.#known = { ...versions };
  }

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

  /** Rule 7: the time from which on the work has to be ended unless a renewal comes through. */
  get #stopAt(): number {
    return this.deadline - this.options.timing.stopMarginMs;
  }

  async #keep(): Promise<void> {
    const { clock, timing, tracer } = this.options;
    while (this.#state === 'held') {
      try {
        if (!this.#hasNews) await sleepUntil(clock, this.#sentAt + timing.renewEveryMs, this.#ending.signal);
        if (clock.monotonic() >= this.#stopAt) this.#giveUp('no renewal came through in time');
        else await tracer.span('nodelease.renew', this.#facts, () => this.#refresh());
      } catch (error) {
        // The end of the tenure interrupts whatever is under way: that is no failure.
        if (this.#state !== 'held' || this.#ending.signal.aborted) return;
        this.#giveUp(`could not be renewed: ${explain(error)}`, error);
      }
    }
  }

  /** What spans say of this lease. */
  get #facts(): LeaseAttributes {
    const { id, version, taskId, options } = this;
    return {
      'nodelease.node_id': id,
      'nodelease.version': version,
      'nodelease.task_id': taskId,
      'nodelease.store': options.session.store.url,
    };
  }

  async #refresh(): Promise<void> {
    await this.#renew();
    await this.#readSettings();
  }

  /** Whether `scale` waits for what the lease does not say yet: that this node makes wider ids now. */
  get #hasNews(): boolean {
    return this.#time.adopted.idWidth > this.#held.idWidth;
  }

  /** Learns whether the cluster asks for wider ids, or has this one no more. A failure is left to the next time: it costs no renewal. */
  async #readSettings(): Promise<void> {
    const { clock, timing, settingsIntervalMs = 0 } = this.options;
    // To the nearest renewal.
    const isDue = clock.monotonic() - this.#time.lookedAt >= settingsIntervalMs - timing.renewEveryMs / 2;
    if (this.#state !== 'held' || !isDue) return;
    try {
      const { size } = await this.#time.look(this.#call());
      if (this.id < size || this.#ending.signal.aborted || this.retiring.aborted) return;
      this.#retiring.abort(new LeaseRetiringError(this.id, this.version, size));
      this.options.emit({ type: 'retiring', size });
    } catch (error) {
      if (!(error instanceof NodeLeaseError)) throw error;
    }
  }

  #check(): void {
    const { clock } = this.options;
    if (this.#state === 'held' && clock.monotonic() >= this.deadline) this.#giveUp('no renewal came through in time');
    if (this.#lost.signal.aborted) throw this.#lost.signal.reason;
    if (this.#state === 'released') throw new LeaseReleasedError(this.id, this.version);
  }

  /** Out of time: either with some left before the deadline to end the work, or past it. */
  #giveUp(detail: string, cause?: unknown): void {
    const now = this.options.clock.monotonic();
    if (now < this.deadline) this.#lose('unreachable', detail, this.deadline, cause);
    else this.#lose('paused', `its deadline passed ${Math.round(now - this.deadline)} ms ago: ${detail}`, now, cause);
  }

  /** One renewal, with as many attempts as fit before the stop point (rule 6). */
  async #renew(): Promise<void> {
    const { clock, random, timing, emit } = this.options;
    const begun = clock.monotonic();
    this.#retrying = false;
    await retry(() => this.#attempt(begun), {
      clock,
      random,
      until: this.#stopAt,
      baseMs: timing.retryBaseMs,
      capMs: timing.retryCapMs,
      signal: this.#ending.signal,
      // A refusal such as 403 may pass as well, when credentials are being rotated: nothing is lost by asking again until the stop point.
      shouldRetry: (error) => this.#state === 'held' && (error instanceof StoreError || error instanceof Overtaken),
      onFailure: (error, attempt) => {
        this.#retrying = true;
        if (error instanceof StoreError) emit({ type: 'renewal-failed', error, attempt });
      },
    });
    if (this.#state === 'held') emit({ type: 'renewed', deadline: this.deadline, tookMs: clock.monotonic() - begun });
  }

  async #attempt(begun: number): Promise<void> {
    if (this.#uncertain) {
      await this.#readBack();
      // The write whose answer was missing belongs to this very renewal: done.
      if (this.#state !== 'held' || this.#sentAt >= begun) return;
    }
    const result = await this.#write();
    if (result === 'written' || this.#state !== 'held') return;
    // Refused: by another task's write, or by one of our own that came late. Only the object can tell (rule 5).
    this.#uncertain = true;
    await this.#readBack();
    if (this.#state === 'held' && this.#sentAt < begun) throw new Overtaken('a write of our own came in between');
  }

  async #write(): Promise<'written' | 'conflict'> {
    const { clock, session } = this.options;
    this.#renewal += 1;
    const width = this.#time.adopted;
    const next = renewed(this.#held, { renewal: this.#renewal, storeNow: session.storeNow().min, knownNodes: this.#known, width });
    const sentAt = clock.monotonic();
    this.#sent.set(next.renewal, sentAt);
    try {
      const result = await session.write(leaseKey(this.id), nativeCodec.encode(next), this.#etag, this.#call());
      if (result.status === 'written') this.#adopt(next, result.etag);
      return result.status;
    } catch (error) {
      if (!(error instanceof StoreError && error.outcome === 'not-applied')) this.#uncertain = true;
      throw error;
    }
  }

  /** Rule 5: the object tells which write stands there. An own write gives its etag, and the time at which that very write was sent. */
  async #readBack(): Promise<void> {
    const { session } = this.options;
    const key = leaseKey(this.id);
    const object = await session.read(key, this.#call());
    if (object === undefined) return this.#loseTo('its object has been deleted');
    let state: LeaseState;
    try {
      state = nativeCodec.decode(object.body, object.metadata);
    } catch (error) {
      return this.#loseTo(`its object is damaged: ${explain(error)}`);
    }
    if (state.kind === 'held' && state.nonce === this.#held.nonce && state.version === this.version) {
      this.#uncertain = false;
      this.#adopt(state, object.etag);
    } else if (state.kind === 'held') {
      this.#loseTo(`task ${state.taskId} holds it at version ${state.version}`);
    } else {
      this.#loseTo(
        state.kind === 'vacant' ? 'its object has been emptied' : `it has been ${state.kind} at version ${state.version} by somebody else`,
      );
    }
  }

  #adopt(held: HeldLease, etag: string): void {
    const sentAt = this.#sent.get(held.renewal);
    // An object older than what is known to be applied shows a store that forgets.
    if (sentAt === undefined || held.renewal < this.#held.renewal) {
      this.#loseTo(`the store shows renewal ${held.renewal} after ${this.#held.renewal}`);
      return;
    }
    this.#held = held;
    this.#etag = etag;
    this.#sentAt = sentAt;
    for (const renewal of this.#sent.keys()) if (renewal < held.renewal) this.#sent.delete(renewal);
  }

  /** A first attempt that hangs is soon given up; further ones get twice the time, for a slow store. None outlasts the stop point. */
  #call(): { timeoutMs: number; signal: AbortSignal } {
    const { clock, timing } = this.options;
    const timeoutMs = timing.requestTimeoutMs * (this.#retrying ? 2 : 1);
    return { timeoutMs: Math.min(timeoutMs, this.#stopAt - clock.monotonic()), signal: this.#ending.signal };
  }

  #loseTo(detail: string): void {
    this.#lose('taken', detail, this.options.clock.monotonic());
  }

  #lose(reason: LossReason, detail: string, deadline: number, cause?: unknown): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    const error = new LeaseLostError(this.id, this.version, reason, deadline, detail, cause);
    this.#ending.abort(error);
    this.#lost.abort(error);
    this.options.emit({ type: 'lost', error });
  }

  async #release(): Promise<void> {
    // Work that ended after the deadline was done without a lease, even if that was not noticed yet.
    if (this.#state === 'held' && this.options.clock.monotonic() >= this.deadline) this.#giveUp('it was released too late');
    const mine = this.#state === 'held';
    if (mine) this.#state = 'released';
    this.#ending.abort(new Error('the lease is being released'));
    await this.#loop;
    await Promise.all(this.#chores);
    if (mine) await this.#writeTombstone();
  }

  async #writeTombstone(): Promise<void> {
    const { clock, random, session, timing, emit } = this.options;
    const key = leaseKey(this.id);
    let last = this.#held;
    let first = true;
    try {
      await retry(
        async () => {
          // After the first attempt, or with a renewal of unknown outcome behind us, our etag may be out of date.
          if (this.#uncertain || !first) {
            const object = await session.read(key);
            const state = object && nativeCodec.decode(object.body, object.metadata);
            if (object === undefined || state?.kind !== 'held' || state.nonce !== this.#held.nonce) return;
            // A renewal that we did not hear of has a later timestamp, and a tombstone keeps the last one.
            last = state;
            this.#etag = object.etag;
          }
          first = false;
          const result = await session.write(key, nativeCodec.encode(released(last, this.#time.stampedUntil)), this.#etag);
          if (result.status === 'conflict') throw new Overtaken('a renewal of our own came in between');
        },
        {
          clock,
          random,
          // Past the deadline there is nothing left to give back early.
          until: Math.min(this.deadline, clock.monotonic() + RELEASE_TIMEOUT_MS),
          baseMs: timing.retryBaseMs,
          capMs: timing.retryCapMs,
          shouldRetry: (error) => error instanceof Overtaken || (error instanceof StoreError && error.transient),
        },
      );
      emit({ type: 'released' });
    } catch (error) {
      emit({ type: 'release-failed', error });
    }
  }
}
