import { lookup as lookUp } from 'node:dns/promises';
import { isIP } from 'node:net';
import { withTimeout } from '../base/abort.js';
import type { Clock } from '../base/clock.js';

/** The addresses of a host, the preferred one first; rejects where there are none, or nobody knows. */
export type Lookup = (host: string) => Promise<readonly string[]>;

/** What became of a name. */
export type Resolution =
  /** At least one address. */
  | { readonly status: 'found'; readonly addresses: readonly string[] }
  /** With the reason, for people. */
  | { readonly status: 'failed'; readonly problem: string };

export interface ResolveOptions {
  /** One for all who share a resolver. */
  readonly clock: Clock;
  /** How long to wait for the answer, in milliseconds. */
  readonly limitMs: number;
  /** Aborts when the asker is no longer interested in any answer. */
  readonly signal: AbortSignal;
}

/** How long an answer holds, in milliseconds: for those who ask together, and for one who had to wait too long and comes back. */
const RECENT_MS = 5_000;

interface Wanted {
  readonly host: string;
  readonly clock: Clock;
  readonly askers: Set<AbortSignal>;
  readonly resolution: Promise<Resolution>;
  readonly settle: (resolution: Resolution) => void;
}

/**
 * Finds the addresses of hosts, one lookup at a time, whoever asks.
 *
 * The system's lookup cannot be cancelled, takes as long as it likes (many seconds where a name server is silent), and holds one of the
 * four threads that all lookups and file operations of the process share. Lookups begun anew at every attempt to connect would soon hold all
 * of them, and the store's host could not be resolved any more. So a further question about a host joins the one under way, and other
 * hosts stand in line.
 */
export class NameResolver {
  /** In the order of asking; while there are any, the first is being looked up. */
  readonly #wanted = new Map<string, Wanted>();
  readonly #recent = new Map<string, { readonly resolution: Resolution; readonly at: number }>();
  #isBusy = false;

  constructor(private readonly lookup: Lookup = systemLookup) {}

  /**
   * Resolves with the addresses, or with what is wrong, within `limitMs`. An IP address is its own. When the time is up the lookup goes on,
   * and its answer serves whoever asks next.
   *
   * @throws the reason of `signal` when it aborts
   */
  async resolve(host: string, { clock, limitMs, signal }: ResolveOptions): Promise<Resolution> {
    signal.throwIfAborted();
    if (isIP(host) !== 0) return { status: 'found', addresses: [host] };
    const recent = this.#recent.get(host);
    if (recent && clock.monotonic() - recent.at < RECENT_MS) return recent.resolution;
    const resolution = await withTimeout(clock, limitMs, this.#ask(host, clock, signal), signal);
    return resolution ?? { status: 'failed', problem: `the name was not resolved within ${Math.round(limitMs)} ms` };
  }

  #ask(host: string, clock: Clock, asker: AbortSignal): Promise<Resolution> {
    let wanted = this.#wanted.get(host);
    if (!wanted) {
      let settle: (resolution: Resolution) => void = () => undefined;
      const resolution = new Promise<Resolution>((resolve) => {
        settle = resolve;
      });
      wanted = { host, clock, askers: new Set(), resolution, settle };
      this.#wanted.set(host, wanted);
    }
    wanted.askers.add(asker);
    if (!this.#isBusy) void this.#work();
    return wanted.resolution;
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    for (const wanted of this.#wanted.values()) {
      const { host, clock, askers, settle } = wanted;
      // Nobody is left who could use the answer, and a lookup would keep the process from ending.
      if (![...askers].every(({ aborted }) => aborted)) {
        const resolution = await this.#lookUp(host);
        if (resolution.status === 'found') this.#recent.set(host, { resolution, at: clock.monotonic() });
        settle(resolution);
      }
      this.#wanted.delete(host);
    }
    this.#isBusy = false;
  }

  async #lookUp(host: string): Promise<Resolution> {
    try {
      const addresses = await this.lookup(host);
      return addresses.length > 0 ? { status: 'found', addresses } : { status: 'failed', problem: 'the name has no address' };
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
