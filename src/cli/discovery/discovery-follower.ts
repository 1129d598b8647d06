import { DISCOVERY_PATH } from '../../discovery/tree-paths.js';
import { type DiscoveryEntry, entryOf, parsePath } from '../../monitor/discovery-snapshot.js';
import type { Watch, ZooKeeper } from '../../zookeeper/zookeeper.js';

/** A change of an announcement. */
export interface DiscoveryChange {
  /** `present`: it was there already when the watch began. */
  readonly kind: 'present' | 'joined' | 'changed' | 'left';
  /** As it is now or, for one that has left, as it was last. */
  readonly entry: DiscoveryEntry;
  /** As it was before the change; undefined for a new one. */
  readonly previous: DiscoveryEntry | undefined;
}

/** The change of one path between two readings; undefined without a visible one. */
export function discoveryChange(previous: DiscoveryEntry | undefined, now: DiscoveryEntry | undefined): DiscoveryChange | undefined {
  if (now === undefined) return previous && { kind: 'left', entry: previous, previous };
  if (previous === undefined) return { kind: 'joined', entry: now, previous };
  // The same data, written again, is a heartbeat.
  const same = previous.createdZxid === now.createdZxid && previous.text === now.text && previous.problem === now.problem;
  return same ? undefined : { kind: 'changed', entry: now, previous };
}

/**
 * Follows the whole discovery tree by watches, and tells each change of an announcement. Changes of one path in quick succession may be told as
 * one. In the end, what was told is what is in the tree, also when the connection or the session was lost in between.
 */
export class DiscoveryFollower {
  readonly #known: Map<string, DiscoveryEntry>;
  readonly #watches = new Map<string, Watch>();

  /**
   * @param entries the known announcements: every difference from them is told as a change
   * @param onChange must not throw
   */
  constructor(
    private readonly zookeeper: Pick<ZooKeeper, 'watchChildren' | 'watchData'>,
    entries: readonly DiscoveryEntry[],
    private readonly onChange: (change: DiscoveryChange) => void,
  ) {
    this.#known = new Map(entries.map((entry) => [entry.path, entry]));
    this.#follow(DISCOVERY_PATH);
  }

  /** Ends all watches: no further change is told. */
  close(): void {
    for (const watch of this.#watches.values()) watch.close();
    this.#watches.clear();
  }

  #follow(path: string): void {
    const parsed = parsePath(path);
    if (parsed.kind === 'foreign' || parsed.kind === 'internal' || this.#watches.has(path)) return;
    const watch =
      parsed.kind === 'folder'
        ? this.zookeeper.watchChildren(path, (names) => this.#onFolder(path, names ?? []))
        : this.zookeeper.watchData(path, (znode) => this.#settle(path, znode && entryOf(path, parsed, znode)));
    this.#watches.set(path, watch);
  }

  #onFolder(folder: string, names: readonly string[]): void {
    const present = new Set(names);
    const gone = (path: string) => path.startsWith(`${folder}/`) && !present.has(path.slice(folder.length + 1).split('/', 1)[0] ?? '');
    for (const [path, watch] of this.#watches) {
      if (!gone(path)) continue;
      watch.close();
      this.#watches.delete(path);
    }
    for (const path of [...this.#known.keys()].filter(gone)) this.#settle(path, undefined);
    for (const name of names) this.#follow(`${folder}/${name}`);
  }

  #settle(path: string, now: DiscoveryEntry | undefined): void {
    const change = discoveryChange(this.#known.get(path), now);
    if (now === undefined) this.#known.delete(path);
    else this.#known.set(path, now);
    if (change !== undefined) this.onChange(change);
  }
}
