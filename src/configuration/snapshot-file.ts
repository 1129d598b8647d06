import { open, readFile, rename, rm } from 'node:fs/promises';
import type { RandomSource } from '../base/clock.js';
import type { ConfigValue, ConfigValues } from './read-contexts.js';

/** A configuration that was kept in a file for when ZooKeeper is away. */
export interface Snapshot extends ConfigValues {
  /** When it was read, ISO 8601, by the clock of its writer. */
  readonly at: string;
}

/** Replaces the file at once. Only its owner may read it. @param of whose configuration it is */
export async function writeSnapshot(path: string, of: string, snapshot: Snapshot, random: Pick<RandomSource, 'hex'>): Promise<void> {
  const draft = `${path}.${random.hex(6)}.tmp`;
  const { at, revisions, values } = snapshot;
  try {
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(`${JSON.stringify({ of, at, revisions, values: Object.fromEntries(values) })}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Undefined where there is no file. @param owners whose it may be @throws {Error} where it cannot be read, or is another one's */
export async function readSnapshot(path: string, owners: readonly [string, string]): Promise<Snapshot | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const {
    of: owner,
    at,
    revisions,
    values,
  } = JSON.parse(text) as Partial<Omit<Snapshot, 'values'>> & {
    readonly of?: string;
    readonly values?: Readonly<Record<string, ConfigValue>>;
  };
  if (at === undefined || revisions === undefined || values === undefined) throw new Error(`${path} is no snapshot of a configuration`);
  if (owner === undefined || !owners.includes(owner)) throw new Error(`${path} is a snapshot of ${owner}, not of ${owners[1]}`);
  return { at, revisions, values: new Map(Object.entries(values)) };
}
