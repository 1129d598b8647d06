import { link, lstat, rename, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { parsed } from '../base/fields.js';
import { codeOf, readRegular, SMALL_FILE, syncFolder, unless, writeDurably } from '../base/files.js';
import { HeldTree } from './held-tree.js';

/**
 * The file that makes a version's directory valid. It is written last. Format and name are part of
 * the layout (versions.ts).
 */
export const MARKER = 'directory-initialized.json';
const DRAFT = `${MARKER}.tmp`;
/**
 * A second name of the marker: the work of its tenure has ended. A copy of it is another file, and has no
 * meaning.
 */
const ENDED = 'directory-ended.json';

/** The names at the top of a version's directory that belong to the directory, not to its content. */
export const OWN_NAMES: readonly string[] = [MARKER, DRAFT, ENDED];

/** The last time that a date can represent, in milliseconds since the Unix epoch. */
const MAX_TIME = 8.64e15;

export interface Marker {
  /**
   * When the directory was complete, in milliseconds since the Unix epoch, by its maker's clock: for people.
   */
  readonly initializedAt: number;
  readonly version: number;
  /** The version that it was made from; null for an empty one. */
  readonly initializedFrom: number | null;
}

/** The marker of the directory of `version`, or its problem, as the rest of the sentence "the marker …". */
export function decodeMarker(text: string, version: number): Marker | string {
  const fields = parsed(text) as Partial<Marker> | null | undefined;
  if (fields === undefined) return 'is not JSON';
  const { initializedAt, initializedFrom = null, version: named } = fields ?? {};
  if (named !== version) return `is of version ${JSON.stringify(named)}`;
  if (typeof initializedAt !== 'number' || !(initializedAt >= 0 && initializedAt <= MAX_TIME))
    return 'has no usable "initializedAt"';
  return {
    initializedAt,
    version,
    initializedFrom: typeof initializedFrom === 'number' ? initializedFrom : null,
  };
}

/** Whether the directory of `version` is valid. @throws where its marker is no file */
export async function isMarked(directory: string, version: number): Promise<boolean> {
  const text = (await readRegular(join(directory, MARKER), SMALL_FILE))?.toString() ?? '';
  return typeof decodeMarker(text, version) !== 'string';
}

/**
 * Makes a directory valid. A crash, or a loss of power, leaves all of the marker or none.
 *
 * @param before is called when all that needs space has succeeded
 */
export async function writeMarker(
  directory: string,
  { initializedAt, version, initializedFrom }: Marker,
  before?: () => Promise<void>,
): Promise<void> {
  const draft = join(directory, DRAFT);
  await rm(draft, { force: true });
  await writeDurably(draft, Buffer.from(JSON.stringify({ initializedAt, version, initializedFrom })));
  await before?.();
  await rename(draft, join(directory, MARKER));
  await syncFolder(directory);
}

/**
 * Records in the directory of a version that the work of its tenure has ended, before the node id is
 * released. Its files may then be linked, whatever happens to later tenures until one is complete. Never
 * rejects: without the record, the files may have to be copied.
 *
 * @param path the absolute path of the directory, `ROOT/node-<id>/v<version>`
 */
export async function markEnded(path: string): Promise<void> {
  const tree = new HeldTree(dirname(dirname(path)));
  const mark = tree.within(relative(tree.top, path), (at) => link(join(at, MARKER), join(at, ENDED)));
  await mark.catch((error) => {
    if (codeOf(error) === undefined) throw error;
  });
}

/** Whether the work of a version's tenure has ended, and no later version shares its files. */
export async function hasEnded(directory: string): Promise<boolean> {
  const [ended, marker] = await Promise.all(
    [ENDED, MARKER].map((name) => unless(['ENOENT'], lstat(join(directory, name)))),
  );
  return ended !== undefined && ended.dev === marker?.dev && ended.ino === marker.ino;
}

/** Removes this record, before a version that shares the files is complete. */
export async function unmarkEnded(directory: string): Promise<void> {
  await rm(join(directory, ENDED), { force: true });
  await syncFolder(directory);
}
