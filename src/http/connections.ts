import type { Socket } from 'node:net';

/**
 * The connections of a server, so many at the most: when they run short, the one that nobody has used for longest makes room for the next
 * one. Where more than a quarter have never been used at all, it is one of those. Whoever only keeps connections open, or dribbles a request
 * into one, thus keeps nobody out, and takes none away from those who ask again and again.
 *
 * Not guaranteed: room for another one while every connection has a request under way.
 */
export class Connections {
  /** How many requests of each are under way. */
  readonly #open = new Map<Socket, number>();
  /** Those that never had a request, the oldest first. */
  readonly #unused = new Set<Socket>();
  /** Those between two requests, the one unused for longest first. */
  readonly #idle = new Set<Socket>();

  constructor(private readonly most: number) {}

  /** All that there are. */
  all(): Iterable<Socket> {
    return this.#open.keys();
  }

  /** Takes note of a new one, and closes another one where there would be no room for the next. */
  opened(socket: Socket): void {
    this.#open.set(socket, 0);
    this.#unused.add(socket);
    socket.once('close', () => this.#forget(socket));
    if (this.#open.size < this.most) return;
    // Who has just come may be about to ask: a few such are left the time for it.
    const areMany = this.#unused.size > this.most / 4;
    for (const dispensable of areMany ? [this.#unused, this.#idle] : [this.#idle, this.#unused]) {
      for (const longest of dispensable) {
        if (longest === socket) continue;
        this.#forget(longest);
        longest.destroy();
        return;
      }
    }
  }

  /** A request has come. */
  begin(socket: Socket): void {
    const underWay = this.#open.get(socket);
    if (underWay === undefined) return;
    this.#open.set(socket, underWay + 1);
    this.#unused.delete(socket);
    this.#idle.delete(socket);
  }

  /** A request has been answered, or given up. */
  end(socket: Socket): void {
    const underWay = this.#open.get(socket);
    if (underWay === undefined) return;
    this.#open.set(socket, underWay - 1);
    if (underWay === 1) this.#idle.add(socket);
  }

  /** Whether a request is under way. */
  isBusy(socket: Socket): boolean {
    return (this.#open.get(socket) ?? 0) > 0;
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket);
    this.#unused.delete(socket);
    this.#idle.delete(socket);
  }
}
