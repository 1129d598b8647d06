import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { onAbort, withTimeout } from '../../../core/base/abort.js';
import type { Clock } from '../../../core/base/clock.js';
import { Listeners } from '../../../core/base/listeners.js';
import type { MonitorEvent, NodeMonitor, WatchedNode } from '../../../node/runtime/node-monitor.js';
import type { NodeHealth } from '../../../node/wire/node-health.js';
import type { MetricsText } from '../../http/node-app.js';
import { HttpProblem } from '../../http/problem.js';

/** How long a request waits for metrics, in milliseconds. */
const METRICS_TIMEOUT_MS = 2_000;
/**
 * The minimum time from one question for metrics to the next, in milliseconds: collecting them takes the
 * other thread a millisecond or two.
 */
const METRICS_INTERVAL_MS = 100;

/**
 * Sends what is known in this thread to another thread, where a {@link Mirror} answers. It costs a message at
 * each event and never waits: what the other thread does cannot delay a renewal.
 */
export abstract class Publisher<T> {
  #port: MessagePort | undefined;

  /**
   * A port for one thread at a time, with what is known now: the thread that was connected before hears
   * nothing any more.
   */
  connect(): MessagePort {
    this.#port?.close();
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on('message', (answer: unknown) => this.received(answer));
    port1.unref();
    this.send();
    return port2;
  }

  /** Sends nothing any more. */
  close(): void {
    this.#port?.close();
    this.#port = undefined;
  }

  protected send(news: T = this.current()): void {
    this.#port?.postMessage(news);
  }

  protected abstract current(): T;

  /** The other thread has sent something. */
  protected received(_answer: unknown): void {}
}

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

  #onEvent(event: MonitorEvent): void {
    const ending = this.monitor.lease?.tenureTime?.signal;
    // The release begins without an event: from then on nothing is held, however long it takes.
    if (ending?.aborted === false) this.#forgetRelease ??= onAbort(ending, () => this.send());
    if (event.type === 'phase') this.send();
    // When all of what belongs to the event has happened.
    else queueMicrotask(() => this.send());
  }
}

/** What another thread knows: what its {@link Publisher} has sent last, read when it is asked for. */
export abstract class Mirror<T> {
  readonly #listeners = new Listeners<T>();
  protected received: T;

  /** @throws Error when the other thread has sent nothing yet */
  constructor(protected readonly port: MessagePort) {
    const first: { readonly message: T } | undefined = receiveMessageOnPort(port);
    if (first === undefined) throw new Error('nothing is known of the node');
    this.received = first.message;
    port.on('message', (news: T) => this.#receive(news));
  }

  onEvent(listener: (news: T) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Hears nothing any more. */
  close(): void {
    this.port.close();
  }

  protected newest(): T {
    // What has been sent counts, also where this thread has not had the time to receive it.
    for (
      let next = receiveMessageOnPort(this.port);
      next !== undefined;
      next = receiveMessageOnPort(this.port)
    ) {
      this.#receive(next.message);
    }
    return this.received;
  }

  #receive(news: T): void {
    this.received = news;
    this.#listeners.notify(news);
  }
}

/**
 * The health of another thread's node. Past the deadline, on the monotonic clock that all threads share, the
 * lease is lost, whether the other thread is there to say so or not.
 */
export class HealthMirror extends Mirror<NodeHealth> implements WatchedNode {
  constructor(
    port: MessagePort,
    private readonly clock: Pick<Clock, 'monotonic'>,
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
    private readonly clock: Pick<Clock, 'monotonic' | 'sleep'>,
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
