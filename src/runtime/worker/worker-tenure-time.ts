import { orAborted } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import type { TenureTime, WidthListener } from '../../lease/hold/tenure-time.js';
import type { SharedTenure } from './shared-tenure.js';

export interface WorkerTenureTimeOptions {
  readonly clock: Clock;
  readonly shared: SharedTenure;
  /** The width that the acquiring write told the others. */
  readonly idWidth: number;
  /** Throws when the tenure has ended. */
  readonly check: () => void;
  /** Asks the keeper's thread to make sure that ids may be made. */
  readonly askToPrepare: () => void;
  /** Tells it that no id will be made with fewer bits for the node id. */
  readonly tellAdopted: (idWidth: number) => void;
}

/** An answer that the keeper's thread owes. */
interface Question {
  readonly answer: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A tenure's share of store time where another thread keeps the lease: everything that a generator looks at while it makes ids stands in
 * shared memory, so that a thread which does nothing else for minutes has the bounds of the latest renewal.
 */
export class WorkerTenureTime implements TenureTime {
  readonly clock: Clock;
  readonly #ending = new AbortController();
  readonly #listeners = new Set<WidthListener>();
  #idWidth: number;
  /** Resolves when every listener has gone over to the width that it was told last. */
  #adopting: Promise<unknown> = Promise.resolve();
  #prepared = false;
  #question: Question | undefined;

  constructor(private readonly options: WorkerTenureTimeOptions) {
    this.clock = options.clock;
    this.#idWidth = options.idWidth;
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  get idWidth(): number {
    return this.#idWidth;
  }

  get after(): number {
    return this.options.shared.after;
  }

  async prepare(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.check();
    if (this.#prepared) return;
    await orAborted(this.#ask(), signal);
    this.check();
  }

  onWidth(listener: WidthListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  now(): number {
    return this.options.shared.storeNow(this.clock.monotonic());
  }

  before(): number {
    return this.options.shared.before;
  }

  stamp(untilMs: number): void {
    this.options.shared.stamp(untilMs);
  }

  check(): void {
    this.options.check();
  }

  /** The thread has heard that ids are to have so many bits for the node id. */
  async widen(idWidth: number): Promise<void> {
    if (idWidth > this.#idWidth) {
      this.#idWidth = idWidth;
      this.#adopting = Promise.all([this.#adopting, ...[...this.#listeners].map((listener) => listener(idWidth))]);
    }
    await this.#adopting;
    this.options.tellAdopted(idWidth);
  }

  /** The thread has made sure that ids may be made. */
  async prepared(idWidth: number): Promise<void> {
    await this.widen(idWidth);
    this.#prepared = true;
    this.#question?.resolve();
    this.#question = undefined;
  }

  /** The thread could not. The next call has it try again. */
  unprepared(error: unknown): void {
    this.#question?.reject(error);
    this.#question = undefined;
  }

  /** The tenure has ended: no answer will come. */
  end(reason: unknown): void {
    this.#ending.abort(reason);
    this.unprepared(reason);
  }

  #ask(): Promise<void> {
    if (this.#question === undefined) {
      const { promise: answer, ...rest } = withResolvers();
      // All callers may have given up by the time of a failure.
      answer.catch(() => undefined);
      this.#question = { answer, ...rest };
      this.options.askToPrepare();
    }
    return this.#question.answer;
  }
}

function withResolvers(): { promise: Promise<void>; resolve: () => void; reject: (error: unknown) => void } {
  let resolve: () => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<void>((...both) => {
    [resolve, reject] = both;
  });
  return { promise, resolve, reject };
}
