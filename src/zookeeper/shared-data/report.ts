import { checkArguments, listOf, TEXT } from '../../core/base/arguments.js';
import { concurrently } from '../../core/base/concurrently.js';
import { nameAt } from '../client/znode-path.js';
import { isFault, type Znode, type ZnodeReader } from '../client/zookeeper.js';
import type { DataEntry, DataReport, DatumHead, DatumReport, Scalar, ShownScalar } from './data-report.js';
import { bareScalar, decodeEntry, decodeRecord, isBlank, versionOf } from './entry.js';
import { type Address, dataFolder, HASHED_PATHS, isIndex, nodesFolder } from './layout.js';
import { scalarProblem } from './scalar-codec.js';

export interface SharedDataQuery {
  /** What ZooKeeper is called. */
  readonly connect: string;
  readonly root: string;
  /** The only datum that is reported; one without a record is known by its path. @default all */
  readonly address?: Address | undefined;
  /** Whose entries are read, and reported. @default all */
  readonly only?: ((head: DatumHead) => boolean) | undefined;
  /** The text of the only key, index or value whose entries are read. @default all */
  readonly key?: string | undefined;
  /** At most that many entries of each datum, and characters of each text. @default all */
  readonly limits?: { readonly entries: number; readonly characters: number } | undefined;
}

/** What a path holds; `denied` where it may not be read. */
type FoundZnode = Znode | 'denied';

/** Reads under way at once: of data, and of the entries of each. */
const READS = { data: 8, entries: 32 };
/** How many elements are asked of which kind a collection without a record is. */
const ASKED = 8;
/** The limits of data that is followed. */
const FOLLOWED_LIMITS = { entries: 1_000, characters: 200 };
/** How much of data that cannot be understood is shown, in characters. */
const EXCERPT = 40;

/** The shared data below these roots, shortened, as the part `data` of a `ClusterFollower`. */
export function followedData(roots: readonly string[]) {
  checkArguments({ roots }, { roots: listOf(TEXT) });
  return (zookeeper: ZnodeReader, signal: AbortSignal, connect: string): Promise<readonly DataReport[]> => {
    const read = (root: string) =>
      readSharedData(zookeeper, { connect, root, limits: FOLLOWED_LIMITS }, signal);
    return Promise.all(roots.map(read));
  };
}

/**
 * Reads the shared data below a root znode by znode: what changes meanwhile may be incomplete. Changes
 * nothing.
 *
 * @throws {ZooKeeperError} when there is no answer, or the folder of all data may not be listed
 */
