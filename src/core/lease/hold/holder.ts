import { LateSignal } from '../../base/abort.js';
import { type Clock, type RandomSource, sleepUntil } from '../../base/clock.js';
import { explain, NodeLeaseError } from '../../base/errors.js';
import { retrying } from '../../base/retry.js';
import { StoreError } from '../../store/lease-store.js';
import type { HolderEvent, LossReason, TenureLostError } from '../model/lease.js';
import type { LeaseTiming } from '../model/lease-timing.js';
import type { LeaseAttributes, LeaseTracer } from '../model/lease-tracer.js';

export interface HolderOptions<E extends TenureLostError> {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly emit: (event: HolderEvent<E>) => void;
  /** Must do no harm, see `harmless`. */
  readonly tracer: LeaseTracer;
}

/** Timeout of a release without an answer, in milliseconds. */
const RELEASE_TIMEOUT_MS = 3_000;

/** The object is still ours, but another write of ours came in between. The call is tried again. */
export class Overtaken extends Error {}

/**
 * Holds a node id or a lock, by a lease or by a session: renews it, knows its deadline, and reports its loss.
 * A subclass defines the renewal and the release.
 *
 * It is one awaited loop with one request in flight. Validity comes from {@link isValid}, which compares
 * clocks, and never depends on this loop being on time.
 */
export abstract class Holder<E extends TenureLostError> implements AsyncDisposable {
  abstract readonly deadline: number;
  /** When the last renewal began, on the monotonic clock. */
  #renewalBegun = Number.POSITIVE_INFINITY;
  /** True when a first attempt of the current renewal has failed. */
  #retrying = false;
  /** The store's last answer to the current renewal that said why it failed. */
  #answer: StoreError | undefined;
  #state: 'held' | 'lost' | 'released' = 'held';
  #releasing: Promise<void> | undefined;
  readonly #lost = new LateSignal();
  readonly #ending = new LateSignal();
  #loop: Promise<void> | undefined;
  readonly #chores: Promise<void>[] = [];

  /**
   * A subclass calls {@link start} at the end of its constructor, or later.
   *
   * @param facts attributes of the spans
   */
  constructor(
    private readonly holding: HolderOptions<E>,
    private readonly facts: LeaseAttributes,
  ) {}

  /** The error with which the holder's signal aborts. */
  protected abstract lossError(reason: LossReason, deadline: number, detail: string, cause?: unknown): E;

  /** The error for users that continue after the release. */
  protected abstract releasedError(): NodeLeaseError;

  protected abstract get timing(): LeaseTiming;

  /** When the next renewal is due, on the monotonic clock. */
  protected abstract get renewAt(): number;

  /**
   * One attempt to renew. Returns when it is renewed or lost; throws if it is to be tried again.
   *
   * @param begun when the renewal began, on the monotonic clock
   */
  protected abstract attempt(begun: number): Promise<void>;

  /** One attempt to release it. */
  protected abstract giveBack(): Promise<void>;

  /** The tenure has ended, by a loss or by a release. */
  protected whenOver(_lost: E | undefined): void {}

  /** Whether another attempt to release may succeed after this failure. */
  protected abstract mayPass(error: unknown): boolean;

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  isValid(): boolean {
    return this.isHeld && this.holding.clock.monotonic() < this.deadline;
  }

