import { ConfigError } from '../../../core/base/errors.js';
import { objectIn } from '../../../core/base/fields.js';
import { CLUSTER_NODE_ID_OFFSET, nodeIdOf } from '../../../core/id/cluster-node-id.js';
import { concurrentCalls } from '../../../zookeeper/client/call-limits.js';
import { pathProblem } from '../../../zookeeper/client/znode-path.js';
import type { Znode, ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import { isFault } from '../../../zookeeper/client/zookeeper.js';
import {
  type Assignment,
  DISCOVERY_PATH,
  decodeAssignment,
  ENDPOINTS_PATH,
  NODES_PATH,
  parseHexPair,
  SERVICES_PATH,
  STAMPS_PATH,
} from '../../../zookeeper/discovery/layout.js';
import { claimOf } from '../../../zookeeper/discovery/node-watcher.js';
import type { DiscoveryReport, EntryReport } from '../../wire/cluster-snapshot.js';

/** The meaning of a path in the discovery tree, by its names alone. */
type TreePath =
  /** A znode with others below it: the root, a branch, a group, a service, an endpoint, a key. */
  | { readonly kind: 'folder' }
  | { readonly kind: 'node'; readonly nodeId: number; readonly clusterNodeId: number }
  | { readonly kind: 'service'; readonly service: string; readonly ref: string }
  | { readonly kind: 'endpoint'; readonly endpoint: string; readonly key: string; readonly ref: string }
  /** Further znodes of node ids from ZooKeeper alone: no node announces anything there. */
  | { readonly kind: 'internal' }
  /** It does not belong to the tree, and is never touched. */
  | { readonly kind: 'foreign' };

/** A path where nodes announce something. */
type EntryPath = Extract<TreePath, { kind: 'node' | 'service' | 'endpoint' }>;

const FOLDER: TreePath = { kind: 'folder' };
const FOREIGN: TreePath = { kind: 'foreign' };

/**
 * The meaning of a path, whether it exists or not.
 *
 * @param path `/discovery`, or below
 */
export function parsePath(path: string): TreePath {
  if (path === DISCOVERY_PATH) return FOLDER;
  const [, , branch, first, second, third, ...rest] = path.split('/');
  const parent = `${DISCOVERY_PATH}/${branch}`;
  // Only endpoints have a third level.
  if (rest.length > 0 || (third !== undefined && parent !== ENDPOINTS_PATH)) return FOREIGN;
  switch (parent) {
    case STAMPS_PATH:
      return { kind: 'internal' };
    case NODES_PATH:
      return nodePath(first, second);
    case SERVICES_PATH:
      return first !== undefined && second !== undefined
        ? { kind: 'service', service: first, ref: second }
        : FOLDER;
    case ENDPOINTS_PATH:
      if (first === undefined || second === undefined || third === undefined) return FOLDER;
      return { kind: 'endpoint', endpoint: first, key: second, ref: third };
    default:
      return FOREIGN;
  }
}

function nodePath(groupName: string | undefined, indexName: string | undefined): TreePath {
  const group = parseHexPair(groupName ?? '00');
  const index = parseHexPair(indexName ?? '00');
  if (group === undefined || index === undefined) return FOREIGN;
  if (indexName === undefined) return FOLDER;
  const clusterNodeId = group * 256 + index;
  // Reserved ids are not leased: they are assigned by hand, and nodelease does not know their holders.
  return clusterNodeId < CLUSTER_NODE_ID_OFFSET
    ? FOREIGN
    : { kind: 'node', nodeId: nodeIdOf(clusterNodeId), clusterNodeId };
}

/**
 * The node id at the end of a reference of a service or an endpoint: `7`, `orders:7`; undefined if it names
 * none.
 */
export function nodeIdOfRef(ref: string): number | undefined {
  const digits = ref.slice(ref.lastIndexOf(':') + 1);
  return /^\d{1,5}$/.test(digits) ? Number(digits) : undefined;
}

/**
 * Parses the path of a request: within the chroot, with or without the common prefix `/discovery`.
 *
 * @throws {ConfigError} when it is not a path there
 */
export function parseDiscoveryPath(text: string): string {
  const path = text.startsWith('/') ? text : `${DISCOVERY_PATH}/${text}`;
  const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
  if (text === '' || pathProblem(trimmed) !== undefined || `/${trimmed.split('/')[1]}` !== DISCOVERY_PATH) {
    throw new ConfigError('path', text, `${DISCOVERY_PATH} or a path below it, such as ${NODES_PATH}`);
  }
  return trimmed;
}

/** One announcement in the discovery tree. */
export interface DiscoveryEntry {
  readonly path: string;
  readonly parsed: EntryPath;
  /** Its decoded data; undefined if they are unreadable, see `problem`. */
  readonly assignment: Assignment | undefined;
  /** The data as text; undefined if they may not be read. */
  readonly text: string | undefined;
  /** Its session; undefined for a persistent znode, and for one that may not be read. */
  readonly sessionId: string | undefined;
  /** Distinguishes a znode from an earlier one at the path; undefined for one that may not be read. */
  readonly createdZxid: bigint | undefined;
  /** What is wrong with it, as a sentence without its full stop. */
  readonly problem: string | undefined;
}

/**
 * The discovery tree, or a part of it, as a scan finds it, in the order of the paths. Its parts were read one
 * after the other.
 */
export interface DiscoverySnapshot {
  readonly entries: readonly DiscoveryEntry[];
  /** The paths of folders without anything in them. */
  readonly emptyFolders: readonly string[];
  /** The paths of znodes that do not belong to the tree. */
  readonly foreign: readonly string[];
  /** The paths of entries that may not be read. */
  readonly denied: readonly string[];
}

/** The operations that read the tree. */
export type TreeReader = Pick<ZooKeeper, 'children' | 'read'>;

/** How much of data that cannot be understood is shown, in characters. */
const EXCERPT = 40;

/**
 * Reads the tree from a path downwards. Changes nothing.
 *
 * @param at `/discovery`, or a path below it
 * @returns undefined when there is nothing at that path
 * @throws {ZooKeeperError} when there is no answer, or a folder may not be read
 */
export async function readDiscovery(
  zookeeper: TreeReader,
  at: string = DISCOVERY_PATH,
  signal?: AbortSignal,
): Promise<DiscoverySnapshot | undefined> {
  const entries: DiscoveryEntry[] = [];
  const emptyFolders: string[] = [];
  const foreign: string[] = [];
  const denied: string[] = [];
  /** Paths that did not exist, or no longer exist. */
  const missing = new Set<string>();

  /** Visits one path, and returns the paths below it. */
  const visit = async (path: string): Promise<string[]> => {
    const parsed = parsePath(path);
    if (parsed.kind === 'folder') {
      const names = await zookeeper.children(path, { signal });
      if (names === undefined) missing.add(path);
      else if (names.length === 0) emptyFolders.push(path);
      return (names ?? []).map((name) => `${path}/${name}`);
    }
    if (parsed.kind === 'foreign' || parsed.kind === 'internal') {
      // A path that was found exists. The requested path may not exist.
      if (path === at && (await zookeeper.read(path, { signal })) === undefined) missing.add(path);
      else if (parsed.kind === 'foreign') foreign.push(path);
      return [];
    }
    try {
      const znode = await zookeeper.read(path, { signal });
      if (znode === undefined) missing.add(path);
      else entries.push(entryOf(path, parsed, znode));
    } catch (error) {
      if (!isFault(error, 'no-auth')) throw error;
      denied.push(path);
      entries.push({
        path,
        parsed,
        assignment: undefined,
        text: undefined,
        sessionId: undefined,
        createdZxid: undefined,
        problem: 'may not be read: no-auth',
      });
    }
    return [];
  };

  for (let level = [at]; level.length > 0; ) level = (await concurrentCalls(level, visit)).flat();
  if (missing.has(at)) return undefined;
  return {
    entries: entries.sort((a, b) => comparePaths(a.path, b.path)),
    emptyFolders: emptyFolders.sort(comparePaths),
    foreign: foreign.sort(comparePaths),
    denied: denied.sort(comparePaths),
  };
}

/** Decodes a znode at such a path. Never throws. */
export function entryOf(path: string, parsed: EntryPath, znode: Znode): DiscoveryEntry {
  const { data, stat } = znode;
  const assignment = decodeAssignment(data) ?? (parsed.kind === 'node' ? claimOf(znode) : undefined);
  const text = data.toString('utf8');
  const nodeId = parsed.kind === 'node' ? parsed.nodeId : nodeIdOfRef(parsed.ref);
  let problem: string | undefined;
  if (assignment === undefined)
    problem =
      text === '' ? 'no data' : `unreadable: ${text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text}`;
  else if (nodeId !== undefined && assignment.nodeId !== nodeId)
    problem = `its data names node id ${assignment.nodeId}`;
  return { path, parsed, assignment, text, sessionId: stat.owner, createdZxid: stat.createdZxid, problem };
}

/** The order of a listing: by path, numbers at its end by their values. */
function comparePaths(a: string, b: string) {
  const [left, right] = [sortKey(a), sortKey(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

function sortKey(path: string) {
  // The hex names of nodes have two digits each: their text is their order.
  return path.startsWith(`${NODES_PATH}/`)
    ? path
    : path.replace(/(?<=[/:])\d+$/, (digits) => digits.padStart(5, '0'));
}

/** The report on a part of the tree, or on its absence. */
export function discoveryReport(
  zookeeper: string,
  path: string,
  snapshot: DiscoverySnapshot | undefined,
): DiscoveryReport {
  const nodes: (EntryReport & { clusterNodeId: number })[] = [];
  const services = new Map<string, EntryReport[]>();
  const endpoints = new Map<string, Map<string, (EntryReport & { ref: string })[]>>();
  const nodesOf = (service: string) => ensure(services, service, []);
  const keysOf = (endpoint: string) => ensure(endpoints, endpoint, new Map());
  const refsOf = (endpoint: string, key: string) => ensure(keysOf(endpoint), key, []);
  // Folders first: services without any node are listed, too.
  for (const folder of snapshot?.emptyFolders ?? []) {
    const [, , branch, first, second] = folder.split('/');
    if (first === undefined) continue;
    if (branch === 'servicetypes') nodesOf(first);
    if (branch === 'endpoints' && second === undefined) keysOf(first);
    if (branch === 'endpoints' && second !== undefined) refsOf(first, second);
  }
  for (const entry of snapshot?.entries ?? []) {
    const { parsed } = entry;
    const report = entryReport(entry);
    if (parsed.kind === 'node') nodes.push({ clusterNodeId: parsed.clusterNodeId, ...report });
    else if (parsed.kind === 'service') nodesOf(parsed.service).push(report);
    else refsOf(parsed.endpoint, parsed.key).push({ ref: parsed.ref, ...report });
  }
  return {
    zookeeper,
    path,
    exists: snapshot !== undefined,
    nodes,
    services: sorted(services).map(([service, members]) => ({ service, nodes: members })),
    endpoints: sorted(endpoints).map(([endpoint, keys]) => ({
      endpoint,
      keys: sorted(keys).map(([key, refs]) => ({ key, refs })),
    })),
    foreign: snapshot?.foreign ?? [],
  };
}

/** The report on one announcement. */
export function entryReport({
  path,
  parsed,
  assignment,
  text,
  sessionId,
  problem,
}: DiscoveryEntry): EntryReport {
  const { service, address, port }: Partial<Assignment> = assignment ?? {};
  const byName = parsed.kind === 'node' ? parsed.nodeId : nodeIdOfRef(parsed.ref);
  return {
    path,
    nodeId: byName ?? assignment?.nodeId ?? null,
    version: assignment?.version ?? null,
    taskId: assignment?.taskId ?? null,
    service: typeof service === 'string' ? service : parsed.kind === 'service' ? parsed.service : null,
    address: typeof address === 'string' ? address : null,
    port: typeof port === 'number' ? port : null,
    sessionId: sessionId ?? null,
    data: assignment ?? objectIn(text ?? '') ?? null,
    problem: problem ?? null,
  };
}

function ensure<K, V>(map: Map<K, V>, key: K, fresh: V): V {
  const value = map.get(key) ?? fresh;
  map.set(key, value);
  return value;
}

function sorted<V>(map: ReadonlyMap<string, V>) {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}
