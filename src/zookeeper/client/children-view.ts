import type { Clock } from '../../core/base/clock.js';
import { Listeners } from '../../core/base/listeners.js';
import type { SessionState } from './session-state.js';
import { pathProblem } from './znode-path.js';
import type { ReadingWatch, Znode, ZooKeeper } from './zookeeper.js';

/** The part of a znode that is followed: its data, or its children and the followed part of each. */
export type Followed = 'data' | 'children';

/** What a view needs of a client. */
export type ViewedZooKeeper = Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren' | 'watchData'>;

/** The client that is followed with, and the time. */
export interface ViewContext {
  readonly zookeeper: ViewedZooKeeper;
  readonly clock: Clock;
}

export interface ChildrenViewOptions<T> extends ViewContext {
  /** The znode. It need not exist, and may come and go. */
  readonly path: string;
  /**
   * The part of a znode that is followed; undefined to leave a child out. It is called again for such a child
   * when the children have changed.
   *
   * @param depth 0 for the znode itself, 1 for its children
   * @default its children, and of each of them the data
   */
  readonly follow?: ((path: string, depth: number) => Followed | undefined) | undefined;
  /**
   * The value of a znode by its data; undefined for none. To return `before`, its value so far, is to report
   * no change. Must not throw.
   */
  readonly decode: (path: string, znode: Znode, before: T | undefined) => T | undefined;
  /** The value of a znode whose children have been listed, by their names, in order. @default none */
  readonly listed?:
    | ((path: string, before: T | undefined, names: readonly string[]) => T | undefined)
    | undefined;
  /**
   * The value of a znode whose name no client can request, or that the servers have refused for 5 seconds
   * with a connection. For a refused list at the top it is called again every 5 seconds. `problem` is the rest
   * of the sentence "<path> …".
   *
   * @default none
   */
  readonly unreadable?: ((path: string, problem: string) => T | undefined) | undefined;
  /** Called with each new value, undefined where it has none any more. Must not throw. */
  readonly onValue?: ((path: string, value: T | undefined, before: T | undefined) => void) | undefined;
  /**
   * Called when all znodes have been read, just before `ready` resolves, and after each reconnect. In between
   * it is called after changes of values or names, once for all changes in one packet of the servers. Must
   * not throw.
   */
  readonly onChange?: (() => void) | undefined;
}

/** A znode and its known state. There may be many thousand: it has no closure. */
interface ViewedZnode<T> {
  readonly path: string;
  readonly depth: number;
  /** Undefined if no client can request its name. */
  readonly followed: Followed | undefined;
  watch: ReadingWatch | undefined;
  value: T | undefined;
  /** In the order of their names; undefined until they have been listed. */
  children: readonly ViewedZnode<T>[] | undefined;
}

/** After how many seconds with a connection a znode that the servers refuse counts as unreadable. */
const REFUSED_AFTER_S = 5;
/** The problem of such a znode. */
const UNREAD = `has not let itself be read for ${REFUSED_AFTER_S} s`;

/**
 * The children of a znode in memory, and on request their children, kept up to date by a watch for each
 * znode.
 *
 * Without a connection no znode disappears. After a reconnect everything is read again, and `stale` ends when
 * all of it has been read. It waits for a slow read. It does not wait for refused data: they count as
 * unreadable. It waits for a refused list at the top, and for one that has been read before; another one
 * counts as empty. Not guaranteed: that each change is seen, only the last one; that two znodes are seen at
 * one moment.
 */
export class ChildrenView<T> {
  /** Resolves once all has been read for the first time. Never rejects, nor resolves when closed before. */
  readonly ready: Promise<void>;
  #isWhole = false;
  readonly #znodes = new Map<string, ViewedZnode<T>>();
  #becomeReady: () => void = () => undefined;
  #forgetSession: () => void = () => undefined;
  /** The znodes that have not been read since the last gap, and for how many seconds with a connection. */
  readonly #unread = new Map<ViewedZnode<T>, number>();
  readonly #closing = new AbortController();
  #staleSince: number | undefined;
  #isReporting = false;
  #isCounting = false;

  constructor(private readonly options: ChildrenViewOptions<T>) {
    this.#staleSince = options.clock.monotonic();
    this.ready = new Promise((resolve) => {
      this.#becomeReady = resolve;
    });
  }