  release(): Promise<void> {
    this.#releasing ??= this.holding.tracer.span('nodelease.release', this.facts, () => this.#release());
    return this.#releasing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /**
   * Runs a chore during the tenure. It gets a signal that aborts when the tenure ends, and must not throw.
   * `release()` awaits it.
   */
  addChore(run: (ending: AbortSignal) => Promise<void>): void {
    this.#chores.push(run(this.ending));
  }

  /** Begins to renew. */
  protected start(): void {
    this.#loop = this.#keep();
  }

  /** One renewal, with as many attempts as fit before the stop point (rule 6). */
  protected async renew(): Promise<void> {
    const { clock, random, emit } = this.holding;
    const begun = clock.monotonic();
    this.#renewalBegun = begun;
    this.#retrying = false;
    this.#answer = undefined;
    const retry = retrying({
      ...{ clock, random, until: this.#stopAt, backoff: this.timing.backoff, signal: this.ending },
      // A refusal such as 403 may pass as well, when credentials are being rotated; until the stop point
      // nothing is lost by asking again.
      mayPass: (error) => error instanceof NodeLeaseError || error instanceof Overtaken,
      onFailure: (error, attempt) => {
        this.#retrying = true;
        if (isAnswer(error)) this.#answer = error;
        if (error instanceof NodeLeaseError) emit({ type: 'renewal-failed', error, attempt });
      },
    });
    await retry(() => this.attempt(begun));
    if (this.isHeld) emit({ type: 'renewed', deadline: this.deadline, tookMs: clock.monotonic() - begun });
  }

  /** Neither lost nor released. */
  protected get isHeld(): boolean {
    return this.#state === 'held';
  }

  /** Aborts when the tenure ends in either way. It ends the loop and the chores of this lease. */
  protected get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /**
   * The bounds of one request of a renewal. A first attempt that hangs is given up soon. Later attempts get
   * twice the time, for a slow server. No request outlasts the stop point, so that the loop can act then.
   */
  protected call(): { readonly timeoutMs: number; readonly wholeMs?: number; readonly signal: AbortSignal } {
    const timeoutMs = this.timing.requestTimeoutMs * (this.#retrying ? 2 : 1);
    const leftMs = Math.max(1, this.#stopAt - this.holding.clock.monotonic());
    if (timeoutMs <= leftMs) return { timeoutMs, signal: this.ending };
    const wholeMs = Math.max(leftMs, this.#stopAt - this.#renewalBegun);
    return { timeoutMs: leftMs, wholeMs, signal: this.ending };
  }

  /**
   * Called before the deadline is moved, too: a tenure whose deadline has passed is over, whatever answer
   * comes later (rule 3). Other tasks may have read that it has expired.
   *
   * @throws what {@link TenureTime.check} throws
   */
  protected check(): void {
    if (this.isHeld && this.holding.clock.monotonic() >= this.deadline)
      this.#giveUp('no renewal came through in time');
    if (this.#lost.aborted) throw this.#lost.aborted.reason;
    if (this.#state === 'released') throw this.releasedError();
  }

  /** Another task may hold it. */
  protected loseTo(detail: string): void {
    this.#lose('taken', detail, this.holding.clock.monotonic());
  }

  /** Rule 7: from this time on the work must be ended, unless a renewal succeeds. */
  get #stopAt(): number {
    return this.deadline - this.timing.stopMarginMs;
  }

  async #keep(): Promise<void> {
    const { clock, tracer } = this.holding;
    while (this.isHeld) {
      try {
        await sleepUntil(clock, () => this.renewAt, this.ending);
        if (clock.monotonic() >= this.#stopAt) this.#giveUp('no renewal came through in time');
        else await tracer.span('nodelease.renew', this.facts, () => this.renew());
      } catch (error) {
        // The store's answer is the cause, not that the last attempt had too little time for an answer.
        const cause = isAnswer(error) ? error : (this.#answer ?? error);
        const then = cause === error ? '' : `; then ${explain(error)}`;
        this.#giveUp(`could not be renewed: ${explain(cause)}${then}`, cause);
      }
    }
  }

  /** The time is up: either before the deadline, with time left to end the work, or past the deadline. */
  #giveUp(detail: string, cause?: unknown): void {
    const now = this.holding.clock.monotonic();
    const reason = isAnswer(cause) && cause.fault === 'denied' ? 'denied' : 'unreachable';
    if (now < this.deadline) this.#lose(reason, detail, this.deadline, cause);
    else
      this.#lose(
        'paused',
        `its deadline passed ${Math.round(now - this.deadline)} ms ago: ${detail}`,
        now,
        cause,
      );
  }

  #lose(reason: LossReason, detail: string, deadline: number, cause?: unknown): void {
    // The end of the tenure interrupts the current request. That is no failure.
    if (!this.isHeld) return;
    this.#state = 'lost';
    const error = this.lossError(reason, deadline, detail, cause);
    this.#ending.abort(error);
    this.whenOver(error);
    this.#lost.abort(error);
    this.holding.emit({ type: 'lost', error });
  }

  async #release(): Promise<void> {
    // Work that ended after the deadline ran without a lease, even if that was not noticed yet.
    if (this.isHeld && this.holding.clock.monotonic() >= this.deadline)
      this.#giveUp('it was released too late');
    const mine = this.isHeld;
    if (mine) {
      this.#state = 'released';
      this.#ending.abort(this.releasedError());
      this.whenOver(undefined);
    }
    await this.#loop;
    await Promise.all(this.#chores);
    if (mine) await this.#giveBack();
  }

  async #giveBack(): Promise<void> {
    const { clock, random, emit } = this.holding;
    // Past the deadline there is nothing left to give back early.
    const until = Math.min(this.deadline, clock.monotonic() + RELEASE_TIMEOUT_MS);
    const mayPass = (error: unknown) => error instanceof Overtaken || this.mayPass(error);
    // Most succeed at once: a policy is made for those that do not.
    const again = (failure: unknown) =>
      retrying({ clock, random, backoff: this.timing.backoff, until, mayPass })((_, attempt) =>
        attempt === 1 ? Promise.reject(failure) : this.giveBack(),
      );
    try {
      await this.giveBack().catch(again);
      emit({ type: 'released' });
    } catch (error) {
      emit({ type: 'release-failed', error });
    }
  }
}

function isAnswer(error: unknown): error is StoreError {
  return error instanceof StoreError && error.fault !== 'unreachable';
}
