import { notify } from '../../core/base/listeners.js';
import { backoffMs, IN_BACKGROUND } from '../../core/base/retry.js';
import { CALLS_AT_ONCE } from './call-limits.js';
import type { Session } from './connection/library-session.js';
import { isFault, type ReadingWatch, type TimeSources, type Znode } from './zookeeper.js';

// Watches that stay, made of ZooKeeper's one-shot ones: whenever something may have changed, a watch reads
// again, and that read sets the next one-shot watch.

interface StandingWatchesOptions extends TimeSources {
  /** Whether a request could be sent now. */
  readonly isConnected: () => boolean;
  /** Makes one request about a path, with a deadline. `full` is the path on the servers. */
  readonly send: <T>(
    operation: string,
    path: string,
    request: (session: Session, full: string) => Promise<T>,
  ) => Promise<T>;
}

/** The subject of a watch. */
export interface Watched<S> {
  /** For messages. */
  readonly operation: string;
  /** Reads the present state, and leaves a one-shot watch on it, so that no later change goes unnoticed. */
  readonly read: (session: Session, full: string) => Promise<S>;
  /** Equal for equal states. */
  readonly fingerprint: (state: S) => string;
  /** Whether the removal of the znode is reported before the state that is read after it. */
  readonly endsWithIt?: boolean;
}

export const CHILDREN: Watched<readonly string[]> = {
  operation: 'watchChildren',
  read: (session, full) => session.children(full, true),
  fingerprint: (names) => [...names].sort().join('/'),
};
export const DATA: Watched<Znode> = {
  operation: 'watchData',
  read: (session, full) => session.read(full, true),
  // Equal where the same transaction wrote the data of the same znode.
  fingerprint: ({ stat }) => `${stat.createdZxid}:${stat.modifiedZxid}`,
};
export const REMOVAL: Watched<Znode> = {
  operation: 'watchRemoval',
  read: DATA.read,
  fingerprint: () => '',
  endsWithIt: true,
};

/** Receives each state, undefined for an absent znode; of {@link REMOVAL} only that. */
export type WatchListener<S> = (state: S | undefined, path: string) => void;

/** The fingerprint before anything has been reported; that of an absent znode is undefined. */
const NOTHING = Symbol('nothing');

/**
 * A watch that stays: it reads one at a time, and a change meanwhile leads to another read. There may be one
 * for each of many thousand znodes: it has no closure, and makes a promise only for the caller that needs it.
 */
class StandingWatch<S> implements ReadingWatch {
  isStale = false;
  isReading = false;
  isClosed = false;
  isRefused = false;
  /** How many reads have failed in succession. */
  failures = 0;
  #reported: string | typeof NOTHING | undefined = NOTHING;
  #first: Promise<void> | undefined;
  #onFirst: (() => void) | undefined;

  constructor(
    readonly watched: Watched<S>,
    readonly path: string,
    private readonly listener: WatchListener<S>,
    private readonly onRefused: ((path: string) => void) | undefined,
    private readonly owner: StandingWatches,
  ) {}

  get first(): Promise<void> {
    this.#first ??= new Promise((resolve) => {
      if (this.#reported === NOTHING) this.#onFirst = resolve;
      else resolve();
    });
    return this.#first;
  }

  /** Calls the listener with a new state. */
  report(state: S | undefined): void {
    const fingerprint = state && this.watched.fingerprint(state);
    if (this.#reported !== fingerprint) {
      this.#reported = fingerprint;
      if (state === undefined || !this.watched.endsWithIt)
        notify((news) => this.listener(news, this.path), state);
    }
    this.#onFirst?.();
  }

  /** What has been reported may not be read any more. The next state is reported even if it is the same one. */
  refuse(): void {
    if (this.isClosed || this.onRefused === undefined || this.#reported === NOTHING) return;
    this.#reported = NOTHING;
    notify(this.onRefused, this.path);
  }

  close(): void {
    this.isClosed = true;
    this.owner.forget(this as StandingWatch<unknown>);
  }
}

/**
 * All standing watches of a client. It lets them read in turn what may have changed. Paths are within the
 * chroot.
 */
