import { BoundSession } from '../client/bound-session.js';
import { concurrentCalls } from '../client/call-limits.js';
import type { ReconcileCall, Reconciled } from '../client/reconcile-loop.js';
import { catchUp } from '../client/retry.js';
import type { Znode } from '../client/zookeeper.js';
import type { Datum, Step } from './datum.js';
import { decodeEntry } from './entry.js';
import type { Replica, Replicated } from './replica.js';
import { SharedDataError } from './shared-data-error.js';

/** One ephemeral element that this node contributes, in whichever session it is. */
export interface OwnElement {
  readonly key: string;
  /** Undefined for a list's, which may be there twice. */
  readonly id: string | undefined;
  /** What its place is named by; the same for all of a list. */
  readonly hash: string;
  document: string;
  /** Whether it is to be removed. */
  isRemoval: boolean;
  /** Where it was last in this session; undefined for nowhere. */
  at: number | undefined;
  /** Whether ZooKeeper has it as wanted, as far as is known. */
  isApplied: boolean;
  /** Whether ZooKeeper has had it as it is wanted now. */
  wasApplied: boolean;
  /** Why it cannot be written as wanted. */
  refusal: SharedDataError | undefined;
}

const UNAPPLIED = { isRemoval: false, isApplied: false, wasApplied: false, refusal: undefined };

/** What a replica has. */
export type SeenElements = Pick<Replica<Replicated>, 'find' | 'isTwice' | 'hasZnode'>;

/** An element's znode in its chain or list. */
interface Place {
  readonly n: number;
  /** Undefined for a znode that is no element. */
  readonly id: string | undefined;
  readonly owner: string | undefined;
  readonly document: string;
}

/**
 * The ephemeral elements of one datum that this node contributes: made again in each session, moved into a
 * gap before them, where another node's element was, and removed when they are not wanted any more. What
 * is there is read again each time.
 */
export class Contribution implements Reconciled {
  dirty = false;
  /** By their keys, those of a list in their order. */
  readonly elements = new Map<string, OwnElement>();
  #sessionId: string | undefined;
  #appended = 0;

  /** @param refuses why nothing may be contributed in a session; undefined where it may */
  constructor(
    readonly datum: Datum,
    private readonly refuses: (sessionId: string) => string | undefined,
  ) {}

  /** Contributes an element with this document. @param id undefined for a list's */
  put(id: string | undefined, hash: string, document: string): OwnElement {
    const key = id ?? `append ${this.#appended++}`;
    const fresh = { key, id, hash, document, at: undefined, ...UNAPPLIED };
    const element = Object.assign(this.elements.get(key) ?? fresh, { document, ...UNAPPLIED });
    this.elements.set(key, element);
    return element;
  }

  /** Removes it. */
  remove(element: OwnElement): void {
    Object.assign(element, { ...UNAPPLIED, isRemoval: true });
  }

  get path(): string {
    return this.datum.path;
  }

  get blockedBy(): string | undefined {
    for (const { isRemoval, refusal } of this.elements.values())
      if (!isRemoval && refusal) return refusal.message;
    return undefined;
  }

  /**
   * Whether an element is not as it should be, as far as the replica has it. It is written again then.
   */
  differs(replica: SeenElements): boolean {
    let isAny = false;
    for (const element of this.elements.values()) {
      const { id, hash, at } = element;
      const isThere =
        id === undefined
          ? at === undefined || replica.hasZnode(String(at))
          : replica.find(id) !== undefined && !replica.isTwice(id);
      if (isThere && (!at || replica.hasZnode(this.datum.nameAt(hash, at - 1)))) continue;
      element.isApplied = false;
      isAny = true;
    }
    return isAny;
  }

