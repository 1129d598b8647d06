import { rename, rm } from 'node:fs/promises';
import type { RandomSource } from '../../core/base/clock.js';
import { objectIn } from '../../core/base/fields.js';
import { Damage, readFollowing, unless, writeDurably } from '../../core/base/files.js';
import type { ConfigValue, ConfigValues } from './read-contexts.js';

/** A configuration that was kept in a file for when ZooKeeper is away. */
export interface Snapshot extends ConfigValues {
  /** Whose it is. */
  readonly of: string;
  /** When it was read, ISO 8601, by the clock of its writer. */
  readonly at: string;
}

/** More than any configuration has. */
const MAX_BYTES = 64 * 2 ** 20;

/**
 * Replaces the file at once. Only its owner may read it.
 * @throws {Damage} where something else than a snapshot is there: one that is named by mistake is left alone
 */
export async function writeSnapshot(
  path: string,
  { of, at, revisions, values }: Snapshot,
  random: Pick<RandomSource, 'hex'>,
): Promise<void> {
  const there = await unless(['ENOENT', 'EACCES'], readFollowing(path, MAX_BYTES));
  if (there?.length && objectIn(there)?.of === undefined)
    throw new Damage(path, 'no snapshot of a configuration, and left alone');
  const draft = `${path}.${random.hex(6)}.tmp`;
  try {
    const json = JSON.stringify({ of, at, revisions, values: Object.fromEntries(values) });
    await writeDurably(draft, `${json}\n`, 0o600);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/**
 * @param owners whose it may be
 * @throws {Error} where there is none, it cannot be read, or is another one's
 */
export async function readSnapshot(path: string, owners: readonly [string, string]): Promise<Snapshot> {
  type Json = Omit<Snapshot, 'values'> & { readonly values: Readonly<Record<string, ConfigValue>> };
  const { of, at, revisions, values }: Partial<Json> = JSON.parse(
    (await readFollowing(path, MAX_BYTES)).toString(),
  );
  if (of === undefined || at === undefined || revisions === undefined || values === undefined)
    throw new Error(`${path} is no snapshot of a configuration`);
  if (!owners.includes(of)) throw new Error(`${path} is a snapshot of ${of}, not of ${owners[1]}`);
  return { of, at, revisions, values: new Map(Object.entries(values)) };
}
