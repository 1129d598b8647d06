import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { Listeners } from '../../core/base/listeners.js';

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

  #receive(news: T) {
    this.received = news;
    this.#listeners.notify(news);
  }
}
