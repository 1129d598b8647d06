import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { onAbort } from '../base/abort.js';
import type { MonitorEvent, NodeMonitor } from '../monitor/node-monitor.js';
import { SharedDeadline } from './shared-deadline.js';

/** What a thread needs to mirror a node; it can be sent there, with the port as one of those that move. */
export interface MirrorSource {
  /** Each message is a `NodeHealth`; one is there already. */
  readonly port: MessagePort;
  /** Of a `SharedDeadline`. */
  readonly deadline: SharedArrayBuffer;
}

/**
 * Tells another thread of the health of this one's node, for a `MirroredNode` to answer from. It costs a message at each event and waits for
 * nobody: what the other thread does is no concern of the lease's.
 */
export class NodeFeed {
  readonly #deadline = new SharedDeadline();
  readonly #forget: () => void;
  #port: MessagePort | undefined;
  #isPending = false;
  #forgetRelease: (() => void) | undefined;

  constructor(private readonly monitor: NodeMonitor) {
    this.#forget = monitor.onEvent((event) => this.#onEvent(event));
  }

  /** One thread at a time: whoever was connected before hears nothing any more. */
  connect(): MirrorSource {
    this.#port?.close();
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.unref();
    this.#tell();
    return { port: port2, deadline: this.#deadline.memory };
  }

  /** Tells nothing any more. */
  close(): void {
    this.#forget();
    this.#forgetRelease?.();
    this.#port?.close();
    this.#port = undefined;
  }

  #onEvent(event: MonitorEvent): void {
    const { lease } = this.monitor;
    // Not in a message: one that goes out late must not make a lease that was renewed look as if it were over.
    if (lease !== undefined && Number.isFinite(lease.deadline)) this.#deadline.set(lease.deadline);
    const ending = lease?.tenureTime?.signal;
    // The release begins without an event: from then on nothing is held, however long it takes.
    if (ending?.aborted === false) this.#forgetRelease ??= onAbort(ending, () => this.#tell());
    if (event.type === 'phase') this.#tell();
    else this.#tellSoon();
  }

  /** When all of what belongs to the event has happened. */
  #tellSoon(): void {
    if (this.#isPending) return;
    this.#isPending = true;
    void Promise.resolve().then(() => {
      this.#isPending = false;
      this.#tell();
    });
  }

  #tell(): void {
    this.#port?.postMessage(this.monitor.health());
  }
}
