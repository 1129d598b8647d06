import { backoffMs, CALLER_WAITS } from '../../../core/base/backoff.js';
import type { ServerAddress } from '../connect-string.js';
import type { TimeSources } from '../zookeeper.js';
import type { NameResolver } from './name-resolver.js';

interface ServerSearchOptions extends TimeSources {
  readonly servers: readonly ServerAddress[];
  /** The requested time-out of the session, in milliseconds. */
  readonly sessionTimeoutMs: number;
  readonly names: NameResolver;
}

/** Where to connect to next, or why one of the servers is out of the question for now. */
export type Candidate =
  | {
      readonly status: 'found';
      readonly server: ServerAddress;
      /** One of the server's IP addresses. */
      readonly address: string;
      /** How long it may take until there is a session, in milliseconds. */
      readonly limitMs: number;
    }
  | { readonly status: 'unresolved'; readonly server: ServerAddress; readonly problem: string };

/** How long an attempt to connect may take, and a lookup, in milliseconds. */
const ATTEMPT_MS = { min: 500, max: 5_000 };

/**
 * Finds the next address to connect to.
 *
 * Each client has its own random order of servers, so that the servers share the load. Within a round over
 * all of them there is no pause. Between rounds the pause grows, and differs from client to client, so that
 * not all clients reach a returning server at once.
 *
 * A name may have the addresses of all servers of an ensemble, or of one server in two families. So each
 * server's addresses are tried in turn without a pause, beginning after the one that was tried last.
 */
export class ServerSearch {
  readonly #servers: readonly ServerAddress[];
  /** Number of servers that were tried, since the beginning and since the last good connection. */
  #turns = 0;
  #attempts = 0;
  readonly #lastTried = new Map<string, string>();
  /** The server that is up, and its addresses that have not been tried in this turn. */
  #turn: { readonly server: ServerAddress; readonly untried: string[]; readonly limitMs: number } | undefined;
  /** How many attempts in succession took too long. */
  #unanswered = 0;

  constructor(private readonly options: ServerSearchOptions) {
    const keyed = options.servers.map((server) => ({ server, key: options.random.next() }));
    this.#servers = keyed.sort((a, b) => a.key - b.key).map(({ server }) => server);
  }

  /** The next address to try, when it is time for it. @throws `signal.reason` when `signal` aborts */
  async next(signal: AbortSignal): Promise<Candidate> {
    const { clock, names, servers } = this.options;
    if (!this.#turn || this.#turn.untried.length === 0) {
      // Without a pause, too, it continues in a separate turn, when the last attempt is over.
      await clock.sleep(this.#pauseMs(), signal);
      const server = this.#servers[this.#turns % servers.length] as ServerAddress;
      this.#turns += 1;
      this.#attempts += 1;
      const resolution = await names.resolve(server.host, {
        clock,
        limitMs: this.#limitMs(servers.length),
        signal,
      });
      if (resolution.status === 'failed')
        return { status: 'unresolved', server, problem: resolution.problem };
      const { addresses } = resolution;
      const begin = addresses.indexOf(this.#lastTried.get(server.host) ?? '') + 1;
      const limitMs = this.#limitMs(Math.max(servers.length, addresses.length));
      this.#turn = { server, untried: [...addresses.slice(begin), ...addresses.slice(0, begin)], limitMs };
    } else await clock.sleep(0, signal);
    const { server, untried, limitMs } = this.#turn;
    const address = untried.shift() ?? server.host;
    this.#lastTried.set(server.host, address);
    // A server that is just starting may never answer over its first connection, but does over the next. A
    // slow one gets more time.
    return {
      status: 'found',
      server,
      address,
      limitMs: Math.min(limitMs, ATTEMPT_MS.min * 2 ** Math.min(this.#unanswered, 10)),
    };
  }

  /** The last attempt took too long, and was given up. */
  unanswered(): void {
    this.#unanswered += 1;
  }

  /** There is a session: after its connection is lost, the remaining addresses are not tried. */
  connected(): void {
    this.#turn = undefined;
    this.#unanswered = 0;
  }

  /** The last connection was a good one: the search for the next begins without a pause. */
  succeeded(): void {
    this.#attempts = 0;
  }

  #pauseMs(): number {
    const rounds = this.#attempts / this.#servers.length;
    return Number.isInteger(rounds) ? backoffMs(CALLER_WAITS, rounds, this.options.random) : 0;
  }

  /** Short enough for three of them within the session's time-out. */
  #limitMs(choices: number): number {
    return Math.min(
      ATTEMPT_MS.max,
      Math.max(ATTEMPT_MS.min, this.options.sessionTimeoutMs / (3 * Math.min(3, choices))),
    );
  }
}