  /** Resolves to true where all of it is written, or refused. */
  async step({ sessionId, signal }: ReconcileCall): Promise<boolean> {
    if (this.#sessionId !== sessionId)
      for (const element of this.elements.values())
        Object.assign(element, { isApplied: false, at: undefined });
    this.#sessionId = sessionId;
    const step = { session: new BoundSession(this.datum.context.zookeeper, sessionId), call: { signal } };
    const { datum, path } = this;
    const refused = this.refuses(sessionId);
    const todo = [...this.elements.values()].filter((element) => {
      const isRefused = refused !== undefined && !element.isRemoval;
      if (!element.isApplied)
        element.refusal = isRefused
          ? new SharedDataError(`${datum.title}: ${refused}`, 'not-joined', path)
          : undefined;
      return !element.isApplied && !isRefused;
    });
    if (todo.length === 0) return true;
    // What was done in this session is seen then, also where the reply was lost.
    await catchUp(step.session, path, step.call);
    const collection = await datum.collection(step).catch(refusalIn);
    if (collection instanceof SharedDataError) {
      for (const element of todo) this.#end(element, element, collection);
      return true;
    }
    if (
      collection === undefined &&
      datum.record.kind !== 'scalar' &&
      todo.some(({ isRemoval }) => !isRemoval)
    ) {
      await datum.make(step);
      return false;
    }
    const chains = await this.#read(todo, collection, step);
    // All of them to their ends: none continues during the next round.
    const failures = await concurrentCalls([...chains], async ([hash, chain]) => {
      try {
        for (const element of todo)
          if (element.hash === hash) {
            const { document, isRemoval } = element;
            const refusal = await this.#apply(element, chain, collection, step).catch(refusalIn);
            this.#end(element, { document, isRemoval }, refusal);
          }
        return [];
      } catch (error) {
        return [error];
      }
    });
    const [failure] = failures.flat();
    if (failure !== undefined) throw failure;
    return todo.every(({ isApplied, refusal }) => isApplied || refusal);
  }

  /** The chains of these elements, by their hashes, each in its order. */
  async #read(
    todo: readonly OwnElement[],
    collection: Znode | undefined,
    { session, call }: Step,
  ): Promise<Map<string, Place[]>> {
    const { datum, path } = this;
    const { kind } = datum.record;
    const chains = new Map<string, Place[]>(todo.map(({ hash }) => [hash, []]));
    const names =
      kind === 'scalar' ? [...chains.keys()] : collection ? ((await session.children(path, call)) ?? []) : [];
    const places = names.flatMap((name) => datum.placesOf(name)).filter(({ hash }) => chains.has(hash));
    await concurrentCalls(places, async ({ hash, n }) => {
      const znode = await session.read(datum.pathAt(hash, n), call);
      if (znode === undefined) return;
      const { id } = decodeEntry(kind, datum.nameAt(hash, n), znode) ?? {};
      chains.get(hash)?.push({ n, id, owner: znode.stat.owner, document: znode.data.toString('utf8') });
    });
    for (const chain of chains.values()) chain.sort((a, b) => a.n - b.n);
    return chains;
  }

  /** @throws {SharedDataError} why it is not there as wanted */
  async #apply(
    element: OwnElement,
    chain: Place[],
    collection: Znode | undefined,
    { session, call }: Step,
  ): Promise<undefined> {
    const { datum } = this;
    const { id, hash, document, isRemoval } = element;
    const { sessionId } = session;
    const same = chain.filter((place) =>
      id === undefined ? this.#mayBe(element, place, sessionId) : place.id === id,
    );
    const [first] = same;
    const isTaken = first !== undefined && first.owner !== sessionId;
    const place = same.find(({ n }) => n === element.at) ?? same.find(({ owner }) => owner === sessionId);
    if (isRemoval || isTaken) {
      if (place?.owner === sessionId) {
        await session.remove(datum.pathAt(hash, place.n), -1, call);
        chain.splice(chain.indexOf(place), 1);
      }
      element.at = undefined;
      // A set has what is wanted then.
      if (isRemoval || datum.record.kind === 'set') return;
      throw datum.ownedByOther(first?.owner);
    }
    const taken = new Set(chain.map(({ n }) => n));
    let n = place?.n ?? (id === undefined ? (chain.at(-1)?.n ?? -1) + 1 : 0);
    if (place) while (n > 0 && !taken.has(n - 1)) n -= 1;
    else while (taken.has(n)) n += 1;
    if (place?.n !== n) {
      const create = collection && datum.creation(hash, n, document, collection);
      if (place && create)
        await session.multi([create, { type: 'remove', path: datum.pathAt(hash, place.n) }], call);
      else if (create) await session.multi([create], call);
      else await session.createWithParents(this.path, document, 'ephemeral', call);
    } else if (place.document !== document) await session.setData(datum.pathAt(hash, n), document, -1, call);
    element.at = n;
    if (place) chain.splice(chain.indexOf(place), 1);
    chain.push({ n, id, owner: sessionId, document });
    chain.sort((a, b) => a.n - b.n);
  }

  /**
   * Whether the znode may be this element of a list: another one with the same value is not there.
   */
  #mayBe(element: OwnElement, { n, owner, document }: Place, sessionId: string): boolean {
    if (owner !== sessionId || document !== element.document) return false;
    return ![...this.elements.values()].some((other) => other !== element && other.at === n);
  }

  /** Notes what has become of an element, unless something else is wanted of it by now. */
  #end(
    element: OwnElement,
    { document, isRemoval }: Pick<OwnElement, 'document' | 'isRemoval'>,
    refusal?: SharedDataError,
  ): void {
    if (element.document !== document || element.isRemoval !== isRemoval) return;
    element.refusal = isRemoval ? undefined : refusal;
    element.isApplied = element.refusal === undefined;
    element.wasApplied = element.isApplied;
    if (isRemoval) this.elements.delete(element.key);
  }
}

/** The refusal that an error is. @throws any other one */
function refusalIn(error: unknown): SharedDataError {
  if (error instanceof SharedDataError) return error;
  throw error;
}
