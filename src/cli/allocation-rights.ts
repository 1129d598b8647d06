import { barrierGroupOf } from '../discovery/allocation/width-barrier.js';
import { NODES_PATH, parseHexPair, STAMPS_PATH } from '../discovery/tree-paths.js';
import type { ZnodeTrials } from './znode-trials.js';

/**
 * Tries what a node does besides that gets its id from ZooKeeper alone, and makes unique ids: what stands there for longer than anybody's
 * id belongs to whoever made it, which may have been another user.
 *
 * @param folders those of the tree, as whole paths
 */
export async function tryAllocation(trials: ZnodeTrials, chroot: string, folders: readonly string[]): Promise<void> {
  const own = await trials.folders([STAMPS_PATH], (path) => numberBelow(STAMPS_PATH, path) !== undefined);
  await trials.useFolders(own);
  const groups = own.filter((path) => numberBelow(`${chroot}${STAMPS_PATH}`, path) !== undefined);
  const stamps = groups.map(async (group) => (await trials.below(group)).filter((path) => numberBelow(group, path) !== undefined));
  const gates = folders.filter((path) => isGate(numberBelow(`${chroot}${NODES_PATH}`, path)));
  const records = own.filter((path) => path === `${chroot}${STAMPS_PATH}`);
  await trials.changeFirsts([records, ...gates.map((path) => [path]), ...(await Promise.all(stamps))]);
}

/** What the two hex digits mean that stand right below a path; undefined for any other path. */
function numberBelow(above: string, path: string): number | undefined {
  return path.startsWith(`${above}/`) ? parseHexPair(path.slice(above.length + 1)) : undefined;
}

/** Whether a group says in its znode that ids of a width may be claimed. */
function isGate(group: number | undefined): boolean {
  return group !== undefined && group > 0 && barrierGroupOf(group) === group;
}
