import { withTimeout } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import type { MetricsText } from '../../http/node-app.js';
import { HttpProblem } from '../../http/problem.js';

/** How long a request waits, in milliseconds. */
const ANSWER_WITHIN_MS = 2_000;
/** From one question to the next, in milliseconds, at the least: collecting the metrics takes the other thread a millisecond or two. */
const APART_MS = 100;

export interface AskedMetricsOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Sends a question, to be answered by `answered`; after `until`, on the monotonic clock, the answer is of no use. */
  readonly ask: (id: number, until: number) => void;
}

/**
 * The metrics of another thread, which is asked for them: at most ten times a second, whatever comes in. A request that comes too soon waits for the next
 * question, and shares its answer.
 */
export class AskedMetrics implements MetricsText {
  #contentType = 'text/plain; charset=utf-8';
  #askedAt = Number.NEGATIVE_INFINITY;
  #lastId = 0;
  /** The question that has not been asked yet. */
  #next: Promise<string> | undefined;
  readonly #waiting = new Map<number, (text: string) => void>();

  constructor(private readonly options: AskedMetricsOptions) {}

  /** That of the last answer. */
  get contentType(): string {
    return this.#contentType;
  }

  /** @throws {HttpProblem} `unavailable` when the other thread does not answer within two seconds */
  text(): Promise<string> {
    this.#next ??= this.#askSoon();
    return this.#next;
  }

  /** What the other thread has sent. */
  answered(id: number, contentType: string, text: string): void {
    this.#contentType = contentType;
    this.#waiting.get(id)?.(text);
  }

  async #askSoon(): Promise<string> {
    const { clock, ask } = this.options;
    await clock.sleep(Math.max(0, this.#askedAt + APART_MS - clock.monotonic()));
    this.#next = undefined;
    this.#askedAt = clock.monotonic();
    const id = ++this.#lastId;
    const answer = new Promise<string>((resolve) => this.#waiting.set(id, resolve));
    try {
      ask(id, this.#askedAt + ANSWER_WITHIN_MS);
      const text = await withTimeout(clock, ANSWER_WITHIN_MS, answer);
      if (text !== undefined) return text;
      throw new HttpProblem('unavailable', `the process did not tell its metrics within ${ANSWER_WITHIN_MS} ms`, { 'retry-after': '1' });
    } finally {
      this.#waiting.delete(id);
    }
  }
}
