import { checked, maybe, NAME } from '../../core/base/arguments.js';
import { nameAt } from '../client/znode-path.js';
import type { Znode } from '../client/zookeeper.js';
import { type Condition, type Element, holds, put, remove } from './collision-chain.js';
import { type Contributions, checkNoCondition } from './contributions.js';
import type { Lifespan } from './data-report.js';
import type { DataCall, Datum } from './datum.js';
import { decodeEntry, decodeRecord, type Entry, encodeRecord, isBlank } from './entry.js';
import { checkRequest } from './limits.js';
import { Replica } from './replica.js';
import { encodePair, encodeScalar, type SharedValue, scalarId, toScalar } from './scalar-codec.js';

/** A write that is made only where the entry has that version, or is absent. */
export interface ConditionalCall extends DataCall {
  /**
   * What {@link Entry.version} says, or `absent`. Not for ephemeral data.
   * @default written whatever the current content is
   */
  readonly ifVersion?: Condition | undefined;
}

/**
 * One shared datum in memory, with what all kinds have in common.
 *
 * Reads are local and eventually consistent; a write resolves when ZooKeeper has it, which is a moment before
 * the replica shows it. A write whose reply is lost is repeated, and one that fails otherwise than by its
 * condition may have been carried out.
 *
 * Persistent data may be written by all nodes, an ephemeral entry only by the node that contributes it. The
 * entry exists while this client has a session, and is created again in each new session.
 */
export abstract class SharedDatum<E extends Entry<unknown, unknown>> extends Replica<E> {
  /** @internal Use {@link SharedData}. */
  constructor(
    /** @internal */
    protected readonly datum: Datum,
    /** @internal */
    protected readonly contributions: Contributions,
  ) {
    const { context, path, record } = datum;
    const of = record.kind === 'scalar' ? 'itself' : 'children';
    super({
      ...context,
      path,
      of,
      decode: (name, znode) => decodeEntry(record.kind, name, znode) as E | undefined,
    });
  }

  /** Whether its entries outlast the nodes that made them. */
  get lifespan(): Lifespan {
    return this.datum.record.lifespan;
  }

  /** The znode, within the chroot. */
  get path(): string {
    return this.datum.path;
  }

  /** @internal */
  protected override onSeen(): void {
    this.contributions.onSeen(this.datum, this);
  }
}

export const CONDITION = { ifVersion: maybe(NAME) };

/** What all have in common whose elements are known by their values. */
abstract class ValuedDatum<E extends Entry<unknown, unknown>> extends SharedDatum<E> {
  /** @internal */
  protected async write(element: Element, options: ConditionalCall): Promise<boolean> {
    const { ifVersion, ...call } = checked(options, CONDITION);
    if (this.lifespan === 'persistent')
      return (this.datum.record.kind === 'scalar' ? writeScalar : put)(this.datum, element, call, ifVersion);
    checkNoCondition(ifVersion);
    await this.contributions.put(this.datum, element, call);
    return true;
  }

  /** @internal */
  protected async erase({ hash, id }: Omit<Element, 'document'>, options: ConditionalCall): Promise<boolean> {
    const { ifVersion, ...call } = checked(options, CONDITION);
    if (this.lifespan === 'persistent')
      return (this.datum.record.kind === 'scalar' ? removeScalar : remove)(
        this.datum,
        { hash, id },
        call,
        ifVersion,
      );
    checkNoCondition(ifVersion);
    return this.contributions.remove(this.datum, id, this.find(id), call);
  }
}

