import { DISCOVERY_PATH } from '../discovery/tree-paths.js';
import { placeOf } from '../monitor/discovery-place.js';
import { type DiscoveryEntry, entryOf } from '../monitor/discovery-snapshot.js';
import type { Watch, ZooKeeper } from '../zookeeper/zookeeper.js';
import { type DiscoveryChange, discoveryChange } from './discovery-changes.js';

/**
 * Follows the whole discovery tree by watches, and tells what becomes of each announcement. Changes of one path in quick succession may be
 * told as one; in the end what was told is what stands in the tree, also when the connection or the session was lost in between.
 */
export class DiscoveryFollower {
  readonly #known: Map<string, DiscoveryEntry>;
  readonly #watches = new Map<string, Watch>();

  /**
   * @param entries what is known already: whatever differs from it is told as a change
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

  /** Ends all watches: nothing is told any more. */
  close(): void {
    for (const watch of this.#watches.values()) watch.close();
    this.#watches.clear();
  }

  #follow(path: string): void {
    const place = placeOf(path);
    if (place.kind === 'foreign' || place.kind === 'internal' || this.#watches.has(path)) return;
    const watch =
      place.kind === 'folder'
        ? this.zookeeper.watchChildren(path, (names) => this.#onFolder(path, names ?? []))
        : this.zookeeper.watchData(path, (znode) => this.#settle(path, znode && entryOf(path, place, znode)));
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
