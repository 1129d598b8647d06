import { link, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { RandomSource } from '../base/clock.js';
import { objectIn } from '../base/fields.js';
import { Damage, readRegular, SMALL_FILE, unless, writeDurably } from '../base/files.js';
import { isDone } from './copy-tree.js';
import { DataDirError } from './data-dir-error.js';

interface RootClaim {
  readonly root: string;
  readonly store: string;
  readonly lease: { readonly id: number; readonly version: number };
}

/**
 * The file at the root that names the store of the versions below it. Other
 * programs that follow the layout ignore it.
 */
const OWNER = 'nodelease.json';
/** The file at the root with its sticky key. */
const KEY = 'nodelease-key';

/**
 * Ensures that a root does not belong to another store: each store would take the other's versions for
 * earlier tenures.
 * @throws {DataDirError}
 */
export async function checkOwner({ root, store }: RootClaim): Promise<void> {
  const path = join(resolve(root), OWNER);
  // People correct it, and editors have their own line ends and byte order marks.
  const found = (await readOwn(path))?.trim();
  if (found === undefined || objectIn(found)?.store === store) return;
  const choice = 'choose another root, or correct the file where the store has moved';
  throw new DataDirError(`${path} says ${found}, and the store of this lease is ${store}: ${choice}`);
}

/**
 * Claims a root for the store if it belongs to no store.
 * @throws {DataDirError} when it belongs to another store by now
 */
export async function claimRoot(claim: RootClaim): Promise<void> {
  const path = join(resolve(claim.root), OWNER);
  // On a file system without links the last one stays, and the others are refused from their next start on.
  if ((await readOwn(path)) === undefined)
    await createOnce(
      path,
      `${claim.lease.id}.${claim.lease.version}`,
      `${JSON.stringify({ store: claim.store })}\n`,
    );
  await checkOwner(claim);
}

/**
 * The sticky key of a root, made when it has none: it moves with the file system.
 * @throws {DataDirError} when its file holds no key
 */
export async function stickyKeyAt(root: string, random: Pick<RandomSource, 'hex'>): Promise<string> {
  const path = join(resolve(root), KEY);
  if ((await readOwn(path)) === undefined) await createOnce(path, random.hex(8), `${random.hex(16)}\n`);
  const key = (await readOwn(path))?.trim();
  if (key !== undefined && /^[\da-f]{32}$/.test(key)) return key;
  throw new DataDirError(
    `${path} holds no sticky key: expected 32 hex digits; remove it, and a new one is made`,
  );
}

/** Creates a file, which appears complete or not at all. The first one stays. */
async function createOnce(path: string, draftName: string, content: string): Promise<void> {
  const draft = `${path}.${draftName}`;
  await writeDurably(draft, Buffer.from(content));
  const isLinked = await isDone(unless(['EEXIST'], link(draft, path)));
  if (!isLinked) await rename(draft, path);
  await rm(draft, { force: true });
}

async function readOwn(path: string): Promise<string | undefined> {
  try {
    return (await readRegular(path, SMALL_FILE))?.toString();
  } catch (error) {
    if (error instanceof Damage)
      throw new DataDirError(
        `${path} is a ${error.what}, and not the file of nodelease: move it away, or choose another root`,
      );
    throw error;
  }
}
