import { access } from 'node:fs/promises';
import { StoreError, type StoreFault } from '../lease-store.js';

/** The operating system's code of a failed file operation, for example `ENOENT`; undefined for every other error. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === 'string' && (error as NodeJS.ErrnoException).syscall !== undefined ? code : undefined;
}

/** What `operation` resolves to, or undefined when it fails with one of these codes. */
export async function unless<T>(codes: readonly string[], operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    if (codes.includes(codeOf(error) ?? '')) return undefined;
    throw error;
  }
}

/** Whether there is something of that name. */
export async function exists(path: string): Promise<boolean> {
  return (
    (await unless(
      ['ENOENT'],
      access(path).then(() => true),
    )) ?? false
  );
}

const FAULTS: Readonly<Record<string, StoreFault>> = {
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
  ENOENT: 'missing',
  EAGAIN: 'unavailable',
  EBUSY: 'unavailable',
  EIO: 'unavailable',
  EINTR: 'unavailable',
  EMFILE: 'unavailable',
  ENFILE: 'unavailable',
  ENOMEM: 'unavailable',
  ESTALE: 'unavailable',
  ETIMEDOUT: 'unavailable',
};

/**
 * A failed file operation as the store contract tells it. This is the only place that does. An error that is none of the
 * operating system's (a reason to abort, a {@link StoreError}) comes back as it is.
 *
 * @param error what was thrown; its message names the operation and the path
 * @param url the store
 * @param outcome of the write that it was part of; `not-applied` for a read
 */
export function toStoreError(error: unknown, url: string, outcome: 'unknown' | 'not-applied'): unknown {
  const code = codeOf(error);
  if (code === undefined || !(error instanceof Error)) return error;
  return new StoreError(`${url}: ${error.message}`, { fault: FAULTS[code] ?? 'rejected', outcome, cause: error });
}
