import { link, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Damage, readRegular, unless, writeDurably } from '../base/files.js';
import { isDone } from './copy-tree.js';
import { DataDirError } from './data-dir-error.js';

interface Claim {
  readonly root: string;
  readonly store: string;
  readonly lease: { readonly id: number; readonly version: number };
}

/**
 * The file at the root that names the store of the versions below it. Camunda has no such file, and ignores
 * it.
 */
export const OWNER = 'nodelease.json';

/**
 * Ensures that a root does not belong to another store: each store would take the other's versions for
 * earlier tenures.
 * @throws {DataDirError}
 */
export async function checkOwner({ root, store }: Claim): Promise<void> {
  const path = join(resolve(root), OWNER);
  const found = (await readOwner(path))?.toString();
  if (found === undefined || found === ownerOf(store)) return;
  const choice = 'choose another root, or correct the file where the store has moved';
  throw new DataDirError(`${path} says ${found.trim()}, and the store of this lease is ${store}: ${choice}`);
}

/**
 * Claims a root for the store if it belongs to no store.
 * @throws {DataDirError} when it belongs to another store by now
 */
export async function claimRoot(claim: Claim): Promise<void> {
  const path = join(resolve(claim.root), OWNER);
  if ((await readOwner(path)) === undefined) {
    // The file appears complete or not at all, and the first one stays.
    const draft = `${path}.${claim.lease.id}.${claim.lease.version}`;
    await writeDurably(draft, Buffer.from(ownerOf(claim.store)));
    const isLinked = await isDone(unless(['EEXIST'], link(draft, path)));
    // On a file system without links the last one stays, and the others are refused from their next start on.
    if (!isLinked) await rename(draft, path);
    await rm(draft, { force: true });
  }
  await checkOwner(claim);
}

async function readOwner(path: string): Promise<Buffer | undefined> {
  try {
    return await readRegular(path);
  } catch (error) {
    if (error instanceof Damage)
      throw new DataDirError(`${path} is a ${error.what}, and no file: move it away, or choose another root`);
    throw error;
  }
}

const ownerOf = (store: string) => `${JSON.stringify({ store })}\n`;
