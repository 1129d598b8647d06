import { StoreUnusableError } from '../../base/errors.js';
import type { ListedObject } from '../../store/lease-store.js';
import type { SessionCall, StoreSession } from '../session/store-session.js';
import { CAMUNDA_MARKER } from './camunda-codec.js';
import { LeaseUnreadableError, nativeCodec } from './lease-codec.js';
import { leaseKey, nodeIdOf } from './lease-state.js';

/** Maximum number of lease objects that are read without a marker: a cluster has one format. */
const SAMPLE = 8;

/**
 * Describes the cluster of Camunda 8 in a listing, whose lease objects have the same names. Undefined if
 * there is none.
 */
export function camundaCluster(objects: readonly ListedObject[]): string | undefined {
  if (!objects.some(({ key }) => key === CAMUNDA_MARKER)) return undefined;
  const count = nodeIdsIn(objects).length;
  return `this is a Camunda cluster of ${count} node ${count === 1 ? 'id' : 'ids'} (it has the object ${CAMUNDA_MARKER})`;
}

/** @throws {StoreUnusableError} when a listing shows that Camunda 8 keeps a cluster in the same objects */
export function refuseCamunda({ store }: StoreSession, objects: readonly ListedObject[]): void {
  const found = camundaCluster(objects);
  if (found !== undefined) throw foreignError(store.url, found);
}

/**
 * Says why a store without `cluster.json` contains a cluster of Camunda 8; undefined if it does not. If the
 * marker is missing, it reads a few lease objects, those with a body first, since a body shows more.
 *
 * @param objects the complete listing of the store
 * @throws {StoreError}
 */
export async function findCamunda(
  session: StoreSession,
  objects: readonly ListedObject[],
  call: SessionCall = {},
): Promise<string | undefined> {
  const marked = camundaCluster(objects);
  if (marked !== undefined) return marked;
  for (const id of nodeIdsIn([...objects].sort((a, b) => Number(b.size > 0) - Number(a.size > 0))).slice(
    0,
    SAMPLE,
  )) {
    const object = await session.read(leaseKey(id), call);
    try {
      if (object !== undefined) nativeCodec.decode(object.body, object.metadata);
    } catch (error) {
      if (!(error instanceof LeaseUnreadableError)) throw error;
      if (error.isForeign) return `${leaseKey(id)} ${error.problem}`;
    }
  }
  return undefined;
}

/**
 * Ensures that a store without `cluster.json` does not contain another program's cluster. Own lease objects
 * may exist: lost settings are created again.
 *
 * @param objects the complete listing of the store
 * @throws {StoreUnusableError} that names what was found
 * @throws {StoreError}
 */
export async function refuseForeign(
  session: StoreSession,
  objects: readonly ListedObject[],
  call: SessionCall = {},
): Promise<void> {
  const found = await findCamunda(session, objects, call);
  if (found !== undefined) throw foreignError(session.store.url, found);
}

/** @param found what was found, as a sentence without its full stop */
export function foreignError(url: string, found: string): StoreUnusableError {
  return new StoreUnusableError(`${url}: ${found}: nodelease leaves it as it is; choose another bucket`);
}

function nodeIdsIn(objects: readonly ListedObject[]): number[] {
  return objects.map(({ key }) => nodeIdOf(key)).filter((id) => id !== undefined);
}
