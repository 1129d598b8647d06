import { NodeLeaseError } from '../base/errors.js';
import { codeOf } from '../base/files.js';

/**
 * A data directory cannot be made, or must not be: what stands below the root speaks against it, or the file
 * system failed.
 */
export class DataDirError extends NodeLeaseError {
  readonly code = 'DATA_DIR_FAILED';
}

/**
 * A failure of the file system as a {@link DataDirError} that says what it kept from being done. Other errors
 * come back as they are.
 */
export function toDataDirError(error: unknown, what: string): unknown {
  return codeOf(error) === undefined ? error : new DataDirError(what, { cause: error });
}
