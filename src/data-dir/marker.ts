import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder, writeDurably } from '../store/file/files.js';

/** What makes a version's directory valid: a file in it that says so, written last. Format and name are those of Camunda 8.9. */
export const MARKER = 'directory-initialized.json';
const DRAFT = `${MARKER}.tmp`;

/** The names at the top of a version's directory that belong to the directory, and not to what it keeps. */
export const OWN_NAMES: readonly string[] = [MARKER, DRAFT];

/** The last time that dates can tell, in milliseconds since the Unix epoch. */
const MAX_TIME = 8.64e15;

export interface Marker {
  /** When the directory was complete, in milliseconds since the Unix epoch, by its maker's clock: for people. */
  readonly initializedAt: number;
  readonly version: number;
  /** The version that it was made from; null for an empty one. */
  readonly initializedFrom: number | null;
}

/** The marker of the directory of `version`, or else what is wrong with it, as the rest of the sentence "the marker …". */
export function decodeMarker(text: string, version: number): Marker | string {
  let fields: Partial<Marker> | null;
  try {
    fields = JSON.parse(text);
  } catch {
    return 'is not JSON';
  }
  const { initializedAt, initializedFrom = null, version: named } = fields ?? {};
  if (named !== version) return `is of version ${JSON.stringify(named)}`;
  if (typeof initializedAt !== 'number' || !(initializedAt >= 0 && initializedAt <= MAX_TIME)) return 'has no usable "initializedAt"';
  return { initializedAt, version, initializedFrom: typeof initializedFrom === 'number' ? initializedFrom : null };
}

/** Makes a directory valid. A crash, or a loss of power, leaves all of the marker or none. */
export async function writeMarker(directory: string, { initializedAt, version, initializedFrom }: Marker): Promise<void> {
  const draft = join(directory, DRAFT);
  await writeDurably(draft, Buffer.from(JSON.stringify({ initializedAt, version, initializedFrom })));
  await rename(draft, join(directory, MARKER));
  await syncFolder(directory);
}
