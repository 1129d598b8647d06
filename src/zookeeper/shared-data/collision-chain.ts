import type { MultiOperation, Znode } from '../client/zookeeper.js';
import type { DataCall, Datum, RepeatedStep } from './datum.js';
import { decodeEntry, versionOf } from './entry.js';

// Elements whose names are one hash are at `hash`, `hash-1`, … without a gap. Every removal, and every
// addition behind another element, also writes the collection's own znode, so that its version shows whether
// a chain may have become another one since it was read. A write that relies on more than an absent first
// place is bound to that version. The server that was read may lag behind all of this.

/** Counts a change in the order of elements, and fails where there was one since the collection was read. */
export const reordered = (datum: Datum, { data, stat }: Znode): MultiOperation => ({
  type: 'set',
  path: datum.path,
  data,
  version: stat.version,
});

/** Fails where the order of elements has changed since the collection was read. */
export const unmoved = (datum: Datum, { stat }: Znode): MultiOperation => ({
  type: 'check',
  path: datum.path,
  version: stat.version,
});

/** What the collection must have, for a write to be made: an entry of that version, or none. */
export type Condition = string | 'absent';

interface Place {
  readonly path: string;
  readonly znode: Znode;
  /** The element's id; undefined for a znode that is none. */
  readonly id: string | undefined;
}

/** Reads a chain: to its end, or up to the element. */
async function read(
  datum: Datum,
  { session, call }: RepeatedStep,
  hash: string,
  upTo?: string,
): Promise<Place[]> {
  const places: Place[] = [];
  for (;;) {
    const path = datum.pathAt(hash, places.length);
    const znode = await session.read(path, call);
    if (znode === undefined) return places;
    const id = decodeEntry(datum.record.kind, datum.nameAt(hash, places.length), znode)?.id;
    places.push({ path, znode, id });
    if (id !== undefined && id === upTo) return places;
  }
}

/** An element to be written. */
export interface Element {
  /** What its place is named by; of a scalar any. */
  readonly hash: string;
  readonly id: string;
  readonly document: string;
}

/** Writes an element. Resolves to false where the condition does not hold. */
export function put(
  datum: Datum,
  { hash, id, document }: Element,
  call: DataCall,
  condition?: Condition,
): Promise<boolean> {
  return datum.attempted('the element could not be written', call, async (attempt) => {
    const collection = await datum.ensured(attempt);
    const places = await read(datum, attempt, hash, id);
    const found = places.find((place) => place.id === id);
    if (!holds(datum, condition, found?.znode, document, attempt)) return attempt.answer(false);
    if (found === undefined) {
      const create = datum.creation(hash, places.length, document, collection);
      await datum.multi(attempt, places.length === 0 ? [create] : [reordered(datum, collection), create]);
    } else if (condition === undefined && found.znode.data.toString('utf8') === document) {
      return attempt.answer(true);
    } else {
      const version = versionFor(condition, found.znode);
      await datum.multi(attempt, [
        unmoved(datum, collection),
        { type: 'set', path: found.path, data: document, version },
      ]);
    }
    return true;
  });
}

/**
 * Removes an element; the last one of its chain moves into the gap. Resolves to false where there was none,
 * or the condition does not hold.
 */
export function remove(
  datum: Datum,
  { hash, id }: Omit<Element, 'document'>,
  call: DataCall,
  condition?: Condition,
): Promise<boolean> {
  return datum.attempted('the element could not be removed', call, async (attempt) => {
    const collection = await datum.collection(attempt);
    if (collection === undefined) return attempt.answer(attempt.mayBeDone);
    const places = await read(datum, attempt, hash);
    const found = places.find((place) => place.id === id);
    const last = places.at(-1);
    const isMet = holds(datum, condition, found?.znode, undefined, attempt);
    if (!isMet || found === undefined || last === undefined)
      return attempt.answer(isMet && attempt.mayBeDone);
    const cut = reordered(datum, collection);
    const removal: MultiOperation = { type: 'remove', path: last.path, version: last.znode.stat.version };
    const version = versionFor(condition, found.znode);
    const move: MultiOperation = { type: 'set', path: found.path, data: last.znode.data, version };
    await datum.multi(attempt, found === last ? [cut, removal] : [cut, move, removal]);
    return true;
  });
}

/**
 * Whether a condition, if there is one, holds of the present znode.
 *
 * @param document what an attempt before may have written; undefined where that removed it
 * @throws {SharedDataError} `outcome-unknown` where it does not hold, and an attempt before may be the reason
 */
export function holds(
  datum: Datum,
  condition: Condition | undefined,
  znode: Znode | undefined,
  document: string | undefined,
  { mayBeDone }: RepeatedStep,
): boolean {
  const version = znode ? versionOf(znode.stat) : 'absent';
  if (condition === undefined || version === condition) return true;
  const text = znode?.data.toString('utf8');
  // Every attempt was for the same version, and one of them alone can have been carried out. The present
  // znode may have been written after it.
  if (mayBeDone && (text === document || !isNext(condition, znode)))
    throw datum.outcomeUnknown('the write was carried out');
  return false;
}

/** The version that a write is bound to: under a condition that of the present znode, else any. */
export const versionFor = (condition: Condition | undefined, { stat }: Znode) =>
  condition === undefined ? -1 : stat.version;

/** Whether the znode has been written just once since it had that version. */
function isNext(condition: Condition, znode: Znode | undefined): boolean {
  return znode !== undefined && condition === versionOf({ ...znode.stat, version: znode.stat.version - 1 });
}
