import { codeOf } from '../../base/files.js';
import { StoreError, type StoreFault } from '../lease-store.js';

const DENIED = ['EACCES', 'EPERM', 'EROFS'];
const UNAVAILABLE = ['EAGAIN', 'EBUSY', 'EIO', 'EINTR', 'EMFILE', 'ENFILE', 'ENOMEM', 'ESTALE', 'ETIMEDOUT'];

function faultOf(code: string): StoreFault {
  if (code === 'ENOENT') return 'missing';
  if (DENIED.includes(code)) return 'denied';
  return UNAVAILABLE.includes(code) ? 'unavailable' : 'rejected';
}

/**
 * A failed file operation as the store contract tells it. Other errors (a reason to abort, a
 * {@link StoreError}) come back as they are.
 */
export function toStoreError(error: unknown, url: string, outcome: 'unknown' | 'not-applied'): unknown {
  const code = codeOf(error);
  if (code === undefined) return error;
  return new StoreError(`${url}: ${(error as Error).message}`, {
    fault: faultOf(code),
    outcome,
    cause: error,
  });
}
