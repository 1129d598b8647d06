import { backoffMs } from '../base/backoff.js';
import type { Clock, RandomSource } from '../base/clock.js';
import { notify } from '../base/listeners.js';
import type { Session } from './library-session.js';
import type { Watch, Znode } from './zookeeper.js';
import { isFault } from './zookeeper-error.js';

// Watches that stay, made of ZooKeeper's one-shot ones: whenever something may have changed, a watch reads
// again, and that read sets the next one-shot watch.

/** Makes one request, with a deadline. */
export type Send = <T>(request: (session: Session) => Promise<T>) => Promise<T>;

export interface StandingWatchesOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Whether a request could be sent now. */
  readonly isConnected: () => boolean;
}

/** How many watches read at a time: after a reconnect all of them have to. */
const READS_AT_ONCE = 64;
/** Between the reads of a watch that fails, in milliseconds: the first and the longest. */
const RETRY_MS = { first: 100, max: 5_000 };

/** A watch that stays: one read at a time; what happens meanwhile leads to another. */
interface StandingWatch {
  /** Reads, leaves a one-shot watch, and tells the listener what is new. */
  readonly read: () => Promise<void>;
  /**
   * Tells the listener that the znode is gone, for one that need not hear of what is made at the path again.
   */
  readonly gone: (() => void) | undefined;
  isStale: boolean;
  isReading: boolean;
  isClosed: boolean;
  /** How many reads have failed in succession. */
  failures: number;
}

/**
 * All standing watches of a client: tells them what may have changed, and lets them read in turn. Paths are
 * those on the servers.
 */
export class StandingWatches {
  readonly #watches = new Map<string, Set<StandingWatch>>();
  readonly #queue = new Set<StandingWatch>();
  #reading = 0;
  readonly #over = new AbortController();

  constructor(private readonly options: StandingWatchesOptions) {}

  /** How many watches stand. */
  get size(): number {
    return [...this.#watches.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Watches the children of a znode. */
  children(path: string, send: Send, listener: (children: readonly string[] | undefined) => void): Watch {
    const read = () => orAbsent(path, send, (session) => session.children(path, true));
    return this.#watch(path, read, (children) => children && `/${[...children].sort().join('/')}`, listener);
  }

  /** Watches the data of a znode. */
  data(path: string, send: Send, listener: (znode: Znode | undefined) => void): Watch {
    const read = () => orAbsent(path, send, (session) => session.read(path, true));
    // Equal where the same transaction wrote the data of the same znode.
    return this.#watch(
      path,
      read,
      (znode) => znode && `${znode.stat.createdZxid}:${znode.stat.modifiedZxid}`,
      listener,
    );
  }

  /** Watches for the end of a znode. */
  removal(path: string, send: Send, listener: () => void): Watch {
    const read = () => orAbsent(path, send, (session) => session.read(path, true));
    const tell = (znode: Znode | undefined) => znode === undefined && listener();
    return this.#watch(path, read, (znode) => znode && 'there', tell, true);
  }

  /**
   * A one-shot watch on a path has fired. One that was set for a watch that is closed by now reaches no
   * watch.
   */
  onChanged(path: string, isGone: boolean): void {
    for (const watch of this.#watches.get(path) ?? []) {
      if (isGone) watch.gone?.();
      this.#invalidate(watch);
    }
  }

  /**
   * There is a connection. The one-shot watches went with the last one, and what happened since has not been
   * told.
   */
  onConnected(): void {
    for (const watches of this.#watches.values()) for (const watch of watches) this.#invalidate(watch);
    this.#pump();
  }

  close(): void {
    this.#over.abort();
    for (const watches of this.#watches.values()) for (const watch of watches) watch.isClosed = true;
    this.#watches.clear();
    this.#queue.clear();
  }

  /**
   * @param read reads the present state, and leaves a one-shot watch on it, so that no later change goes
   * unnoticed
   * @param fingerprint equal for equal states
   * @param endsWithIt whether the removal of the znode is told before what is read after it
   */
  #watch<S>(
    path: string,
    read: () => Promise<S | undefined>,
    fingerprint: (state: S | undefined) => string | undefined,
    listener: (state: S | undefined) => void,
    endsWithIt = false,
  ): Watch {
    let told: { readonly print: string | undefined } | undefined;
    let onFirst: () => void = () => undefined;
    const first = new Promise<void>((resolve) => {
      onFirst = resolve;
    });
    const tell = (state: S | undefined) => {
      const print = fingerprint(state);
      if (told === undefined || told.print !== print) {
        told = { print };
        notify(listener, state);
      }
      onFirst();
    };
    const watch: StandingWatch = {
      ...{ isStale: false, isReading: false, isClosed: this.#over.signal.aborted, failures: 0 },
      read: async () => {
        const state = await read();
        if (!watch.isClosed) tell(state);
      },
      gone: endsWithIt ? () => !watch.isClosed && tell(undefined) : undefined,
    };
    if (!watch.isClosed) {
      this.#watches.set(path, (this.#watches.get(path) ?? new Set()).add(watch));
      this.#invalidate(watch);
    }
    return { first, close: () => this.#forget(path, watch) };
  }

  #forget(path: string, watch: StandingWatch): void {
    watch.isClosed = true;
    this.#queue.delete(watch);
    const watches = this.#watches.get(path);
    watches?.delete(watch);
    if (watches?.size === 0) this.#watches.delete(path);
  }

  /** What the watch has read may be out of date. */
  #invalidate(watch: StandingWatch): void {
    watch.isStale = true;
    if (watch.isClosed || watch.isReading) return;
    this.#queue.add(watch);
    this.#pump();
  }

  #pump(): void {
    for (const watch of this.#queue) {
      if (this.#reading >= READS_AT_ONCE || !this.options.isConnected()) return;
      this.#queue.delete(watch);
      void this.#read(watch);
    }
  }

  /** Never rejects. */
  async #read(watch: StandingWatch): Promise<void> {
    const { clock, random } = this.options;
    this.#reading += 1;
    watch.isReading = true;
    watch.isStale = false;
    const failure = await watch.read().catch((error: unknown) => error);
    watch.isReading = false;
    watch.failures = failure === undefined ? 0 : watch.failures + 1;
    this.#reading -= 1;
    if (watch.isStale) this.#invalidate(watch);
    this.#pump();
    // The next connection has every watch read again. What fails while there is one is repeated a little
    // later.
    if (failure === undefined || isFault(failure, 'connection-loss', 'session-expired', 'closed')) return;
    await clock
      .sleep(backoffMs(RETRY_MS, watch.failures + 1, random), this.#over.signal)
      .catch(() => undefined);
    this.#invalidate(watch);
  }
}

/**
 * An absent znode takes no watch on its data or children, only one on its making; when it was made in
 * between, it is read after all.
 */
async function orAbsent<S>(
  path: string,
  send: Send,
  read: (session: Session) => Promise<S>,
): Promise<S | undefined> {
  for (;;) {
    try {
      return await send(read);
    } catch (error) {
      if (!isFault(error, 'no-node')) throw error;
    }
    if (!(await send((session) => session.exists(path, true)))) return undefined;
  }
}
