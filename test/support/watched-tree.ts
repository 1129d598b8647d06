import type { SessionState } from '../../src/zookeeper/client/session-state.js';
import type { ReadingWatch, Znode, ZooKeeper } from '../../src/zookeeper/client/zookeeper.js';

type Content = readonly string[] | Buffer | undefined;
type Listener = (content: never, path: string) => void;
type OnRefused = (path: string) => void;

/**
 * What a view of znodes needs of ZooKeeper, in memory: nothing is reported but what a test says, as over a
 * link that is as slow as one likes.
 */
export class WatchedTree implements Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren' | 'watchData'> {
  state: SessionState = {
    status: 'connected',
    sessionId: '0000000000000001',
    timeoutMs: 10_000,
    server: '127.0.0.1:2181',
  };
  /** What the servers refuse. */
  readonly refused = new Set<string>();
  readonly #sessions = new Set<(state: SessionState) => void>();
  readonly #watches = new Set<{ path: string; listener: Listener; onRefused?: OnRefused | undefined }>();

  /** How many listen to the session. */
  get sessionListeners(): number {
    return this.#sessions.size;
  }

  /** The paths that are watched. */
  get watched(): string[] {
    return [...this.#watches].map(({ path }) => path).sort();
  }

  lose(): void {
    this.#become({ status: 'suspended', sessionId: '0000000000000001', timeoutMs: 10_000 });
  }

  connect(): void {
    this.#become({
      status: 'connected',
      sessionId: '0000000000000001',
      timeoutMs: 10_000,
      server: '127.0.0.1:2181',
    });
  }

  close(): void {
    this.#become({ status: 'closed' });
  }

  /** Answers the watchers of a path: with the names of its children, or its data. */
  answer(path: string, content: Content): void {
    const stat = {
      version: 0,
      childrenVersion: 0,
      createdZxid: 1n,
      modifiedZxid: 1n,
      createdAt: 0,
      modifiedAt: 0,
      owner: undefined,
      childCount: 0,
    };
    const value = Buffer.isBuffer(content) ? ({ data: content, stat } satisfies Znode) : content;
    for (const watch of [...this.#watches]) if (watch.path === path) watch.listener(value as never, path);
  }

  /** Refuses to read again what watchers of a path have read. */
  refuse(path: string): void {
    this.refused.add(path);
    for (const watch of [...this.#watches]) if (watch.path === path) watch.onRefused?.(path);
  }

  onState(listener: (state: SessionState) => void): () => void {
    this.#sessions.add(listener);
    return () => this.#sessions.delete(listener);
  }

  watchChildren(
    path: string,
    listener: (names: readonly string[] | undefined, path: string) => void,
    onRefused?: OnRefused,
  ): ReadingWatch {
    return this.#watch(path, listener as Listener, onRefused);
  }

  watchData(
    path: string,
    listener: (znode: Znode | undefined, path: string) => void,
    onRefused?: OnRefused,
  ): ReadingWatch {
    return this.#watch(path, listener as Listener, onRefused);
  }

  #watch(path: string, listener: Listener, onRefused?: OnRefused): ReadingWatch {
    const watch = { path, listener, onRefused };
    const { refused } = this;
    this.#watches.add(watch);
    return {
      first: new Promise(() => {}),
      get isRefused() {
        return refused.has(path);
      },
      close: () => void this.#watches.delete(watch),
    };
  }

  #become(state: SessionState): void {
    this.state = state;
    for (const listener of [...this.#sessions]) listener(state);
  }
}