export class StandingWatches {
  readonly #watches = new Map<string, readonly StandingWatch<unknown>[]>();
  readonly #queue = new Set<StandingWatch<unknown>>();
  #reading = 0;
  readonly #over = new AbortController();

  constructor(private readonly options: StandingWatchesOptions) {}

  /** How many watches there are. */
  get size(): number {
    return [...this.#watches.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** Watches {@link CHILDREN}, {@link DATA} or {@link REMOVAL} of a znode. */
  add<S>(
    watched: Watched<S>,
    path: string,
    listener: WatchListener<S>,
    onRefused?: (path: string) => void,
  ): ReadingWatch {
    const watch = new StandingWatch(watched, path, listener, onRefused, this) as StandingWatch<unknown>;
    watch.isClosed = this.#over.signal.aborted;
    if (watch.isClosed) return watch;
    this.#watches.set(path, [...(this.#watches.get(path) ?? []), watch]);
    this.#invalidate(watch);
    return watch;
  }

  /**
   * A one-shot watch on a path has fired. One that was set for a watch that is closed by now reaches no
   * watch.
   */
  onChanged(path: string, isGone: boolean): void {
    for (const watch of this.#watches.get(path) ?? []) {
      if (isGone && watch.watched.endsWithIt && !watch.isClosed) watch.report(undefined);
      this.#invalidate(watch);
    }
  }

  /**
   * A connection exists again. The one-shot watches ended with the last one, and changes since then have not
   * been reported.
   */
  onConnected(): void {
    for (const watches of this.#watches.values()) for (const watch of watches) this.#invalidate(watch);
    this.#pump();
  }

  forget(watch: StandingWatch<unknown>): void {
    const { path } = watch;
    this.#queue.delete(watch);
    const others = this.#watches.get(path)?.filter((each) => each !== watch) ?? [];
    if (others.length > 0) this.#watches.set(path, others);
    else this.#watches.delete(path);
  }

  close(): void {
    this.#over.abort();
    for (const watches of this.#watches.values()) for (const watch of watches) watch.isClosed = true;
    this.#watches.clear();
    this.#queue.clear();
  }

  #invalidate(watch: StandingWatch<unknown>) {
    watch.isStale = true;
    if (watch.isReading || watch.isClosed) return;
    this.#queue.add(watch);
    this.#pump();
  }

  #pump() {
    for (const watch of this.#queue) {
      if (this.#reading >= CALLS_AT_ONCE || !this.options.isConnected()) return;
      this.#queue.delete(watch);
      void this.#read(watch);
    }
  }

  /** Never rejects. */
  async #read(watch: StandingWatch<unknown>): Promise<void> {
    const { clock, random } = this.options;
    this.#reading += 1;
    watch.isReading = true;
    watch.isStale = false;
    let failure: unknown;
    try {
      const state = await this.#readOrAbsent(watch);
      if (!watch.isClosed) watch.report(state);
    } catch (error) {
      failure = error;
    }
    watch.isReading = false;
    watch.isRefused =
      failure !== undefined && !isFault(failure, 'timeout', 'connection-loss', 'session-expired', 'closed');
    if (watch.isRefused) watch.refuse();
    watch.failures = failure === undefined ? 0 : watch.failures + 1;
    this.#reading -= 1;
    if (watch.isStale) this.#invalidate(watch);
    this.#pump();
    // At the next connection every watch reads again. A failure with a connection is repeated a little later.
    if (failure === undefined || isFault(failure, 'connection-loss', 'session-expired', 'closed')) return;
    const { failures } = watch;
    await clock
      .sleep(backoffMs(IN_BACKGROUND, failures + 1, random), this.#over.signal)
      .catch(() => undefined);
    // A read in between, such as that of another connection, is repeated by itself.
    if (watch.failures === failures) this.#invalidate(watch);
  }

  /**
   * An absent znode takes no watch on its data or children, only one on its making; when it was made in
   * between, it is read after all.
   */
  async #readOrAbsent({ watched: { operation, read }, path }: StandingWatch<unknown>): Promise<unknown> {
    const { send } = this.options;
    for (;;) {
      try {
        return await send(operation, path, read);
      } catch (error) {
        if (!isFault(error, 'no-node')) throw error;
      }
      if (!(await send(operation, path, (session, full) => session.exists(full, true)))) return undefined;
    }
  }
}
