import { StoreUnusableError } from '../../base/errors.js';
import type { ListedObject } from '../../store/lease-store.js';
import type { SessionCall, StoreSession } from '../session/store-session.js';
import { FOREIGN_FORMATS, type ForeignFormat, foreignFormatOf } from './foreign-format.js';
import { parseObject } from './lease-codec.js';
import { leaseKey, nodeIdOf } from './lease-state.js';

/** Maximum number of lease objects that are read without a marker: a cluster has one format. */
const SAMPLE = 8;

/** Another program's cluster. */
interface ForeignCluster {
  readonly format: ForeignFormat;
  /** What shows it, as a sentence without its full stop. */
  readonly found: string;
}

/** The foreign cluster whose marker is in a listing; undefined if there is none. */
export function markedCluster(objects: readonly ListedObject[]): ForeignCluster | undefined {
  const format = FOREIGN_FORMATS.find(({ marker }) => objects.some(({ key }) => key === marker));
  if (format === undefined) return undefined;
  const count = nodeIdsIn(objects).length;
  return { format, found: marked(format, ` of ${count} node ${count === 1 ? 'id' : 'ids'}`) };
}

/** @throws {StoreUnusableError} when a listing has the marker of a foreign cluster */
export function refuseMarked({ store }: StoreSession, objects: readonly ListedObject[]): void {
  const cluster = markedCluster(objects);
  if (cluster !== undefined) throw foreignError(store.url, cluster.found);
}

/**
 * The foreign cluster in a store without `cluster.json`; undefined if there is none. If the marker is missing,
 * it reads a few lease objects, those with a body first, since a body shows more.
 *
 * @param objects the complete listing of the store
 * @throws {StoreError}
 */
export async function findForeign(
  session: StoreSession,
  objects: readonly ListedObject[],
  call: SessionCall = {},
): Promise<ForeignCluster | undefined> {
  const cluster = markedCluster(objects);
  if (cluster !== undefined) return cluster;
  const bySize = [...objects].sort((a, b) => b.size - a.size);
  for (const id of nodeIdsIn(bySize).slice(0, SAMPLE)) {
    const object = await session.read(leaseKey(id), call);
    const format = object && foreignFormatOf(object.metadata, fieldsOf(object.body));
    if (format !== undefined) return { format, found: `${leaseKey(id)} ${format.lease}` };
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
  const cluster = await findForeign(session, objects, call);
  if (cluster !== undefined) throw foreignError(session.store.url, cluster.found);
}

/**
 * The same for the folder above a store: by the markers, which need no listing, and by the first page of one.
 * @throws {StoreUnusableError} @throws {StoreError}
 */
export async function refuseForeignFolder(
  session: StoreSession,
  url: string,
  call: SessionCall,
): Promise<void> {
  for (const format of FOREIGN_FORMATS)
    if ((await session.read(format.marker, call)) !== undefined) throw foreignError(url, marked(format));
  const { objects } = await session.listPage(undefined, call);
  await refuseForeign(session, objects, call);
}

/** @param found what was found, as a sentence without its full stop */
export function foreignError(url: string, found: string): StoreUnusableError {
  return new StoreUnusableError(
    'CLUSTER_FOREIGN',
    `${url}: ${found}: nodelease leaves it as it is; choose another bucket`,
  );
}

const marked = ({ cluster, marker }: ForeignFormat, size = '') =>
  `${cluster}${size} (it has the object ${marker})`;

function fieldsOf(body: string): Record<string, unknown> {
  try {
    return parseObject(body);
  } catch {
    return {};
  }
}

function nodeIdsIn(objects: readonly ListedObject[]): number[] {
  return objects.map(({ key }) => nodeIdOf(key)).filter((id) => id !== undefined);
}
