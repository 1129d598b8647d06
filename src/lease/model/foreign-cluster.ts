import { StoreUnusableError } from '../../base/errors.js';
import type { ListedObject } from '../../store/lease-store.js';
import type { SessionCall, StoreSession } from '../session/store-session.js';
import { ForeignLeaseError, LeaseUnreadableError, nativeCodec } from './lease-codec.js';
import { leaseKey, nodeIdOf } from './lease-state.js';

/** Camunda 8 puts it beside its lease objects once all of them are there. */
const CAMUNDA_MARKER = 'node-ids-initialized';

/** Lease objects that are read at most where there is no marker: a cluster has one format. */
const SAMPLE = 8;

/** What a listing shows of a cluster of Camunda 8, which has lease objects of the same names; undefined where there is none. */
export function camundaCluster(objects: readonly ListedObject[]): string | undefined {
  if (!objects.some(({ key }) => key === CAMUNDA_MARKER)) return undefined;
  const { length } = nodeIdsIn(objects);
  return `this is a Camunda cluster of ${length} node ${length === 1 ? 'id' : 'ids'} (it has the object ${CAMUNDA_MARKER})`;
}

/**
 * Makes sure that what a store without `cluster.json` holds is not another program's cluster. Our own lease objects may be there: whoever has
 * lost the settings makes them anew.
 *
 * @param objects all that the store lists
 * @throws {StoreUnusableError} that names what was found
 * @throws {StoreError}
 */
export async function refuseForeign(session: StoreSession, objects: readonly ListedObject[], call: SessionCall = {}): Promise<void> {
  const found = camundaCluster(objects) ?? (await foreignObject(session, objects, call));
  if (found !== undefined) throw foreignError(session, found);
}

/**
 * Makes sure that no other task keeps a cluster beside ours in the same objects.
 *
 * @throws {StoreUnusableError} that names what was found
 */
export function refuseCamunda(session: StoreSession, objects: readonly ListedObject[]): void {
  const found = camundaCluster(objects);
  if (found !== undefined) throw foreignError(session, found);
}

function foreignError({ store }: StoreSession, found: string): StoreUnusableError {
  return new StoreUnusableError(`${store.url}: ${found}: nodelease leaves it as it is; choose another prefix or bucket`);
}

/** What a lease object says that another program wrote; undefined where none of those that are read is such a one. */
async function foreignObject(session: StoreSession, objects: readonly ListedObject[], call: SessionCall): Promise<string | undefined> {
  const written = nodeIdsIn(objects.filter(({ size }) => size > 0)).slice(0, SAMPLE);
  for (const id of written) {
    const object = await session.read(leaseKey(id), call);
    try {
      if (object !== undefined) nativeCodec.decode(object.body, object.metadata);
    } catch (error) {
      if (error instanceof ForeignLeaseError) return `${leaseKey(id)} ${error.problem}`;
      if (!(error instanceof LeaseUnreadableError)) throw error;
    }
  }
  return undefined;
}

function nodeIdsIn(objects: readonly ListedObject[]): number[] {
  return objects.map(({ key }) => nodeIdOf(key)).filter((id) => id !== undefined);
}
