import type { MessagePort } from 'node:worker_threads';
import { onAbort, withTimeout } from '../../../core/base/abort.js';
import type { Clock } from '../../../core/base/clock.js';
import type { MonitorEvent, NodeMonitor, WatchedNode } from '../../../node/runtime/node-monitor.js';
import type { NodeHealth } from '../../../node/wire/node-health.js';
import type { MetricsText } from '../../http/node-app.js';
import { HttpProblem } from '../../http/problem.js';
import { Mirror, Publisher } from '../../kit/mirror.js';

/** How long a request waits for metrics, in milliseconds. */
const METRICS_TIMEOUT_MS = 2_000;
/**
 * The minimum time from one question for metrics to the next, in milliseconds: collecting them takes the
 * other thread a millisecond or two.
 */
const METRICS_INTERVAL_MS = 100;

/** Publishes the health of this thread's node. */
export class HealthPublisher extends Publisher<NodeHealth> {
  readonly #forget: () => void;
  #forgetRelease: (() => void) | undefined;

  constructor(private readonly monitor: NodeMonitor) {
    super();
    this.#forget = monitor.onEvent((event) => this.#onEvent(event));
  }

  override close(): void {
    this.#forget();
    this.#forgetRelease?.();
    super.close();
  }

  protected current(): NodeHealth {
    return this.monitor.health();
  }

  #onEvent(event: MonitorEvent) {
    // The release begins without an event: from then on nothing is held, however long it takes.
    const ending = this.monitor.lease?.tenureTime?.signal;
    if (ending?.aborted === false) this.#forgetRelease ??= onAbort(ending, () => this.send());
    if (event.type === 'phase') this.send();
    // When all of what belongs to the event has happened.
    else queueMicrotask(() => this.send());
  }
}

/**
 * The health of another thread's node. Past the deadline, on the monotonic clock that all threads share, the
 * lease is lost, whether the other thread is there to say so or not.
 */
export class HealthMirror extends Mirror<NodeHealth> implements WatchedNode {
  constructor(
    port: MessagePort,
    private readonly clock: Clock,
  ) {
    super(port);
  }

  health(): NodeHealth {
    const received = this.newest();
    // None is held, or one without a deadline.
    if (received.deadline === null || this.clock.monotonic() < received.deadline) return received;
    return {
      ...received,
      state: 'lost',
      live: false,
      ready: false,
      reason: 'the lease is over: no renewal came through before its deadline',
      retiring: false,
      deadline: null,
    };
  }
}

/** The metrics of a process at one moment. */
export interface CollectedMetrics {
  readonly contentType: string;
  readonly text: string;
}

/**
 * The metrics of another thread, asked for one at a time, at most ten times in a second. Requests that come
 * meanwhile share the answer.
 */
export class AskedMetrics implements MetricsText {
  /** That of the last answer. */
  contentType = 'text/plain; charset=utf-8';
  #askedAt = Number.NEGATIVE_INFINITY;
  #answer: Promise<string | undefined> | undefined;
  #resolve: (text: string | undefined) => void = () => undefined;

  /** @param ask sends a question, to be answered by {@link answered} */
  constructor(
    private readonly clock: Clock,
    private readonly ask: () => void,
  ) {}

  /**
   * @throws {HttpProblem} `unavailable` when the other thread does not answer within two seconds, or without
   * metrics
   */
  async text(): Promise<string> {
    this.#answer ??= this.#ask();
    const text = await withTimeout(this.clock, METRICS_TIMEOUT_MS, this.#answer);
    if (text !== undefined) return text;
    throw new HttpProblem(
      'unavailable',
      `the process did not tell its metrics within ${METRICS_TIMEOUT_MS} ms`,
      { 'retry-after': '1' },
    );
  }

  /** The answer of the other thread; undefined where it has no metrics. */
  answered(metrics: CollectedMetrics | undefined): void {
    this.contentType = metrics?.contentType ?? this.contentType;
    this.#answer = undefined;
    this.#resolve(metrics?.text);
  }

  async #ask(): Promise<string | undefined> {
    await this.clock.sleep(Math.max(0, this.#askedAt + METRICS_INTERVAL_MS - this.clock.monotonic()));
    this.#askedAt = this.clock.monotonic();
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.ask();
    });
  }
}
