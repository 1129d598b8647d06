import { NodeLeaseError } from '../base/errors.js';
import { codeOf } from '../base/files.js';

/**
 * A data directory cannot be made, or must not be: the content of the root does not allow it, or the file
 * system failed.
 */
export class DataDirError extends NodeLeaseError {
  readonly code = 'DATA_DIR_FAILED';
}

/**
 * Turns a failure of the file system into a {@link DataDirError} that names the failed action. Other errors
 * are returned unchanged.
 */
export function toDataDirError(error: unknown, what: string): unknown {
  return codeOf(error) === undefined ? error : new DataDirError(what, { cause: error });
}
