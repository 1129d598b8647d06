import { lookup as lookUp } from 'node:dns/promises';
import { isIP } from 'node:net';
import { withTimeout } from '../../../core/base/abort.js';
import type { Clock } from '../../../core/base/clock.js';

/** The addresses of a host, the preferred one first; rejects where none are known. */
export type Lookup = (host: string) => Promise<readonly string[]>;

/** The result of a lookup: at least one address, or the reason why there is none, for people. */
type Resolution =
  | { readonly status: 'found'; readonly addresses: readonly string[] }
  | { readonly status: 'failed'; readonly problem: string };

interface ResolveOptions {
  readonly clock: Clock;
  /** How long to wait for the answer, in milliseconds. */
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/**
 * How long an answer is valid, in milliseconds: for simultaneous callers, and for one that had to wait too
 * long and asks again.
 */
const RECENT_MS = 5_000;

interface Wanted {
  readonly askers: Set<AbortSignal>;
  readonly resolution: Promise<Resolution>;
}

/**
 * Finds the addresses of hosts, one lookup at a time.
 *
 * The system's lookup cannot be cancelled, may take many seconds, and holds one of the four threads that all
 * lookups and file operations of the process share. A new lookup at every attempt to connect would soon hold
 * all of them, and the store's host could not be resolved any more. So a further query for a host joins the
 * current one, and other hosts wait.
 */
export class NameResolver {
  readonly #wanted = new Map<string, Wanted>();
  readonly #recent = new Map<string, { readonly resolution: Resolution; readonly at: number }>();
  /** Settles when all lookups that are wanted have ended. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly lookup: Lookup = systemLookup) {}

  /**
   * Resolves with the addresses, or with the problem, within `limitMs`. An IP address resolves to itself.
   * When the time is up the lookup continues, and its answer serves later callers.
   *
   * @throws the reason of `signal` when it aborts
   */
  async resolve(host: string, { clock, limitMs, signal }: ResolveOptions): Promise<Resolution> {
    signal.throwIfAborted();
    if (isIP(host) !== 0) return { status: 'found', addresses: [host] };
    const recent = this.#recent.get(host);
    if (recent && clock.monotonic() - recent.at < RECENT_MS) return recent.resolution;
    const resolution = await withTimeout(clock, limitMs, this.#ask(host, clock, signal), signal);
    return (
      resolution ?? {
        status: 'failed',
        problem: `the name was not resolved within ${Math.round(limitMs)} ms`,
      }
    );
  }

  #ask(host: string, clock: Clock, asker: AbortSignal): Promise<Resolution> {
    const known = this.#wanted.get(host);
    if (known) {
      known.askers.add(asker);
      return known.resolution;
    }
    const askers = new Set([asker]);
    const answer = () => this.#answer(host, clock, askers);
    const resolution = this.#wanted.size === 0 ? answer() : this.#last.then(answer);
    this.#last = resolution;
    this.#wanted.set(host, { askers, resolution });
    return resolution;
  }

  async #answer(host: string, clock: Clock, askers: ReadonlySet<AbortSignal>): Promise<Resolution> {
    // Where no asker is left, a lookup would only keep the process from ending.
    const isWanted = [...askers].some(({ aborted }) => !aborted);
    const resolution: Resolution = isWanted
      ? await this.#lookUp(host)
      : { status: 'failed', problem: 'no one asks' };
    for (const [known, { at }] of this.#recent)
      if (clock.monotonic() - at >= RECENT_MS) this.#recent.delete(known);
    if (resolution.status === 'found') this.#recent.set(host, { resolution, at: clock.monotonic() });
    this.#wanted.delete(host);
    return resolution;
  }

  async #lookUp(host: string): Promise<Resolution> {
    try {
      const addresses = await this.lookup(host);
      return addresses.length > 0
        ? { status: 'found', addresses }
        : { status: 'failed', problem: 'the name has no address' };
    } catch (error) {
      return { status: 'failed', problem: error instanceof Error ? error.message : String(error) };
    }
  }
}

/** The one of the process. */
export const sharedResolver = new NameResolver();

/** As the system is set up: also by `/etc/hosts`. */
async function systemLookup(host: string): Promise<readonly string[]> {
  return (await lookUp(host, { all: true })).map(({ address }) => address);
}
