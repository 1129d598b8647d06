import { checkArguments, checked, whole } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { concurrentCalls } from '../client/call-limits.js';
import type { MultiOperation, Znode } from '../client/zookeeper.js';
import { CONDITION, type ConditionalCall, SharedDatum } from './collections.js';
import { holds, reordered, unmoved, versionFor } from './collision-chain.js';
import { checkNoCondition } from './contributions.js';
import type { DataCall, RepeatedStep } from './datum.js';
import type { Entry } from './entry.js';
import { encodeScalar, type SharedValue, toScalar } from './scalar-codec.js';
import { SharedDataError } from './shared-data-error.js';

/**
 * A list. What is written to one whose reply is lost fails as `outcome-unknown`: it is not made twice.
 *
 * An ephemeral list is closed up by the nodes behind a gap, a moment after an element has gone with its node.
 * Its elements are appended and removed only by the node that contributes them, and a new session appends
 * them again.
 */
export class SharedList<V extends SharedValue = SharedValue> extends SharedDatum<Entry<undefined, V>> {
  /** How many elements this process knows of. */
  get length(): number {
    return this.size;
  }

  /** All entries, in their order. */
  override entries(): Entry<undefined, V>[] {
    return super.entries().sort((a, b) => Number(a.name) - Number(b.name));
  }

  /** The elements in their order. */
  values(): V[] {
    return this.entries().map(({ value }) => value);
  }

  /** Undefined for none. */
  get(index: number): V | undefined {
    if (typeof index !== 'number') checkIndex(index);
    return this.entries()[index]?.value;
  }

  /** Puts a value at the end. @throws as {@link SharedMap.set} and `outcome-unknown` */
  async append(value: V, call: DataCall = {}): Promise<void> {
    const { datum } = this;
    const document = encodeScalar(toScalar(value));
    if (this.lifespan === 'ephemeral') return this.contributions.put(datum, { hash: '', document }, call);
    await datum.attempted('the element could not be appended', call, async (attempt) => {
      const collection = await datum.ensured(attempt);
      let n = collection.stat.childCount;
      while (n > 0 && !(await this.#read(n - 1, attempt))) n -= 1;
      while (await this.#read(n, attempt)) n += 1;
      await this.#once(attempt, [reordered(datum, collection), datum.creation('', n, document, collection)]);
      return true;
    });
  }

  /**
   * Writes the element that has the index when it is written. Resolves to false where `ifVersion` does not
   * hold.
   *
   * @throws {SharedDataError} `no-entry` @throws {ConfigError} for an ephemeral list @throws as
   * {@link append}
   */
  async set(index: number, value: V, options: ConditionalCall = {}): Promise<boolean> {
    const { ifVersion, ...call } = checked(options, CONDITION);
    const { datum } = this;
    checkIndex(index);
    if (this.lifespan === 'ephemeral')
      throw new ConfigError(
        'list',
        this.datum.record.address.name,
        'a persistent list: in an ephemeral one elements are not replaced',
      );
    const data = encodeScalar(toScalar(value));
    return datum.attempted('the element could not be written', call, async (attempt) => {
      const collection = await datum.collection(attempt);
      const znode = collection && (await this.#read(index, attempt));
      const isMet = znode !== undefined && holds(datum, ifVersion, znode, data, attempt);
      if (!isMet) await attempt.answer(false);
      if (znode === undefined) throw this.#absent(index);
      if (!isMet) return false;
      const version = versionFor(ifVersion, znode);
      await this.#once(attempt, [
        unmoved(datum, collection as Znode),
        { type: 'set', path: `${datum.path}/${index}`, data, version },
      ]);
      return true;
    });
  }

  /**
   * Removes an element, and moves all behind it, in one request. Resolves to false where `ifVersion` does not
   * hold.
   *
   * @throws {SharedDataError} `no-entry`; `too-large` where more are behind it than one request can move
   * @throws as {@link append}
   */
  async remove(index: number, options: ConditionalCall = {}): Promise<boolean> {
    const { ifVersion, ...call } = checked(options, CONDITION);
    const { datum } = this;
    checkIndex(index);
    if (this.lifespan === 'ephemeral') {
      checkNoCondition(ifVersion);
      const entry = this.entries()[index];
      if (entry === undefined) throw this.#absent(index);
      return this.contributions.remove(datum, entry.id, entry, call);
    }
    return datum.attempted('the element could not be removed', call, async (attempt) => {
      const collection = await datum.collection(attempt);
      const indexes = Array.from(
        { length: Math.max(0, (collection?.stat.childCount ?? 0) - index) },
        (_, n) => index + n,
      );
      const read = await concurrentCalls(indexes, (n) => this.#read(n, attempt));
      const end = read.indexOf(undefined);
      const [first, ...rest] = read.slice(0, end === -1 ? read.length : end) as Znode[];
      const isMet = first !== undefined && holds(datum, ifVersion, first, undefined, attempt);
      if (!isMet) await attempt.answer(false);
      if (collection === undefined || first === undefined) throw this.#absent(index);
      if (!isMet) return false;
      const versions = [versionFor(ifVersion, first), ...rest.map(({ stat }) => stat.version)];
      const path = (n: number) => `${datum.path}/${index + n}`;
      await this.#once(attempt, [
        reordered(datum, collection),
        ...rest.map(
          ({ data }, n) => ({ type: 'set', path: path(n), data, version: versions[n] ?? -1 }) as const,
        ),
        { type: 'remove', path: path(rest.length), version: versions[rest.length] ?? -1 },
      ]);
      return true;
    });
  }

  #read(n: number, { session, call }: RepeatedStep): Promise<Znode | undefined> {
    return session.read(`${this.datum.path}/${n}`, call);
  }

  /** Made a second time, it would change another element. */
  #once(attempt: RepeatedStep, operations: readonly MultiOperation[]): Promise<void> {
    const unknown = (cause: unknown) => this.datum.outcomeUnknown('the list was changed', cause);
    return attempt.once(this.datum.multi(attempt, operations), unknown);
  }

  #absent(index: number): SharedDataError {
    return new SharedDataError(
      `${this.datum.title} has no element ${index}`,
      'no-entry',
      `${this.datum.path}/${index}`,
    );
  }
}

function checkIndex(index: number): void {
  checkArguments({ index }, { index: whole(0) });
}
