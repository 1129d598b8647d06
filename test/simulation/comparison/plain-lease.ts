import { explain } from '../../../src/core/base/errors.js';
import type { AcquireLeaseOptions } from '../../../src/core/lease/acquire/acquire-lease.js';
import { type Lease, LeaseLostError, type LossReason } from '../../../src/core/lease/model/lease.js';
import { leaseKey } from '../../../src/core/lease/model/lease-state.js';
import { held, type PlainObject, type PlainRecord } from './plain-object.js';
import type { PlainStore } from './plain-store.js';

/** An id of the plain protocol as its acquiring write left it. */
export interface PlainTenure {
  readonly id: number;
  readonly record: PlainRecord;
  readonly etag: string;
  readonly durationMs: number;
  /** What a release leaves in the object. */
  readonly vacated: PlainObject;
}

/**
 * The holder's side of the plain protocol: renews every third of the duration with a new `timestamp`,
 * believes in its lease until that has passed by its own wall clock, and shuts down as soon as a renewal
 * fails.
 */
export class PlainLease implements Lease {
  readonly id: number;
  readonly version: number;
  readonly taskId: string;
  /** It makes no unique ids. */
  readonly tenureTime = undefined;
  readonly home = undefined;
  /** It knows no retirement. */
  readonly retiring = new AbortController().signal;
  #record: PlainRecord;
  #etag: string;
  #deadline: number;
  #state: 'held' | 'lost' | 'released' = 'held';
  #releasing: Promise<void> | undefined;
  readonly #lost = new AbortController();
  readonly #ending = new AbortController();
  readonly #loop: Promise<void>;

  constructor(
    private readonly tenure: PlainTenure,
    private readonly store: PlainStore,
    private readonly options: Pick<AcquireLeaseOptions, 'clock' | 'onEvent'>,
  ) {
    this.id = tenure.id;
    this.version = tenure.record.version;
    this.taskId = tenure.record.taskId;
    this.#record = tenure.record;
    this.#etag = tenure.etag;
    this.#deadline = this.#untilExpiry();
    this.#loop = this.#keep();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** The expiry, carried over to the monotonic clock by what the wall clock said when the last reply came. */
  get deadline(): number {
    return this.#deadline;
  }

  isValid(): boolean {
    return this.#state === 'held' && this.options.clock.now() < this.#record.timestamp;
  }

  /** Nothing in a simulation knows of other nodes. */
  setKnownNodes(): void {}

  release(): Promise<void> {
    this.#releasing ??= this.#release();
    return this.#releasing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #keep(): Promise<void> {
    const { clock } = this.options;
    while (this.#state === 'held') {
      try {
        await clock.sleep(this.tenure.durationMs / 3, this.#ending.signal);
        await this.#renew();
      } catch (error) {
        // "If the lease cannot be renewed, the node should shut down immediately for safety."
        if (!this.#ending.signal.aborted)
          this.#lose('unreachable', `could not be renewed: ${explain(error)}`, error);
      }
    }
  }

  async #renew(): Promise<void> {
    const { clock, onEvent } = this.options;
    const begun = clock.monotonic();
    const record = { ...this.#record, timestamp: Math.floor(clock.now()) + this.tenure.durationMs };
    const result = await this.store.write(leaseKey(this.id), held(record), this.#etag, this.#ending.signal);
    if (result.status === 'conflict') return this.#lose('taken', 'its object has changed');
    this.#record = record;
    this.#etag = result.etag;
    this.#deadline = this.#untilExpiry();
    onEvent?.({ type: 'renewed', deadline: this.deadline, tookMs: clock.monotonic() - begun });
  }

  #untilExpiry(): number {
    const { clock } = this.options;
    return clock.monotonic() + this.#record.timestamp - clock.now();
  }

  #lose(reason: LossReason, detail: string, cause?: unknown): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    // There is no time to be taken: immediately, says the text.
    const error = new LeaseLostError(
      this.id,
      this.version,
      reason,
      this.options.clock.monotonic(),
      detail,
      cause,
    );
    this.#ending.abort(error);
    this.#lost.abort(error);
    this.options.onEvent?.({ type: 'lost', error });
  }

  async #release(): Promise<void> {
    const mine = this.isValid();
    if (this.#state === 'held') this.#state = 'released';
    this.#ending.abort(new Error('the lease is being released'));
    await this.#loop;
    if (!mine) return;
    try {
      await this.store.write(leaseKey(this.id), this.tenure.vacated, this.#etag);
      this.options.onEvent?.({ type: 'released' });
    } catch (error) {
      this.options.onEvent?.({ type: 'release-failed', error });
    }
  }
}
