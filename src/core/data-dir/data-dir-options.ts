import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ConfigError } from '../base/errors.js';
import { codeOf, unless } from '../base/files.js';
import type { CopyMode } from './copy-tree.js';
import { toDataDirError } from './data-dir-error.js';

/** A directory that follows the node id: `ROOT/node-<id>/v<version>`, made from the version before. */
export interface DataDirOptions {
  /** The parent of all directories, on a file system that all tasks share unless `local`. It must exist. */
  readonly root: string;
  /** How many valid versions of a node id are kept, the new one included, 1 … 1000. @default 2 */
  readonly retention?: number | undefined;
  /**
   * What a new version leaves out: names at any depth (`runtime`, `*.tmp`), or paths from the top
   * (`logs/old`).
   * @default nothing
   */
  readonly exclude?: readonly string[] | undefined;
  /**
   * Whether to copy even if the work of the predecessor has ended, so that work on a version never changes an
   * older one. The successor copies as well.
   * @default false
   */
  readonly copy?: boolean | undefined;
  /**
   * Whether only this host has the file system. The versions on it may then be older than those of other
   * hosts: a new version is made from one only if the last tenure of the node id, with the same sticky key,
   * left it here; otherwise it begins empty. Needs a sticky key.
   * @default false
   */
  readonly local?: boolean | undefined;
  /** Receives the events of the directory. Must not throw. */
  readonly onEvent?: ((event: DataDirEvent) => void) | undefined;
}

/** What happens while the directory at `path` is prepared. */
export type DataDirEvent = { readonly path: string } & (
  | {
      /** Sent every ten seconds. */
      readonly type: 'progress';
      readonly files: number;
      readonly bytes: number;
      readonly of: { readonly files: number; readonly bytes: number };
    }
  /** `from` is the version that it was made from; null for an empty directory. */
  | {
      readonly type: 'prepared';
      readonly from: number | null;
      readonly mode: CopyMode;
      readonly files: number;
      readonly bytes: number;
      readonly tookMs: number;
    }
  /** An old version, an unfinished one, or a leftover of one. */
  | { readonly type: 'removed' }
  | { readonly type: 'not-removed'; readonly error: unknown }
  /** The root is on a file system of one host, and other hosts use the same store. */
  | { readonly type: 'looks-local'; readonly fileSystem: string }
);

/** Number of versions that are kept by default. */
export const DEFAULT_RETENTION = 2;

/**
 * Checks that data directories are possible here.
 * @throws {ConfigError} naming the setting `label`
 * @throws {DataDirError} when the file system fails
 */
export async function checkRoot(root: string, label: string, use: 'read' | 'write'): Promise<void> {
  const { R_OK, W_OK, X_OK } = constants;
  try {
    const there = await unless(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'], stat(resolve(root)));
    // The root is not created: a file system that is not mounted would go unnoticed, and its data would be
    // missing.
    if (there === undefined) throw new ConfigError(label, root, 'a directory that is there');
    if (!there.isDirectory()) throw new ConfigError(label, root, 'a directory, not a file');
    await access(root, use === 'read' ? R_OK | X_OK : R_OK | W_OK | X_OK);
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].includes(codeOf(error) ?? ''))
      throw toDataDirError(error, `${root} cannot be examined`);
    throw new ConfigError(
      label,
      root,
      `a directory that this process may ${use === 'read' ? 'read' : 'write to'}`,
    );
  }
}