  /** Begins to follow. No callback is called before. */
  start(): void {
    const { zookeeper, path } = this.options;
    this.#add(path, 0);
    this.#forgetSession = zookeeper.onState((state) => this.#onSession(state));
    // Where the client is closed already, there is nothing to end, and who made this does not have it yet.
    if (zookeeper.state.status !== 'closed') this.#onSession(zookeeper.state);
  }

  /**
   * Undefined while everything has been read since the last gap, so that every change is seen; otherwise the
   * beginning of the gap, in milliseconds on the monotonic clock.
   */
  get stale(): { readonly since: number } | undefined {
    return this.#staleSince === undefined ? undefined : { since: this.#staleSince };
  }

  /** True once everything has been read for the first time. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** How many znodes are followed. */
  get size(): number {
    return this.#znodes.size;
  }

  /** Whether a znode exists, even if it has not been read yet. */
  has(path: string): boolean {
    return this.#znodes.has(path);
  }

  get(path: string): T | undefined {
    return this.#znodes.get(path)?.value;
  }

  /** All values, those of one znode's children after each other, in the order of the children's names. */
  values(): T[] {
    const values: T[] = [];
    const visit = ({ value, children }: ViewedZnode<T>) => {
      if (value !== undefined) values.push(value);
      children?.forEach(visit);
    };
    const top = this.#znodes.get(this.options.path);
    if (top) visit(top);
    return values;
  }

  /** Stops following changes. The last known state can still be read. Idempotent. */
  close(): void {
    if (this.isClosed) return;
    this.#closing.abort();
    this.#forgetSession();
    this.#staleSince ??= this.options.clock.monotonic();
    for (const { watch } of this.#znodes.values()) watch?.close();
  }

  get isClosed(): boolean {
    return this.closed.aborted;
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  #onSession({ status }: SessionState) {
    this.#staleSince ??= this.options.clock.monotonic();
    if (status === 'connected') this.#read([...this.#znodes.values()]);
    if (status === 'closed') this.close();
  }

  /** Opens watches, also again: only a new watch reports that it has read. */
  #read(znodes: readonly ViewedZnode<T>[]) {
    const { zookeeper } = this.options;
    const readable = znodes.filter(({ followed }) => followed !== undefined);
    for (const znode of readable) this.#unread.set(znode, 0);
    if (!this.#isCounting) void this.#giveUpRefused();
    for (const znode of readable) {
      znode.watch?.close();
      znode.watch =
        znode.followed === 'data'
          ? zookeeper.watchData(znode.path, this.#onData, this.#onRefused)
          : zookeeper.watchChildren(znode.path, this.#onNames, this.#onRefused);
    }
  }

  /** A znode has been read, or need not be any more. */
  #end(znode: ViewedZnode<T>) {
    this.#unread.delete(znode);
    const isWhole = this.#unread.size === 0 && this.#staleSince !== undefined;
    // An answer may be handed over just after its connection was lost.
    if (!isWhole || this.options.zookeeper.state.status !== 'connected' || this.isClosed) return;
    this.#staleSince = undefined;
    this.#isWhole = true;
    this.options.onChange?.();
    this.#becomeReady();
  }

  async #giveUpRefused() {
    const { zookeeper, clock, unreadable } = this.options;
    this.#isCounting = true;
    while (this.#unread.size > 0 && !this.isClosed) {
      await clock.sleep(1_000, this.closed).catch(() => undefined);
      if (zookeeper.state.status !== 'connected' || this.isClosed) continue;
      for (const [znode, seconds] of [...this.#unread]) {
        const isRefused = seconds + 1 >= REFUSED_AFTER_S && znode.watch?.isRefused;
        this.#unread.set(znode, isRefused ? 0 : seconds + 1);
        if (!isRefused) continue;
        this.#set(znode, unreadable?.(znode.path, UNREAD));
        if (znode.followed === 'data' || (znode.depth > 0 && znode.children === undefined)) this.#end(znode);
      }
    }
    this.#isCounting = false;
  }

  readonly #onData = (data: Znode | undefined, path: string): void => {
    const znode = this.#znodes.get(path);
    if (znode === undefined) return;
    this.#set(znode, data && this.options.decode(path, data, znode.value));
    this.#end(znode);
  };

  readonly #onNames = (listed: readonly string[] = [], path: string): void => {
    const znode = this.#znodes.get(path);
    if (znode === undefined) return;
    const gone = new Set(znode.children);
    const names = [...listed].sort();
    znode.children = names.flatMap((name) => {
      const below = `${path === '/' ? '' : path}/${name}`;
      const child = this.#znodes.get(below) ?? this.#add(below, znode.depth + 1);
      if (child) gone.delete(child);
      return child ?? [];
    });
    const unread = znode.children.filter(({ watch }) => watch === undefined);
    // What is below a new list is not known yet.
    if (unread.some(({ followed }) => followed === 'children'))
      this.#staleSince ??= this.options.clock.monotonic();
    this.#read(unread);
    for (const child of gone) this.#remove(child);
    this.#set(znode, this.options.listed?.(path, znode.value, names));
    this.#end(znode);
    this.#changed();
  };

