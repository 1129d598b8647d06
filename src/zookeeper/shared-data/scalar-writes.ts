import type { Znode } from '../client/zookeeper.js';
import { type Condition, type Element, holds } from './collision-chain.js';
import type { DataCall, Datum } from './datum.js';
import { decodeRecord, isBlank } from './entry.js';
import { checkRequest } from './limits.js';
import { encodeScalar } from './scalar-codec.js';

/**
 * Writes a persistent scalar. Resolves to false where the condition does not hold. One that another
 * implementation has made stays without a record, which that may refuse to read.
 */
export function writeScalar(
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
export function removeScalar(
  datum: Datum,
  _: unknown,
  call: DataCall,
  condition?: Condition,
): Promise<boolean> {
  return datum.attempted('it could not be removed', call, async (attempt) => {
    const znode = valued(await datum.collection(attempt));
    const isMet = holds(datum, condition, znode, undefined, attempt);
    if (!isMet || znode === undefined) return attempt.answer(isMet && attempt.mayBeDone);
    return attempt.session.remove(datum.path, znode.stat.version, attempt.call);
  });
}

/** A znode that holds no value yet counts as none. */
const valued = (znode: Znode | undefined) => (znode && isBlank(znode.data) ? undefined : znode);
