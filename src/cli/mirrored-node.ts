import { receiveMessageOnPort } from 'node:worker_threads';
import type { Clock } from '../clock.js';
import type { NodeHealth, WatchedNode } from '../monitor/node-health.js';
import { notify } from '../zookeeper/listeners.js';
import type { MirrorSource } from './node-feed.js';
import { SharedDeadline } from './shared-deadline.js';

const OVER = 'the lease is over: no renewal came through before its deadline';

/**
 * The node of another thread. It answers with what that one told last, read when it is asked, and by the clock: past the deadline the lease is
 * lost, whether the other thread is there to say so or not.
 */
export class MirroredNode implements WatchedNode {
  readonly #listeners = new Set<() => void>();
  readonly #deadline: SharedDeadline;
  #told: NodeHealth;

  /** @throws Error when the other thread has told nothing yet */
  constructor(
    private readonly source: MirrorSource,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {
    this.#deadline = new SharedDeadline(source.deadline);
    const first: { readonly message: NodeHealth } | undefined = receiveMessageOnPort(source.port);
    if (first === undefined) throw new Error('nothing is known of the node');
    this.#told = first.message;
    source.port.on('message', (health: NodeHealth) => this.#receive(health));
  }

  health(): NodeHealth {
    // In the order in which they were told: what this thread has not had the time to receive is as true as the rest.
    for (let next = receiveMessageOnPort(this.source.port); next !== undefined; next = receiveMessageOnPort(this.source.port)) {
      this.#receive(next.message);
    }
    const told = this.#told;
    // None is held, or one without a deadline.
    if (told.deadline === null) return told;
    const deadline = this.#deadline.value;
    if (this.clock.monotonic() < deadline) return { ...told, deadline };
    return { ...told, state: 'lost', live: false, ready: false, reason: OVER, retiring: false, deadline: null };
  }

  onEvent(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Hears nothing any more. */
  close(): void {
    this.source.port.close();
  }

  #receive(health: NodeHealth): void {
    this.#told = health;
    for (const listener of this.#listeners) notify(listener, undefined);
  }
}
