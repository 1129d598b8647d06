import { type Condition, put, remove } from './collision-chain.js';
import { type Contributions, checkNoCondition } from './contributions.js';
import type { DataCall, Datum } from './datum.js';
import { encodeRecord } from './datum-record.js';
import { decodeEntry, type Entry } from './entry.js';
import type { Lifespan } from './layout.js';
import { type Change, Replica, type UnreadableZnode } from './replica.js';
import { encodePair, encodeScalar, type SharedValue, scalarId, toScalar } from './scalar-codec.js';
import { removeScalar, writeScalar } from './scalar-writes.js';

/** A write that is made only where the entry has that version, or is absent. */
export interface ConditionalCall extends DataCall {
  /** What {@link Entry.version} says, or `absent`. Not for ephemeral data. @default written whatever stands there */
  readonly ifVersion?: Condition | undefined;
}

/**
 * One shared datum in memory, with what all kinds have in common.
 *
 * Reads are local and eventually consistent; a write resolves when ZooKeeper has it, which is a moment before the replica shows it. A write whose reply
 * is lost is repeated, and one that fails otherwise than by its condition may have been carried out.
 *
 * Persistent data may be written by all nodes, an ephemeral entry only by the node that contributes it; it stands there for as long as this client
 * has a session, in each new one again.
 */
export abstract class SharedDatum<E extends Entry<unknown, unknown>> {
  /** @internal */
  protected readonly replica: Replica<Entry>;
  readonly #forget: () => void;

  /** @internal Use {@link SharedData}. */
  constructor(
    /** @internal */
    protected readonly datum: Datum,
    /** @internal */
    protected readonly contributions: Contributions,
  ) {
    const { kind } = datum.record;
    this.replica = new Replica<Entry>({
      ...datum.context,
      path: datum.path,
      of: kind === 'scalar' ? 'itself' : 'children',
      decode: (name, znode) => decodeEntry(kind, name, znode),
      onListed: () => contributions.onListed(datum, (name) => this.replica.has(name)),
      onTwice: (name) => contributions.onTwice(datum, name),
    });
    this.#forget = contributions.follow(datum, this.replica);
  }

  /** Of its address. */
  get name(): string {
    return this.datum.record.address.name;
  }

  /** Of its address. */
  get scope(): string {
    return this.datum.record.address.scope;
  }

  /** Whether its entries outlast the nodes that made them. */
  get lifespan(): Lifespan {
    return this.datum.record.lifespan;
  }

  /** The znode, within the chroot. */
  get path(): string {
    return this.datum.path;
  }

  /** Resolves once all of it has been read. Never rejects; not at all where the servers refuse the listing, or it is closed before. */
  get ready(): Promise<void> {
    return this.replica.ready;
  }

  /** Undefined while ZooKeeper tells of every change; else since when it does not, in milliseconds on the monotonic clock. */
  get stale(): { readonly since: number } | undefined {
    return this.replica.stale;
  }

  /** Znodes that hold no element: another program's. They are left as they are. */
  get unreadable(): readonly UnreadableZnode[] {
    return this.replica.unreadable;
  }

  /** Calls `listener` with the changes since it was told last, at first with all there is, until the returned function is called. It must not throw. */
  onChange(listener: (changes: readonly Change<E>[]) => void): () => void {
    return this.replica.onChange(listener as unknown as (changes: readonly Change<Entry>[]) => void);
  }

  /** Follows it no more. What this node contributes to it stays. Idempotent. */
  close(): void {
    this.#forget();
    this.replica.close();
  }
}

