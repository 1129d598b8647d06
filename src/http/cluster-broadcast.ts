import { orAborted, withTimeout } from '../base/abort.js';
import type { Clock } from '../clock.js';
import { explain } from '../errors.js';
import type { ClusterView } from '../monitor/cluster-view.js';
import type { ClusterApiInstance } from './cluster-api.js';
import { emptyHello, HEARTBEAT, message, type SnapshotText, updateMessage } from './cluster-messages.js';
import { EventQueue } from './event-queue.js';

export interface ClusterBroadcastOptions {
  readonly clock: Clock;
  readonly view: ClusterView;
  readonly texts: SnapshotText;
  readonly instance: ClusterApiInstance | undefined;
}

/** How long a client waits for its first message while the cluster is being looked at, in milliseconds: then it is told that nothing is known yet. */
const HELLO_WITHIN_MS = 1_000;
/** How often the process' own node id is looked at, in milliseconds: that a deadline has passed, nobody tells. */
const TICK_MS = 1_000;
/** How often a sign of life is sent, in ticks. */
const HEARTBEAT_TICKS = 10;
/** How much there may be in first messages that clients have not taken, in bytes: each of a large cluster takes megabytes, unless they tell the same. */
const MOST_UNTAKEN_BYTES = 64 * 1024 * 1024;

/** Tells everybody who listens what becomes of a cluster. It is followed as long as somebody does. */
export class ClusterBroadcast {
  /** Those who have had their first message, and those who wait for it with what came meanwhile. */
  readonly #clients = new Map<EventQueue, Uint8Array[] | undefined>();
  #stop: (() => void) | undefined;
  #instance = '';

  constructor(private readonly options: ClusterBroadcastOptions) {}

  /** One more client. It has joined when it begins to read, and leaves when it cancels the stream. */
  join(): ReadableStream<Uint8Array> {
    const gone = new AbortController();
    const queue: EventQueue = new EventQueue(() => {
      gone.abort();
      this.#clients.delete(queue);
      if (this.#clients.size > 0) return;
      this.#stop?.();
      this.#stop = undefined;
    });
    this.#clients.set(queue, []);
    this.#stop ??= this.#begin();
    void this.#greet(queue, gone.signal);
    return queue.stream;
  }

  #begin(): () => void {
    const { view, instance } = this.options;
    const over = new AbortController();
    const unfollow = view.follow((update) => this.#send(updateMessage(update)));
    const forget = instance?.monitor.onEvent(() => this.#tellInstance(true));
    this.#instance = this.#factsOfInstance();
    void this.#tick(over.signal);
    return () => {
      over.abort();
      unfollow();
      forget?.();
    };
  }

  /** Everything there is, or else that there is nothing yet, and everything once there is. */
  async #greet(queue: EventQueue, gone: AbortSignal): Promise<void> {
    const { view, texts } = this.options;
    try {
      const asked = view.snapshot(gone);
      const first = await withTimeout(this.options.clock, HELLO_WITHIN_MS, asked, gone);
      if (first === undefined) this.#hand(queue, emptyHello(view.epoch, this.#instanceText(), 'unknown', null));
      const snapshot = first ?? (await orAborted(asked, gone));
      this.#hand(queue, texts.hello(view.epoch, this.#instanceText(), snapshot));
    } catch (error) {
      // Whatever was never read is told as a whole when it is read.
      if (!gone.aborted) this.#hand(queue, emptyHello(view.epoch, this.#instanceText(), 'failing', explain(error)));
    }
  }

  #hand(queue: EventQueue, hello: readonly Uint8Array[]): void {
    // It may have left while its message was made.
    if (!this.#clients.has(queue)) return;
    const missed = this.#clients.get(queue) ?? [];
    this.#clients.set(queue, undefined);
    queue.begin(hello);
    for (const each of missed) queue.push(each);
    this.#bound(queue);
  }

  /** Lets go of those that have not taken their first message for longest, while there is too much of that in all. */
  #bound(newest: EventQueue): void {
    const queues = [...this.#clients.keys()];
    const untaken = () => [...new Set(queues.flatMap(({ beginning }) => beginning))].reduce((sum, { length }) => sum + length, 0);
    for (const queue of queues) {
      if (untaken() <= MOST_UNTAKEN_BYTES) return;
      if (queue !== newest && queue.beginning.length > 0) queue.end();
    }
  }

  #send(text: Uint8Array): void {
    // One who is let go by this leaves the map.
    for (const [queue, missed] of [...this.#clients]) {
      if (missed) missed.push(text);
      else queue.push(text);
    }
  }

  async #tick(signal: AbortSignal): Promise<void> {
    try {
      for (let count = 1; ; count += 1) {
        await this.options.clock.sleep(TICK_MS, signal);
        this.#tellInstance(false);
        if (count % HEARTBEAT_TICKS === 0) this.#send(HEARTBEAT);
      }
    } catch {
      // Nobody listens any more.
    }
  }

  /** @param anyway also when nothing but the time that is left is different, as after a renewal */
  #tellInstance(anyway: boolean): void {
    if (this.options.instance === undefined) return;
    const facts = this.#factsOfInstance();
    if (facts === this.#instance && !anyway) return;
    this.#instance = facts;
    this.#send(message('instance', this.#instanceText()));
  }

  /** What changes by more than the passing of time. */
  #factsOfInstance(): string {
    return JSON.stringify({ ...this.options.instance?.json(), validForMs: null });
  }

  #instanceText(): string {
    return JSON.stringify(this.options.instance?.json() ?? null);
  }
}