/** A value that all nodes see. */
export class SharedScalar<V extends SharedValue = SharedValue> extends ValuedDatum<Entry<undefined, V>> {
  /** It is its own only element. */
  get #element() {
    const id = nameAt(this.path);
    return { id, hash: id };
  }

  /** The value with its version, as this process knows it; undefined where there is none. */
  get entry(): Entry<undefined, V> | undefined {
    return this.find(this.#element.id);
  }

  /** Undefined for none. */
  get value(): V | undefined {
    return this.entry?.value;
  }

  /** Resolves to false where `ifVersion` does not hold. @throws as {@link SharedMap.set} */
  async set(value: V, call: ConditionalCall = {}): Promise<boolean> {
    return this.write({ ...this.#element, document: encodeRecord(this.datum.record, toScalar(value)) }, call);
  }

  /** Resolves to false where there is none, or `ifVersion` does not hold. @throws as {@link SharedMap.set} */
  async remove(call: ConditionalCall = {}): Promise<boolean> {
    return this.erase(this.#element, call);
  }
}

/**
 * Writes a persistent scalar. Resolves to false where the condition does not hold. One that another
 * implementation has made stays without a record, which that may refuse to read.
 */
function writeScalar(
  datum: Datum,
  { document }: Element,
  call: DataCall,
  condition?: Condition,
): Promise<boolean> {
  const { path } = datum;
  checkRequest(path, [{ type: 'set', path, data: document }]);
  const { scalar } = decodeRecord(Buffer.from(document)) ?? {};
  return datum.attempted('it could not be written', call, async (attempt) => {
    const znode = await datum.collection(attempt);
    const data = znode && scalar && !decodeRecord(znode.data) ? encodeScalar(scalar) : document;
    if (!holds(datum, condition, valued(znode), data, attempt)) return attempt.answer(false);
    if (znode === undefined) await attempt.session.createWithParents(path, data, 'shared', attempt.call);
    else await attempt.session.setData(path, data, znode.stat.version, attempt.call);
    return true;
  });
}

/** Removes it. Resolves to false where there is none, or the condition does not hold. */
function removeScalar(datum: Datum, _: unknown, call: DataCall, condition?: Condition): Promise<boolean> {
  return datum.attempted('it could not be removed', call, async (attempt) => {
    const znode = valued(await datum.collection(attempt));
    const isMet = holds(datum, condition, znode, undefined, attempt);
    if (!isMet || znode === undefined) return attempt.answer(isMet && attempt.mayBeDone);
    return attempt.session.remove(datum.path, znode.stat.version, attempt.call);
  });
}

/** A znode that holds no value yet counts as none. */
const valued = (znode: Znode | undefined) => (znode && isBlank(znode.data) ? undefined : znode);

/** What set and map have in common: elements that are found by a hash. */
abstract class HashedCollection<
  I extends SharedValue,
  E extends Entry<unknown, unknown>,
> extends ValuedDatum<E> {
  /** Whether this process knows of the value of a set, or the key of a map. */
  has(identity: I): boolean {
    return this.entry(identity) !== undefined;
  }

  /** The element with its version, as this process knows it. */
  entry(identity: I): E | undefined {
    return this.find(scalarId(toScalar(identity)));
  }

  /** Resolves to false where there is none, or `ifVersion` does not hold. @throws as {@link SharedMap.set} */
  async remove(identity: I, call: ConditionalCall = {}): Promise<boolean> {
    return this.erase(this.element(identity), call);
  }

  /** @internal */
  protected element(identity: I) {
    const scalar = toScalar(identity, 'key');
    return { id: scalarId(scalar), hash: this.datum.context.paths.element(scalar.value) };
  }
}

/** A set of values. */
export class SharedSet<V extends SharedValue = SharedValue> extends HashedCollection<V, Entry<undefined, V>> {
  /** The elements, in no order. */
  values(): V[] {
    return this.entries().map(({ value }) => value);
  }

  /**
   * Adds a value, unless it is there. One that another node contributes is contributed by this one once that
   * goes.
   * @throws as {@link SharedMap.set}
   */
  async add(value: V, call: DataCall = {}): Promise<void> {
    await this.write({ ...this.element(value), document: encodeScalar(toScalar(value)) }, call);
  }
}

/** A map from values to values. */
export class SharedMap<
  K extends SharedValue = SharedValue,
  V extends SharedValue = SharedValue,
> extends HashedCollection<K, Entry<K, V>> {
  /** Undefined for none. */
  get(key: K): V | undefined {
    return this.entry(key)?.value;
  }

  /**
   * Resolves to false where `ifVersion` does not hold.
   *
   * @throws {SharedDataError} `owned-by-other`, `not-joined` (ephemeral data), `too-large`, `kind-clash`;
   * with `ifVersion` `outcome-unknown`
   * @throws {ZooKeeperError} `timeout`, access denied, client closed @throws {ConfigError} `signal.reason`
   */
  async set(key: K, value: V, call: ConditionalCall = {}): Promise<boolean> {
    return this.write(
      { ...this.element(key), document: encodePair(toScalar(key, 'key'), toScalar(value)) },
      call,
    );
  }
}
