import { backoffMs } from '../base/backoff.js';
import type { Clock, RandomSource } from '../base/clock.js';
import type { LibrarySession } from './library-session.js';
import { notify } from './listeners.js';
import type { Watch, Znode } from './zookeeper.js';
import { isFault } from './zookeeper-error.js';

// Watches that stay, made of ZooKeeper's one-shot ones: whenever something may have changed, a watch reads again, and that read sets the next
// one-shot watch.

/** Makes one request, with a deadline. */
export type Send = <T>(request: (session: LibrarySession) => Promise<T>) => Promise<T>;

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

/** All standing watches of a client: tells them what may have changed, and lets them read in turn. Paths are those on the servers. */
export class StandingWatches {
  readonly #watches = new Map<string, Set<StandingWatch<unknown>>>();
  readonly #queue = new Set<StandingWatch<unknown>>();
  #reading = 0;
  readonly #over = new AbortController();

  constructor(private readonly options: StandingWatchesOptions) {}

  /** How many watches stand. */
  get size(): number {
    let sum = 0;
    for (const { size } of this.#watches.values()) sum += size;
    return sum;
  }

  /** Watches the children of a znode. */
  children(path: string, send: Send, listener: (children: readonly string[] | undefined) => void): Watch {
    const read = () => orAbsent(path, send, (session) => session.children(path, true));
    return this.#watch(path, { read, fingerprint: (children) => children && `/${[...children].sort().join('/')}` }, listener);
  }

  /** Watches the data of a znode. */
  data(path: string, send: Send, listener: (znode: Znode | undefined) => void): Watch {
    const read = () => orAbsent(path, send, (session) => session.read(path, true));
    // Equal where the same transaction wrote the data of the same znode.
    return this.#watch(path, { read, fingerprint: (znode) => znode && `${znode.stat.createdZxid}:${znode.stat.modifiedZxid}` }, listener);
  }

  /** A one-shot watch on a path has fired. One that was set for a watch that is closed by now reaches no watch. */
  onChanged(path: string): void {
    for (const watch of this.#watches.get(path) ?? []) this.#invalidate(watch);
  }

  /** There is a connection. The one-shot watches went with the last one, and whatever happened since has not been told. */
  onConnected(): void {
    for (const watches of this.#watches.values()) for (const watch of watches) this.#invalidate(watch);
    this.#pump();
  }

  close(): void {
    this.#over.abort();
    for (const watches of [...this.#watches.values()]) for (const watch of [...watches]) watch.close();
  }

  #watch<S>(path: string, source: WatchedSource<S>, listener: (state: S) => void): Watch {
    const watch: StandingWatch<S> = new StandingWatch(source, listener, () => this.#forget(path, watch as StandingWatch<unknown>));
    if (this.#over.signal.aborted) return watch;
    const others = this.#watches.get(path) ?? new Set();
    this.#watches.set(path, others.add(watch as StandingWatch<unknown>));
    this.#invalidate(watch as StandingWatch<unknown>);
    return watch;
  }

  #forget(path: string, watch: StandingWatch<unknown>): void {
    this.#queue.delete(watch);
    const watches = this.#watches.get(path);
    watches?.delete(watch);
    if (watches?.size === 0) this.#watches.delete(path);
  }

  /** What the watch has read may be out of date. */
  #invalidate(watch: StandingWatch<unknown>): void {
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
  async #read(watch: StandingWatch<unknown>): Promise<void> {
    this.#reading += 1;
    const failure = await watch.read();
    this.#reading -= 1;
    if (watch.isStale) this.#invalidate(watch);
    this.#pump();
    // The next connection has every watch read again. What fails while there is one is repeated a little later.
    if (failure === undefined || isFault(failure, 'connection-loss', 'session-expired', 'closed')) return;
    await this.#pause(watch.failures);
    this.#invalidate(watch);
  }

  /** Waits some time that grows with `failures`; ends at once with the client. */
  async #pause(failures: number): Promise<void> {
    const { clock, random } = this.options;
    await clock.sleep(backoffMs(RETRY_MS, failures + 1, random), this.#over.signal).catch(() => undefined);
  }
}

/** How to read what is watched. */
interface WatchedSource<S> {
  /** Reads the present state, and leaves a one-shot watch on it, so that no later change goes unnoticed. */
  read(): Promise<S>;
  /** Equal for equal states. */
  fingerprint(state: S): string | undefined;
}

/** A watch that stays: one read at a time; what happens meanwhile leads to another. */
class StandingWatch<S> implements Watch {
  readonly first: Promise<void>;
  isStale = false;
  isReading = false;
  isClosed = false;
  /** How many reads have failed in succession. */
  failures = 0;
  #told: { readonly fingerprint: string | undefined } | undefined;
  #onFirst: () => void = () => undefined;

  constructor(
    private readonly source: WatchedSource<S>,
    private readonly listener: (state: S) => void,
    private readonly onClose: () => void,
  ) {
    this.first = new Promise((resolve) => {
      this.#onFirst = resolve;
    });
  }

  /** Reads, and tells the listener what is new. Resolves to why it failed. */
  async read(): Promise<unknown> {
    this.isReading = true;
    this.isStale = false;
    try {
      const state = await this.source.read();
      this.failures = 0;
      if (!this.isClosed) this.#tell(state);
      return undefined;
    } catch (error) {
      this.failures += 1;
      return error;
    } finally {
      this.isReading = false;
    }
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.onClose();
  }

  #tell(state: S): void {
    const fingerprint = this.source.fingerprint(state);
    if (this.#told === undefined || this.#told.fingerprint !== fingerprint) {
      this.#told = { fingerprint };
      notify(this.listener, state);
    }
    this.#onFirst();
  }
}

/** An absent znode takes no watch on its data or children, only one on its making; when it was made in between, it is read after all. */
async function orAbsent<S>(path: string, send: Send, read: (session: LibrarySession) => Promise<S>): Promise<S | undefined> {
  for (;;) {
    try {
      return await send(read);
    } catch (error) {
      if (!isFault(error, 'no-node')) throw error;
    }
    if (!(await send((session) => session.exists(path, true)))) return undefined;
  }
}
