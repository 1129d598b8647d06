import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { concurrently } from '../base/concurrently.js';
import { Damage, kindOf, readRegular, SMALL_FILE, unless } from '../base/files.js';
import { CONCURRENCY } from './copy-plan.js';
import type { HeldTree } from './held-tree.js';
import { decodeMarker, MARKER, type Marker } from './marker.js';

// The layout of Camunda 8.9: ROOT/node-<id>/v<version>/, with the data and the marker. Other names are
// ignored.

/** The directory of one version of a node id, by its path below the root, or another entry of that name. */
export type VersionDir = { readonly version: number; readonly path: string } & (
  | { readonly state: 'valid'; readonly marker: Marker }
  /** Its maker has not finished it, and no command has run in it; or one has removed the marker, and was killed. */
  | { readonly state: 'unfinished' }
  /**
   * No program that follows the layout has made it like this: never used and never removed. `problem` is the
   * rest of the sentence "v5 …".
   */
  | { readonly state: 'foreign'; readonly problem: string }
);

/** The directory of all versions of a node id, below the root. */
export function nodeDirOf(nodeId: number): string {
  return `node-${nodeId}`;
}

/** The node ids that have directories, ascending. */
export async function nodeIdsIn(root: string): Promise<number[]> {
  const directories = (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  return numbered(
    directories.map(({ name }) => name),
    'node-',
  ).sort((a, b) => a - b);
}

/** The versions in the directory of a node id, the newest first; none without such a directory. */
export async function versionsIn(tree: HeldTree, nodeDir: string): Promise<VersionDir[]> {
  const names =
    (await unless(
      ['ENOENT'],
      tree.within(nodeDir, (at) => readdir(at)),
    )) ?? [];
  const versions = numbered(names, 'v').sort((a, b) => b - a);
  const seen = await concurrently(versions, CONCURRENCY, (version) =>
    unless(['ENOENT'], look(tree, version, join(nodeDir, `v${version}`))),
  );
  return seen.filter((each) => each !== undefined);
}

/** The newest valid version below one. */
export function sourceFor(version: number, versions: readonly VersionDir[]): VersionDir | undefined {
  return versions.find((each) => each.version < version && each.state === 'valid');
}

/**
 * The versions that may be removed: all valid ones except the `retention` newest, and the unfinished ones
 * below the newest valid one. The maker of the newest valid version held the node id, so every earlier tenure
 * is over (rule 4). The maker of an unfinished version above it may be at work.
 */
export function obsoleteOf(versions: readonly VersionDir[], retention: number): VersionDir[] {
  const valid = versions.filter(({ state }) => state === 'valid');
  const newest = valid[0]?.version ?? 0;
  return versions.filter(
    (each) => (each.state === 'unfinished' && each.version < newest) || valid.indexOf(each) >= retention,
  );
}

async function look(tree: HeldTree, version: number, path: string): Promise<VersionDir> {
  const there = await tree.entry(path, (at) => lstat(at));
  const foreign = (problem: string) => ({ version, path, state: 'foreign', problem }) as const;
  if (!there.isDirectory()) return foreign(`is a ${kindOf(there)} and no directory`);
  try {
    // Opening the directory makes a network file system ask its server: it may have cached that there was no
    // marker.
    const read = (at: string) => readRegular(at, SMALL_FILE);
    const text = (await tree.entry(join(path, MARKER), read))?.toString();
    if (text === undefined) return { version, path, state: 'unfinished' };
    const marker = decodeMarker(text, version);
    return typeof marker === 'string'
      ? foreign(`has a marker ${MARKER} that ${marker}`)
      : { version, path, state: 'valid', marker };
  } catch (error) {
    if (error instanceof Damage) return foreign(`has a marker ${MARKER} that is a ${error.what}`);
    throw error;
  }
}

/** The numbers after a prefix. `v05` is not one of them: it would be the same version as `v5`. */
function numbered(names: readonly string[], prefix: string): number[] {
  const number = (name: string) => Number(name.slice(prefix.length));
  return names
    .filter(
      (name) => Number.isSafeInteger(number(name)) && number(name) >= 0 && name === prefix + number(name),
    )
    .map(number);
}
