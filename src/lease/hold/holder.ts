import { LateSignal } from '../../base/abort.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import { explain, NodeLeaseError } from '../../base/errors.js';
import { retrying } from '../../base/retry.js';
import { sleepUntil } from '../../base/sleep-until.js';
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

/** How long a release may take when there is no answer, in milliseconds. */
const RELEASE_TIMEOUT_MS = 3_000;

/** Ends what runs with it. */
const RELEASING = new Error('it is being released');

/** What was written is still ours, but a write of ours came in between. Tried again. */
export class Overtaken extends Error {}

/**
 * Holds one thing, a node id or a lock, whatever it rests on: renews it, knows until when it is valid, and
 * says so when it is lost. A subclass says what a renewal is, and what a release.
 *
 * One awaited loop, one request in flight. Validity rests on {@link isValid} comparing clocks, never on this
 * loop being on time.
 */
export abstract class Holder<E extends TenureLostError> implements AsyncDisposable {
  abstract readonly deadline: number;
  /** True when a first attempt of the present renewal has failed. */
  #retrying = false;
  /** The last answer of the store to the present renewal that said why it failed. */
  #answer: StoreError | undefined;
  #state: 'held' | 'lost' | 'released' = 'held';
  #releasing: Promise<void> | undefined;
  readonly #lost = new LateSignal();
  readonly #ending = new LateSignal();
  #loop: Promise<void> | undefined;
  readonly #chores: Promise<void>[] = [];

  /**
   * A subclass calls {@link start}, not before the end of its constructor.
   *
   * @param facts what spans say
   */
  constructor(
    private readonly holding: HolderOptions<E>,
    private readonly facts: LeaseAttributes,
  ) {}

  /** What the holder's signal aborts with. */
  protected abstract lossError(reason: LossReason, deadline: number, detail: string, cause?: unknown): E;

  /** What is thrown to users who go on after the release. */
  protected abstract releasedError(): NodeLeaseError;

  protected abstract get timing(): LeaseTiming;

  /** When the next renewal is due, on the monotonic clock. */
  protected abstract get renewAt(): number;

  /**
   * One attempt to renew. Returns when that is done, or when it is lost; throws to be tried again.
   *
   * @param begun when the renewal began, on the monotonic clock
   */
  protected abstract attempt(begun: number): Promise<void>;

  /** One attempt to give it back. */
  protected abstract giveBack(): Promise<void>;

  /** The tenure has ended, by a loss or by a release. */
  protected whenOver(_lost: E | undefined): void {}

  /** Whether giving back may succeed when it is tried again after this failure. */
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
   * Runs a chore next to the lease: it gets a signal that aborts when the tenure ends, must not throw, and is
   * awaited by `release()`.
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

  /** Aborts when the tenure ends in either way; ends the loop and whatever runs for this lease. */
  protected get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /**
   * The bounds of one request of a renewal. A first attempt that hangs is soon given up; further ones get
   * twice the time, for a server that is slow at everything. None outlasts the stop point, so that the loop
   * is there when it comes.
   */
  protected call(): { readonly timeoutMs: number; readonly signal: AbortSignal } {
    const timeoutMs = this.timing.requestTimeoutMs * (this.#retrying ? 2 : 1);
    const leftMs = this.#stopAt - this.holding.clock.monotonic();
    return { timeoutMs: Math.max(1, Math.min(timeoutMs, leftMs)), signal: this.ending };
  }

  /**
   * Asked before the deadline is moved, too: a tenure whose deadline has passed is over, whatever is answered
   * later (rule 3). Others may have read that it was.
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

  /** Rule 7: the time from which on the work has to be ended unless a renewal comes through. */
  get #stopAt(): number {
    return this.deadline - this.timing.stopMarginMs;
  }

  async #keep(): Promise<void> {
    const { clock, tracer } = this.holding;
    while (this.isHeld) {
      try {
        await sleepUntil(clock, this.renewAt, this.ending);
        if (clock.monotonic() >= this.#stopAt) this.#giveUp('no renewal came through in time');
        else await tracer.span('nodelease.renew', this.facts, () => this.renew());
      } catch (error) {
        // The end of the tenure interrupts whatever is under way: that is no failure.
        if (!this.isHeld || this.#ending.aborted) return;
        // What the store said counts, and not that the last attempt had too little time for an answer.
        const cause = isAnswer(error) ? error : (this.#answer ?? error);
        const then = cause === error ? '' : `; then ${explain(error)}`;
        this.#giveUp(`could not be renewed: ${explain(cause)}${then}`, cause);
      }
    }
  }

  /**
   * Out of time: either still before the deadline, with some left to end the work, or found to be past it.
   */
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
    if (!this.isHeld) return;
    this.#state = 'lost';
    const error = this.lossError(reason, deadline, detail, cause);
    this.#ending.abort(error);
    this.whenOver(error);
    this.#lost.abort(error);
    this.holding.emit({ type: 'lost', error });
  }

  async #release(): Promise<void> {
    // Work that ended after the deadline was done without a lease, even if that was not noticed yet.
    if (this.isHeld && this.holding.clock.monotonic() >= this.deadline)
      this.#giveUp('it was released too late');
    const mine = this.isHeld;
    if (mine) this.#state = 'released';
    this.#ending.abort(RELEASING);
    if (mine) this.whenOver(undefined);
    await this.#loop;
    await Promise.all(this.#chores);
    if (mine) await this.#giveBack();
  }

  async #giveBack(): Promise<void> {
    const { clock, random, emit } = this.holding;
    const retry = retrying({
      ...{ clock, random, backoff: this.timing.backoff },
      // Past the deadline there is nothing left to give back early.
      until: Math.min(this.deadline, clock.monotonic() + RELEASE_TIMEOUT_MS),
      mayPass: (error) => error instanceof Overtaken || this.mayPass(error),
    });
    try {
      await retry(() => this.giveBack());
      emit({ type: 'released' });
    } catch (error) {
      emit({ type: 'release-failed', error });
    }
  }
}

function isAnswer(error: unknown): error is StoreError {
  return error instanceof StoreError && error.fault !== 'unreachable';
}