  /** Its value may be out of date from now on. */
  readonly #onRefused = (path: string): void => {
    const znode = this.#znodes.get(path);
    if (znode === undefined || this.#unread.has(znode)) return;
    this.#staleSince ??= this.options.clock.monotonic();
    this.#unread.set(znode, 0);
    if (!this.#isCounting) void this.#giveUpRefused();
  };

  #add(path: string, depth: number): ViewedZnode<T> | undefined {
    const { follow = (_, deep) => (deep === 0 ? 'children' : 'data'), unreadable } = this.options;
    const followed = follow(path, depth);
    if (followed === undefined) return undefined;
    const problem = pathProblem(path);
    const znode: ViewedZnode<T> = {
      path,
      depth,
      followed: problem === undefined ? followed : undefined,
      watch: undefined,
      value: undefined,
      children: undefined,
    };
    this.#znodes.set(path, znode);
    if (problem !== undefined) this.#set(znode, unreadable?.(path, `cannot be asked for: ${problem}`));
    return znode;
  }

  #remove(znode: ViewedZnode<T>): void {
    znode.watch?.close();
    this.#znodes.delete(znode.path);
    for (const child of znode.children ?? []) this.#remove(child);
    this.#set(znode, undefined);
    this.#end(znode);
  }

  #set(znode: ViewedZnode<T>, value: T | undefined) {
    const before = znode.value;
    if (value === before) return;
    znode.value = value;
    this.options.onValue?.(znode.path, value, before);
    this.#changed();
  }

  #changed() {
    if (this.#isReporting || !this.#isWhole) return;
    this.#isReporting = true;
    queueMicrotask(() => {
      this.#isReporting = false;
      if (!this.isClosed) this.options.onChange?.();
    });
  }
}

/**
 * A {@link ChildrenView} for readers and listeners. A subclass makes of it what they read, and starts it. The
 * last known state can still be read when it is closed.
 */
export abstract class FollowedZnodes<T, News> {
  /** @internal */
  protected readonly view: ChildrenView<T>;
  readonly #listeners = new Listeners<News>();

  /** @internal */
  constructor(options: ChildrenViewOptions<T>) {
    this.view = new ChildrenView(options);
  }

  /**
   * Resolves once everything has been read. Znodes that the servers refuse delay it by 5 seconds. Never
   * rejects, and never resolves when closed before.
   */
  get ready(): Promise<void> {
    return this.view.ready;
  }

  /**
   * Undefined while everything has been read since the last gap, so that every change is seen; otherwise the
   * beginning of the gap, in milliseconds on the monotonic clock. Meanwhile the state is the last known one.
   */
  get stale(): { readonly since: number } | undefined {
    return this.view.stale;
  }

  /**
   * Calls `listener` just before {@link ready} resolves, with whatever there is, and after changes from then
   * on, until the returned function is called. Changes in one packet of the servers are one call. Listeners
   * must not throw.
   */
  onChange(listener: (news: News) => void): () => void {
    return this.view.isClosed ? () => undefined : this.#listeners.add(listener);
  }

  /** Ends all watches. Idempotent. */
  close(): void {
    this.view.close();
    this.#listeners.clear();
  }

  /** @internal Aborts when it is closed. */
  get closed(): AbortSignal {
    return this.view.closed;
  }

  /** @internal */
  protected notify(news: News): void {
    this.#listeners.notify(news);
  }
}
