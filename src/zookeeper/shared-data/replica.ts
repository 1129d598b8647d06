import { FollowedZnodes, type ViewContext } from '../client/children-view.js';
import { nameAt } from '../client/znode-path.js';
import type { Znode } from '../client/zookeeper.js';

/** What has changed since the last report. A change and its opposite in between are not reported. */
export type Change<E> =
  | { readonly type: 'added'; readonly entry: E }
  | { readonly type: 'changed'; readonly entry: E; readonly before: E }
  | { readonly type: 'removed'; readonly entry: E };

/** What a replica needs to know of an element. */
export interface Replicated {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly createdZxid: bigint;
}

interface ReplicaOptions<E> extends ViewContext {
  readonly path: string;
  /** Whether the elements are the znode's children, or it is the only one itself. */
  readonly of: 'children' | 'itself';
  /** Undefined for a znode that is no element: another program's, which is left as it is. Must not throw. */
  readonly decode: (name: string, znode: Znode) => E | undefined;
}

/**
 * The elements below one znode in memory, kept up to date by a watch for each, and one for the list.
 *
 * Eventually consistent: without a connection what was seen last stays, and `stale` says since when; with the
 * next one all is read again. Not guaranteed: that each change is seen, only the last one; that two elements
 * are seen at one moment.
 */
export class Replica<E extends Replicated> extends FollowedZnodes<E, readonly Change<E>[]> {
  /** The znodes of each element: several for a moment, when two nodes make it at once or it moves. */
  readonly #byId = new Map<string, E[]>();
  /** What was last reported of the elements that may have changed since. */
  readonly #changed = new Map<string, E | undefined>();

  /** @internal */
  constructor(private readonly options: ReplicaOptions<E>) {
    const { zookeeper, clock, path, of, decode } = options;
    super({
      zookeeper,
      clock,
      path,
      follow: of === 'itself' ? () => 'data' : undefined,
      decode: (at, znode, before) => {
        const entry = decode(nameAt(at), znode);
        return entry?.version === before?.version ? before : entry;
      },
      onValue: (_, entry, before) => {
        if (before) this.#index(before.id, (all) => all.filter((each) => each !== before));
        // Where two nodes have made the same element, the older one counts: all replicas agree on it.
        if (entry)
          this.#index(entry.id, (all) =>
            [...all, entry].sort((a, b) => (a.createdZxid < b.createdZxid ? -1 : 1)),
          );
      },
      onChange: () => this.#report(),
    });
    this.view.start();
  }

  /** How many elements this process knows of. */
  get size(): number {
    return this.#byId.size;
  }

  /** What this process knows of, in no particular order. */
  entries(): E[] {
    return [...this.#byId.values()].flatMap(([first]) => first ?? []);
  }

  /** @internal By the element's id. */
  find(id: string): E | undefined {
    return this.#byId.get(id)?.[0];
  }

  /** @internal Whether two nodes have made the same element. */
  isTwice(id: string): boolean {
    return (this.#byId.get(id)?.length ?? 0) > 1;
  }

  /** @internal Whether there is a znode of that name, which may not have been read yet. */
  hasZnode(name: string): boolean {
    return this.view.has(`${this.options.path}/${name}`);
  }

  /** @internal Called before changes are reported, also where there are none. Must not throw. */
  protected onSeen(): void {}

  #index(id: string, change: (all: readonly E[]) => E[]): void {
    const before = this.#byId.get(id) ?? [];
    if (!this.#changed.has(id)) this.#changed.set(id, before[0]);
    const after = change(before);
    if (after.length === 0) this.#byId.delete(id);
    else this.#byId.set(id, after);
  }

  #report(): void {
    this.onSeen();
    const changes: Change<E>[] = [];
    for (const [id, before] of this.#changed) {
      const entry = this.find(id);
      if (entry && !before) changes.push({ type: 'added', entry });
      else if (entry && before && entry.version !== before.version)
        changes.push({ type: 'changed', entry, before });
      else if (before && !entry) changes.push({ type: 'removed', entry: before });
    }
    this.#changed.clear();
    if (changes.length > 0) this.notify(changes);
  }
}