export async function readSharedData(
  zookeeper: ZnodeReader,
  { connect, root, address, only = () => true, key, limits }: SharedDataQuery,
  signal?: AbortSignal,
): Promise<DataReport> {
  const unlessDenied = <T>(answer: Promise<T>): Promise<T | 'denied'> =>
    answer.catch((error) => {
      if (isFault(error, 'no-auth')) return 'denied';
      throw error;
    });
  const read = (path: string, own: AbortSignal) => unlessDenied(zookeeper.read(path, { signal: own }));
  /** Undefined where they may not be listed. */
  const list = async (path: string, own = signal) => {
    const names = await unlessDenied(zookeeper.children(path, { signal: own }));
    return names === 'denied' ? undefined : (names ?? []).map((name) => `${path}/${name}`);
  };
  const entriesOf = async (head: DatumHead, paths: readonly string[], own: AbortSignal) => {
    const readEntry = async (path: string, each: AbortSignal) => {
      const found = await read(path, each);
      return found === undefined ? [] : [dataEntry(head, path, found, nodes)];
    };
    return (await concurrently(paths, READS.entries, readEntry, own)).flat();
  };
  const data: DatumReport[] = [];
  const visit = async (path: string, own: AbortSignal): Promise<readonly string[]> => {
    const found = await read(path, own);
    if (found === undefined) return [];
    const listed = found !== 'denied' && found.stat.childCount > 0 ? await list(path, own) : [];
    const below = listed ?? [];
    let head = datumHead(root, path, found, address);
    // A collection of another implementation, or a folder: a path strategy may put data into some.
    if (found !== 'denied' && isBlank(found.data) && below.length > 0) {
      const ask = async (each: string, one: AbortSignal) => elementHead(each, await read(each, one));
      const elements = await concurrently(below.slice(0, ASKED), ASKED, ask, own);
      const element = elements.find((each) => each !== undefined);
      if (element === undefined && head.name === null) return below;
      head = { ...head, ...element };
    }
    if (!only(head) || (address && !isNamed(head, address))) return [];
    const isMeant = (each: string) => key === undefined || mayBe(head, each, key);
    const elements = head.kind === null ? [] : below.filter(isMeant).sort(byPath);
    const paths = head.kind === 'scalar' ? [path] : elements;
    const entries = await entriesOf(head, paths.slice(0, limits?.entries), own);
    const bytes = entries.reduce(
      (sum, entry) => sum + entry.bytes,
      head.kind === 'scalar' ? 0 : sizeOf(found),
    );
    const problem = listed ? head.problem : 'its elements may not be listed: no-auth';
    const size = head.kind === null ? below.length : paths.length;
    data.push({
      ...head,
      problem,
      size,
      bytes,
      entries: withChains(entries).map((entry) => shortened(entry, limits?.characters)),
    });
    return [];
  };

  const names = await zookeeper.children(dataFolder(root), { signal });
  const nodes = new Map<string, string>();
  const announced = names && (await list(nodesFolder(root)));
  await concurrently(announced ?? [], READS.entries, async (path, own) => {
    const found = await read(path, own);
    if (found !== undefined && found !== 'denied' && found.stat.owner)
      nodes.set(found.stat.owner, nameAt(path));
  });
  let level: readonly string[] = (names ?? []).map((name) => `${dataFolder(root)}/${name}`);
  while (level.length > 0) level = (await concurrently(level, READS.data, visit, signal)).flat();
  return { zookeeper: connect, root, exists: names !== undefined, data: data.sort(byName) };
}

/** What an element says of its collection; undefined where it is none, or not named as Monastery does. */
function elementHead(path: string, found: FoundZnode | undefined): Partial<DatumHead> | undefined {
  if (found === undefined || found === 'denied') return undefined;
  const name = nameAt(path);
  const isHashOf = (text: string) => name.replace(/-[1-9]\d*$/, '') === HASHED_PATHS.element(text);
  const { keyScalar } = decodeEntry('map', name, found) ?? {};
  const scalar = bareScalar(found.data);
  const kind =
    keyScalar && isHashOf(keyScalar.value)
      ? 'map'
      : scalar && (isIndex(name) ? 'list' : isHashOf(scalar.value) ? 'set' : undefined);
  return kind && { kind, lifespan: lifespanOf(found), problem: null };
}

const lifespanOf = ({ stat }: Znode) => (stat.owner === undefined ? 'persistent' : 'ephemeral');

/** Whether a datum has that address. */
const isNamed = (head: Pick<DatumHead, 'name' | 'scope'>, { name, scope }: Address) =>
  head.name === name && head.scope === scope;

/** Whether the name fits an entry with that text. */
function mayBe({ kind }: DatumHead, path: string, text: string): boolean {
  const name = nameAt(path);
  return kind === 'list' ? name === text : name.startsWith(HASHED_PATHS.element(text));
}

/** What a znode says of the datum in it. Never throws. @param asked the address that it may have */
function datumHead(root: string, path: string, found: FoundZnode, asked?: Address): DatumHead {
  const isAt = (address: Address) => path === `${dataFolder(root)}/${HASHED_PATHS.datum(address, 'scalar')}`;
  const { name, scope } = asked && isAt(asked) ? asked : { name: null, scope: null };
  const nothing = { path, name, scope, kind: null, lifespan: null };
  if (found === 'denied') return { ...nothing, problem: DENIED };
  const record = decodeRecord(found.data);
  if (record === undefined)
    return bareScalar(found.data)
      ? { ...nothing, kind: 'scalar', lifespan: lifespanOf(found), problem: null }
      : { ...nothing, problem: `no shared data: ${excerptOf(found)}` };
  const { address, kind, lifespan } = record;
  return {
    path,
    ...address,
    kind,
    lifespan,
    problem: isAt(address) ? null : 'its path is not the hash of its name and scope',
  };
}

