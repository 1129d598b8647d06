import type { Socket } from 'node:net';

/** One thing that happened on the sending side, waiting to be repeated on the receiving side. */
type Item = { readonly dueAt: number } & (
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'end' }
  | { readonly kind: 'close'; readonly broken: boolean }
);

/**
 * One direction of a proxied connection: a queue that can be held and slowed down, and that keeps its order.
 */
export class ProxyLane {
  readonly #to: Socket;
  #queue: Item[] = [];
  #timer: NodeJS.Timeout | undefined;
  #stalled: boolean;
  #delayMs: number;

  constructor(
    from: Socket,
    to: Socket,
    options: { stalled: boolean; delayMs: number; onBytes?: (bytes: Buffer) => Buffer },
  ) {
    this.#to = to;
    this.#stalled = options.stalled;
    this.#delayMs = options.delayMs;
    from.on('data', (bytes: Buffer) => {
      const passed = options.onBytes ? options.onBytes(bytes) : bytes;
      if (passed.length > 0) this.#add({ kind: 'bytes', bytes: passed, dueAt: this.#due() });
    });
    from.on('end', () => this.#add({ kind: 'end', dueAt: this.#due() }));
    from.on('close', (broken) => this.#add({ kind: 'close', broken, dueAt: this.#due() }));
  }

  /** True when something waits in it. */
  get holds(): boolean {
    return this.#queue.length > 0;
  }

  stall(): void {
    this.#stalled = true;
  }

  /** Applies to what arrives from now on. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** No longer stalled nor slow: what waits in it goes on its way at once. */
  release(): void {
    this.#stalled = false;
    this.#delayMs = 0;
    this.#queue = this.#queue.map((item) => ({ ...item, dueAt: 0 }));
    this.#flush();
  }

  /** Forgets what waits in it. */
  discard(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#queue = [];
  }

  #due(): number {
    // Never before what is already waiting, so that a shorter delay cannot change the order.
    return Math.max(performance.now() + this.#delayMs, this.#queue.at(-1)?.dueAt ?? 0);
  }

  #add(item: Item): void {
    this.#queue.push(item);
    this.#flush();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (!this.#stalled) {
      const item = this.#queue[0];
      if (!item) return;
      const waitMs = item.dueAt - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#flush(), waitMs);
        return;
      }
      this.#queue.shift();
      this.#repeat(item);
    }
  }

  #repeat(item: Item): void {
    if (this.#to.destroyed) return;
    if (item.kind === 'bytes') this.#to.write(item.bytes);
    else if (item.kind === 'end') this.#to.end();
    else if (item.broken) breakOff(this.#to);
    else this.#to.destroySoon();
  }
}

/**
 * Resets a connection. One whose end is being sent is closed: Node never closes such a one that is reset, and at its
 * own end it waits for that with all of a processor.
 */
export function breakOff(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}
