import type { Watch, ZooKeeper } from '../zookeeper/zookeeper.js';

/** Something that is open until it is closed. */
export interface Closeable {
  close(): void;
}

export interface ChildMirrorOptions<T extends Closeable> {
  readonly zookeeper: ZooKeeper;
  /** The znode whose children are followed; it need not exist. */
  readonly path: string;
  /** Opens what belongs to a child that has appeared; undefined for a child to be ignored. */
  readonly open: (name: string) => T | undefined;
  /** Called after each list of children, when new ones have been opened and vanished ones closed. */
  readonly onTold?: () => void;
}

/**
 * Keeps one thing open for each child of a znode, for as long as the child is there. A znode that is absent has no children, and is
 * watched until it comes (again). What is open at any time follows the tree as far as a standing watch does, across sessions too.
 */
export class ChildMirror<T extends Closeable> implements Closeable {
  readonly #open = new Map<string, T>();
  readonly #watch: Watch;

  constructor(private readonly options: ChildMirrorOptions<T>) {
    this.#watch = options.zookeeper.watchChildren(options.path, (names) => this.#follow(names ?? []));
  }

  /** What is open, by the name of its child. It changes with the tree: copy it to keep it. */
  get children(): ReadonlyMap<string, T> {
    return this.#open;
  }

  /** Closes everything that is open, and opens nothing any more. */
  close(): void {
    this.#watch.close();
    this.#follow([]);
  }

  #follow(names: readonly string[]): void {
    const present = new Set(names);
    for (const [name, child] of this.#open) {
      if (present.has(name)) continue;
      this.#open.delete(name);
      child.close();
    }
    for (const name of present) {
      if (this.#open.has(name)) continue;
      const child = this.options.open(name);
      if (child !== undefined) this.#open.set(name, child);
    }
    this.options.onTold?.();
  }
}
