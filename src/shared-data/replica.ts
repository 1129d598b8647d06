import type { Clock } from '../base/clock.js';
import { Listeners } from '../base/listeners.js';
import { FirstReads } from '../zookeeper/first-reads.js';
import type { SessionState } from '../zookeeper/session-state.js';
import { pathProblem } from '../zookeeper/znode-path.js';
import type { Watch, Znode, ZooKeeper } from '../zookeeper/zookeeper.js';

/** What has changed since it was told last. A change and its opposite in between are not told. */
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

export interface ReplicaOptions<E> {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren' | 'watchData' | 'children'>;
  readonly clock: Clock;
  readonly path: string;
  /** Whether the elements are the znode's children, or it is the only one itself. */
  readonly of: 'children' | 'itself';
  /** Undefined for a znode that is no element: another program's, which is left as it is. Must not throw. */
  readonly decode: (name: string, znode: Znode) => E | undefined;
}

interface Member<E> {
  readonly name: string;
  readonly path: string;
  watch: Watch | undefined;
  entry: E | undefined;
}

/**
 * The elements below one znode in memory, kept up to date by a watch for each, and one for the list.
 *
 * Eventually consistent: without a connection what was seen last stays, and `stale` says since when; with the
 * next one all is read again. Not guaranteed: that each change is seen, only the last one; that two elements
 * are seen at one moment.
 */
export class Replica<E extends Replicated> {
  /**
   * Resolves once all elements have been read. One that the servers refuse delays it by 5 seconds. Never
   * rejects.
   */
  readonly ready: Promise<void>;
  readonly #listeners = new Listeners<readonly Change<E>[]>();
  #members = new Map<string, Member<E>>();
  /** The znodes of each element: several for a moment, when two nodes make it at once or it moves. */
  readonly #byId = new Map<string, E[]>();
  /** What was told of the elements that may have changed since. */
  readonly #changed = new Map<string, E | undefined>();
  #reads: FirstReads | undefined;
  #list: Watch | undefined;
  #staleSince: number | undefined;
  #becomeReady: () => void = () => undefined;
  #whole = false;
  #telling = false;
  #closed = false;
  readonly #forgetSession: () => void;

  /** @internal */
  constructor(private readonly options: ReplicaOptions<E>) {
    this.#staleSince = options.clock.monotonic();
    this.ready = new Promise((resolve) => {
      this.#becomeReady = resolve;
    });
    this.#forgetSession = options.zookeeper.onState((state) => this.#onSession(state));
    this.#onSession(options.zookeeper.state);
  }

  /**
   * Undefined while ZooKeeper tells of every change; else since when it does not, in milliseconds on the
   * monotonic clock.
   */
  get stale(): { readonly since: number } | undefined {
    return this.#staleSince === undefined ? undefined : { since: this.#staleSince };
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
    return this.#members.has(name);
  }

  /** @internal Called before changes are told, also where there are none to be told. Must not throw. */
  protected onSeen(): void {}

  /**
   * Calls `listener` with the changes, from `ready` on, at first with all there is, until the returned
   * function is called. It must not throw.
   */
  onChange(listener: (changes: readonly Change<E>[]) => void): () => void {
    return this.#closed ? () => undefined : this.#listeners.add(listener);
  }

  /** Follows no changes any more. What was seen last can still be asked for. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#forgetSession();
    this.#listeners.clear();
    this.#staleSince ??= this.options.clock.monotonic();
    this.#reads?.close();
    this.#list?.close();
    for (const { watch } of this.#members.values()) watch?.close();
  }

  #onSession({ status }: SessionState): void {
    if (status === 'connected') this.#watch();
    else this.#staleSince ??= this.options.clock.monotonic();
  }

  /** Opens all watches anew: only a new watch tells that it has read. */
  #watch(): void {
    const { zookeeper, clock, path, of } = this.options;
    this.#reads?.close();
    const reads = new FirstReads({ zookeeper, clock, onWhole: () => this.#onWhole() });
    this.#reads = reads;
    const list = `${path}/`;
    reads.begin(list, () => false);
    for (const member of this.#members.values()) this.#watchMember(member, reads);
    const follow = (names: readonly string[]) => {
      this.#follow(names, reads);
      reads.end(list);
    };
    this.#list?.close();
    if (of === 'itself') follow([path.slice(path.lastIndexOf('/') + 1)]);
    else this.#list = zookeeper.watchChildren(path, (names = []) => follow(names));
  }

  #onWhole(): void {
    this.#staleSince = undefined;
    this.#whole = true;
    this.#tell();
    this.#becomeReady();
  }

  #follow(names: readonly string[], reads: FirstReads): void {
    const before = this.#members;
    const { path, of } = this.options;
    this.#members = new Map();
    for (const name of names) {
      const own = of === 'itself' ? path : `${path}/${name}`;
      const known = before.get(name) ?? { name, path: own, watch: undefined, entry: undefined };
      this.#members.set(name, known);
      if (known.watch === undefined) this.#watchMember(known, reads);
    }
    for (const member of before.values()) {
      if (this.#members.has(member.name)) continue;
      member.watch?.close();
      this.#set(member, undefined);
      reads.end(member.path);
    }
    this.#tellSoon();
  }

  #watchMember(member: Member<E>, reads: FirstReads): void {
    const { path, name } = member;
    if (pathProblem(path) !== undefined) return;
    reads.begin(path, () => {
      this.#set(member, undefined);
      return true;
    });
    member.watch?.close();
    member.watch = this.options.zookeeper.watchData(path, (znode) => {
      this.#set(member, znode && this.options.decode(name, znode));
      reads.end(path);
    });
  }

  #set(member: Member<E>, entry: E | undefined): void {
    const before = member.entry;
    if (before?.version === entry?.version) return;
    member.entry = entry;
    if (before) this.#index(before.id, (all) => all.filter((each) => each !== before));
    // The older one stands where two nodes have made the same element: all replicas agree on it.
    if (entry)
      this.#index(entry.id, (all) =>
        [...all, entry].sort((a, b) => (a.createdZxid < b.createdZxid ? -1 : 1)),
      );
    this.#tellSoon();
  }

  #index(id: string, change: (all: readonly E[]) => E[]): void {
    const before = this.#byId.get(id) ?? [];
    if (!this.#changed.has(id)) this.#changed.set(id, before[0]);
    const after = change(before);
    if (after.length === 0) this.#byId.delete(id);
    else this.#byId.set(id, after);
  }

  /** Once for all that one packet of the servers brings. */
  #tellSoon(): void {
    if (this.#telling || !this.#whole) return;
    this.#telling = true;
    queueMicrotask(() => {
      this.#telling = false;
      this.#tell();
    });
  }

  #tell(): void {
    if (this.#closed) return;
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
    if (changes.length > 0) this.#listeners.tell(changes);
  }
}
