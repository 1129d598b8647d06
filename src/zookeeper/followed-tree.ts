import type { Clock } from '../base/clock.js';
import { FirstReads } from './first-reads.js';
import type { Znode, ZooKeeper } from './zookeeper.js';

export interface FollowedTreeOptions {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'children' | 'watchChildren' | 'watchData'>;
  readonly clock: Clock;
  /** Called once, when all that is followed has been read for the first time. */
  readonly onWhole: () => void;
}

/** Ends what was begun. */
type Close = () => void;

/** Watches on znodes and on what stands below them, of which it is known whether all have been read once. */
export class FollowedTree {
  readonly #reads: FirstReads;

  constructor(private readonly options: FollowedTreeOptions) {
    this.#reads = new FirstReads(options);
  }

  /** True from when everything had been read for the first time. */
  get isWhole(): boolean {
    return this.#reads.whole;
  }

  /**
   * Keeps one thing open for each child of a znode while the child is there. The znode need not exist.
   *
   * @param open opens it, and returns what closes it; undefined for a child to be ignored, which is asked for
   * again when the children have changed
   * @param onRefused called while the servers refuse to list them, as that of `FirstReads.begin`
   * @returns what closes everything
   */
  children(path: string, open: (name: string) => Close | undefined, onRefused: () => boolean): Close {
    const opened = new Map<string, Close>();
    const update = (names: readonly string[]) => {
      const present = new Set(names);
      for (const [name, close] of opened) {
        if (present.has(name)) continue;
        opened.delete(name);
        close();
      }
      for (const name of present) {
        const close = opened.get(name) ?? open(name);
        if (close) opened.set(name, close);
      }
    };
    this.#reads.begin(path, onRefused);
    const watch = this.options.zookeeper.watchChildren(path, (names = []) => {
      update(names);
      this.#reads.end(path);
    });
    return () => {
      watch.close();
      update([]);
      this.#reads.end(path);
    };
  }

  /**
   * Follows the data of a znode. What has been read counts until it is closed.
   *
   * @param take called with what stands there, first with what is read first
   * @param onRefused called while the servers refuse to let it be read, as that of `FirstReads.begin`
   */
  data(path: string, take: (znode: Znode | undefined) => void, onRefused: () => boolean): Close {
    this.#reads.begin(path, onRefused);
    const watch = this.options.zookeeper.watchData(path, (znode) => {
      take(znode);
      this.#reads.end(path);
    });
    return () => {
      watch.close();
      this.#reads.end(path);
    };
  }

  /** Waits for no first read any more. What is open is closed by what opened it. */
  close(): void {
    this.#reads.close();
  }
}