/** A value that all nodes see. */
export class SharedScalar<V extends SharedValue = SharedValue> extends SharedDatum<Entry<undefined, V>> {
  get #id(): string {
    return this.datum.path.slice(this.datum.path.lastIndexOf('/') + 1);
  }

  /** The value with its version, as this process knows it; undefined where there is none. */
  get entry(): Entry<undefined, V> | undefined {
    return this.replica.get(this.#id) as Entry<undefined, V> | undefined;
  }

  /** Undefined for none. */
  get value(): V | undefined {
    return this.entry?.value;
  }

  /** Resolves to false where `ifVersion` does not hold. @throws as {@link SharedMap.set} */
  async set(value: V, { ifVersion, ...call }: ConditionalCall = {}): Promise<boolean> {
    const scalar = toScalar(value);
    if (this.lifespan === 'persistent') return writeScalar(this.datum, scalar, call, ifVersion);
    checkNoCondition(ifVersion);
    await this.contributions.put(this.datum, this.#id, this.#id, encodeRecord(this.datum.record, scalar), call);
    return true;
  }

  /** Resolves to false where there is none, or `ifVersion` does not hold. @throws as {@link SharedMap.set} */
  async remove({ ifVersion, ...call }: ConditionalCall = {}): Promise<boolean> {
    if (this.lifespan === 'persistent') return removeScalar(this.datum, call, ifVersion);
    checkNoCondition(ifVersion);
    return this.contributions.remove(this.datum, this.#id, call);
  }
}

/** What set and map have in common: elements that are found by a hash. */
abstract class HashedCollection<E extends Entry<unknown, unknown>> extends SharedDatum<E> {
  /** How many entries this process knows of. */
  get size(): number {
    return this.replica.size;
  }

  /** All entries, in no particular order. */
  entries(): IterableIterator<E> {
    return this.replica.entries() as IterableIterator<Entry> as IterableIterator<E>;
  }

  /** @internal */
  protected find(identity: SharedValue): E | undefined {
    return this.replica.get(scalarId(toScalar(identity))) as Entry<unknown, unknown> as E | undefined;
  }

  /** @internal */
  protected async write(identity: SharedValue, document: string, { ifVersion, ...call }: ConditionalCall): Promise<boolean> {
    const scalar = toScalar(identity, 'key');
    const element = { id: scalarId(scalar), hash: this.datum.context.paths.element(scalar.value), document };
    if (this.lifespan === 'persistent') return put(this.datum, element, call, ifVersion);
    checkNoCondition(ifVersion);
    await this.contributions.put(this.datum, element.id, element.hash, document, call);
    return true;
  }

  /** @internal */
  protected async erase(identity: SharedValue, { ifVersion, ...call }: ConditionalCall): Promise<boolean> {
    const scalar = toScalar(identity, 'key');
    const id = scalarId(scalar);
    if (this.lifespan === 'persistent') return remove(this.datum, this.datum.context.paths.element(scalar.value), id, call, ifVersion);
    checkNoCondition(ifVersion);
    return this.contributions.remove(this.datum, id, call);
  }
}

/** A set of values. */
export class SharedSet<V extends SharedValue = SharedValue> extends HashedCollection<Entry<undefined, V>> {
  /** Whether this process knows of it. */
  has(value: V): boolean {
    return this.find(value) !== undefined;
  }

  /** The element with its version, as this process knows it. */
  entry(value: V): Entry<undefined, V> | undefined {
    return this.find(value);
  }

  /** The elements, in no order. */
  values(): V[] {
    return [...this.entries()].map(({ value }) => value);
  }

  /** Adds a value, unless it is there. One that another node contributes is contributed by this one once that goes. @throws as {@link SharedMap.set} */
  async add(value: V, call: DataCall = {}): Promise<void> {
    await this.write(value, encodeScalar(toScalar(value)), call);
  }

  /** Resolves to false where it was not there. @throws as {@link SharedMap.set} */
  remove(value: V, call: DataCall = {}): Promise<boolean> {
    return this.erase(value, call);
  }
}

/** A map from values to values. */
export class SharedMap<K extends SharedValue = SharedValue, V extends SharedValue = SharedValue> extends HashedCollection<Entry<K, V>> {
  /** Whether this process knows of the key. */
  has(key: K): boolean {
    return this.find(key) !== undefined;
  }

  /** Undefined for none. */
  get(key: K): V | undefined {
    return this.find(key)?.value;
  }

  /** The entry with its version, as this process knows it. */
  entry(key: K): Entry<K, V> | undefined {
    return this.find(key);
  }

  /**
   * Resolves to false where `ifVersion` does not hold.
   *
   * @throws {SharedDataError} `owned-by-other`, `not-joined` (ephemeral data), `too-large`, `kind-clash`; with `ifVersion` `outcome-unknown`
   * @throws {ZooKeeperError} `timeout`, access denied, client closed @throws {ConfigError} `signal.reason`
   */
  set(key: K, value: V, call: ConditionalCall = {}): Promise<boolean> {
    return this.write(key, encodePair(toScalar(key, 'key'), toScalar(value)), call);
  }

  /** Resolves to false where there is none, or `ifVersion` does not hold. @throws as {@link set} */
  remove(key: K, call: ConditionalCall = {}): Promise<boolean> {
    return this.erase(key, call);
  }
}
