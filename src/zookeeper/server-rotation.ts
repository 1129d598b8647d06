import type { RandomSource } from '../clock.js';
import type { ServerAddress } from './connect-string.js';

/** Between two rounds over all servers, in milliseconds: the first and the longest. */
const ROUND_BASE_MS = 50;
const ROUND_CAP_MS = 1_000;

/**
 * Which server to try next, and after which pause.
 *
 * Each client has an order of its own, drawn at random, so that the servers share the load. Within a round there is no pause; between rounds
 * it grows, and differs from client to client, so that a server that comes back is not met by all of them at once.
 */
export class ServerRotation {
  readonly #servers: readonly ServerAddress[];
  #next = 0;
  /** Since the last good connection. */
  #attempts = 0;

  /** @param servers at least one */
  constructor(
    servers: readonly ServerAddress[],
    private readonly random: RandomSource,
  ) {
    const keyed = servers.map((server) => ({ server, key: random.next() }));
    this.#servers = keyed.sort((a, b) => a.key - b.key).map(({ server }) => server);
  }

  /** How long to wait before {@link next}, in milliseconds. */
  pauseMs(): number {
    const { length } = this.#servers;
    if (this.#attempts === 0 || this.#attempts % length !== 0) return 0;
    const rounds = Math.min(this.#attempts / length, 10);
    return Math.min(ROUND_CAP_MS, ROUND_BASE_MS * 2 ** rounds) * (0.5 + this.random.next() / 2);
  }

  /** The server that is up, never the one before while there is another. */
  next(): ServerAddress {
    const server = this.#servers[this.#next % this.#servers.length] as ServerAddress;
    this.#next += 1;
    this.#attempts += 1;
    return server;
  }

  /** The last connection was a good one: the search for the next begins without a pause. */
  succeeded(): void {
    this.#attempts = 0;
  }
}
