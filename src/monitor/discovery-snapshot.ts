import { concurrently } from '../base/concurrently.js';
import { type Assignment, decodeAssignment } from '../discovery/assignment.js';
import { DISCOVERY_PATH, NODES_PATH } from '../discovery/tree-paths.js';
import type { Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault } from '../zookeeper/zookeeper-error.js';
import { type EntryPath, nodeIdOfRef, parsePath } from './discovery-path.js';

/** One announcement in the discovery tree. */
export interface DiscoveryEntry {
  readonly path: string;
  readonly parsed: EntryPath;
  /** What its data says; undefined where that cannot be understood, see `problem`. */
  readonly assignment: Assignment | undefined;
  /** The data as it is; undefined where it may not be read. */
  readonly text: string | undefined;
  /** The session that it goes with; undefined for a persistent znode, and for one that may not be read. */
  readonly sessionId: string | undefined;
  /** Tells a znode from the one that stood at the path before; undefined for one that may not be read. */
  readonly createdZxid: bigint | undefined;
  /** What is wrong with it, as a sentence without its full stop. */
  readonly problem: string | undefined;
}

/** The discovery tree, or a part of it, as a scan finds it. Its parts were read one after the other. */
export interface DiscoverySnapshot {
  /** By path. */
  readonly entries: readonly DiscoveryEntry[];
  /** The paths of folders without anything in them, by path. */
  readonly emptyFolders: readonly string[];
  /** The paths of znodes that the tree has no place for, by path. */
  readonly foreign: readonly string[];
  /** The paths of entries that may not be read, by path. */
  readonly denied: readonly string[];
}

/** What it takes to read the tree. */
export type TreeReader = Pick<ZooKeeper, 'children' | 'read'>;

/** Reads under way at once. */
const READS = 64;
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
  let missing = false;

  /** Visits one path; the paths below it are its answer. */
  const visit = async (path: string): Promise<string[]> => {
    const parsed = parsePath(path);
    if (parsed.kind === 'foreign' || parsed.kind === 'internal') {
      // One that was found is there; one that was asked for may be not.
      const present = path !== at || (await zookeeper.read(path, { signal })) !== undefined;
      missing ||= !present;
      if (present && parsed.kind === 'foreign') foreign.push(path);
      return [];
    }
    if (parsed.kind === 'folder') {
      const names = await zookeeper.children(path, { signal });
      if (names === undefined) missing ||= path === at;
      else if (names.length === 0) emptyFolders.push(path);
      return (names ?? []).map((name) => `${path}/${name}`);
    }
    try {
      const znode = await zookeeper.read(path, { signal });
      // Gone since its folder was read.
      if (znode === undefined) missing ||= path === at;
      else entries.push(entryOf(path, parsed, znode));
    } catch (error) {
      if (!isFault(error, 'no-auth')) throw error;
      denied.push(path);
      entries.push(deniedEntry(path, parsed));
    }
    return [];
  };

  for (let level = [at]; level.length > 0; ) level = (await concurrently(level, READS, visit)).flat();
  if (missing) return undefined;
  return {
    entries: entries.sort((a, b) => comparePaths(a.path, b.path)),
    emptyFolders: emptyFolders.sort(comparePaths),
    foreign: foreign.sort(comparePaths),
    denied: denied.sort(comparePaths),
  };
}

/** What a znode at such a path says. Never throws. */
export function entryOf(path: string, parsed: EntryPath, { data, stat }: Znode): DiscoveryEntry {
  const assignment = decodeAssignment(data);
  const text = data.toString('utf8');
  const nodeId = parsed.kind === 'node' ? parsed.nodeId : nodeIdOfRef(parsed.ref);
  const wrongNode =
    assignment !== undefined && nodeId !== undefined && assignment.nodeId !== nodeId
      ? `its data names node id ${assignment.nodeId}`
      : undefined;
  const unreadable = text === '' ? 'no data' : `unreadable: ${text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text}`;
  const problem = assignment === undefined ? unreadable : wrongNode;
  return { path, parsed, assignment, text, sessionId: stat.owner, createdZxid: stat.createdZxid, problem };
}

function deniedEntry(path: string, parsed: EntryPath): DiscoveryEntry {
  const nothing = { assignment: undefined, text: undefined, sessionId: undefined, createdZxid: undefined };
  return { path, parsed, ...nothing, problem: 'may not be read: no-auth' };
}

/** The order of a listing: by path, numbers at its end by their values. */
export function comparePaths(a: string, b: string): number {
  const [left, right] = [sortKey(a), sortKey(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

function sortKey(path: string): string {
  // The hex names of nodes have two digits each: their text is their order.
  return path.startsWith(`${NODES_PATH}/`) ? path : path.replace(/(?<=[/:])\d+$/, (digits) => digits.padStart(5, '0'));
}
