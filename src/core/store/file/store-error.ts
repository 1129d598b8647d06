import { codeOf } from '../../base/files.js';
import { StoreError, type StoreFault } from '../lease-store.js';

/** By the operating system's code; every other code is `rejected`. */
const FAULTS: Readonly<Record<string, StoreFault>> = {
  ENOENT: 'missing',
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
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
 * A failed file operation as the store contract has it. Other errors (a reason to abort, a
 * {@link StoreError}) come back as they are.
 */
export function toStoreError(error: unknown, url: string, outcome: 'unknown' | 'not-applied'): unknown {
  const code = codeOf(error);
  if (code === undefined) return error;
  const { message } = error as Error;
  return new StoreError(`${url}: ${message}`, { fault: FAULTS[code] ?? 'rejected', outcome, cause: error });
}