/**
 * What the znode at `path` is in a datum. Never throws.
 * @param nodes the announced nodes by their sessions
 */
function dataEntry(
  { kind }: DatumHead,
  path: string,
  found: FoundZnode,
  nodes: ReadonlyMap<string, string>,
): DataEntry {
  const nothing = { path, key: null, scalar: null, place: null, bytes: sizeOf(found) };
  if (found === 'denied' || kind === null)
    return { ...nothing, owner: null, node: null, version: null, problem: DENIED };
  const { owner = null } = found.stat;
  const facts = { ...nothing, owner, node: nodes.get(owner ?? '') ?? null, version: versionOf(found.stat) };
  const name = nameAt(path);
  const entry = decodeEntry(kind, name, found);
  if (entry === undefined) return { ...facts, problem: `no element of a ${kind}: ${excerptOf(found)}` };
  const { scalar, keyScalar } = entry;
  const key = kind === 'list' ? { type: 'Integer', value: name } : keyScalar;
  const decoded = {
    ...facts,
    key: key ?? null,
    scalar,
  };
  const ofKey = keyScalar && scalarProblem(keyScalar);
  const ofTexts = (ofKey && `key: ${ofKey}`) ?? scalarProblem(scalar) ?? null;
  if (kind === 'scalar' || kind === 'list') return { ...decoded, problem: ofTexts };
  const [, hash, place = '0'] = /^(.*?)(?:-([1-9]\d*))?$/.exec(name) ?? [];
  const isHash = hash === HASHED_PATHS.element((keyScalar ?? scalar).value);
  return {
    ...decoded,
    place: isHash ? Number(place) : null,
    problem: ofTexts ?? (isHash ? null : 'its name is no hash of it'),
  };
}

/** The entries in order, with what is wrong with their collision chains. */
function withChains(entries: readonly DataEntry[]): DataEntry[] {
  const paths = new Set(entries.map(({ path }) => path));
  const hasGap = ({ path, place }: DataEntry) => {
    const chain = path.replace(/-\d+$/, '');
    return place !== null && place > 0 && !paths.has(place === 1 ? chain : `${chain}-${place - 1}`);
  };
  const textOf = ({ key, scalar, path }: DataEntry) => (key ?? scalar)?.value ?? `\uffff${path}`;
  return entries
    .map((entry) =>
      entry.problem === null && hasGap(entry)
        ? { ...entry, problem: 'its collision chain has a gap before it' }
        : entry,
    )
    .sort((a, b) => inOrder(textOf(a), textOf(b)) || byPath(a.path, b.path));
}

function shortened(entry: DataEntry, characters = Number.POSITIVE_INFINITY): DataEntry {
  const cut = (scalar: Scalar | null): ShownScalar | null =>
    scalar &&
    (scalar.value.length > characters
      ? { ...scalar, value: `${scalar.value.slice(0, characters)}…`, isShortened: true }
      : scalar);
  return { ...entry, key: cut(entry.key), scalar: cut(entry.scalar) };
}

const DENIED = 'may not be read: no-auth';

function excerptOf({ data }: Znode): string {
  const text = data.toString('utf8');
  return text === '' ? 'no data' : text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text;
}

const inOrder = new Intl.Collator('en', { numeric: true }).compare;
const sizeOf = (found: FoundZnode) => (found === 'denied' ? 0 : found.data.length);
const byPath = (a: string, b: string) => a.length - b.length || (a < b ? -1 : 1);
const byName = (a: DatumHead, b: DatumHead) =>
  (a.name === null ? 1 : 0) - (b.name === null ? 1 : 0) ||
  inOrder(a.name ?? '', b.name ?? '') ||
  inOrder(a.scope ?? '', b.scope ?? '') ||
  byPath(a.path, b.path);
