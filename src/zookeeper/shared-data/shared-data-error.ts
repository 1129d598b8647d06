import { NodeLeaseError } from '../../core/base/errors.js';

/** Why shared data cannot be read or written as asked. */
export type SharedDataFault =
  /** Under the name and scope is data of another kind or lifespan. */
  | 'kind-clash'
  /** The znode holds no shared data. */
  | 'foreign-znode'
  /** Another node contributes the ephemeral entry: it alone may write it. */
  | 'owned-by-other'
  /** The node is not announced, or not any more: it contributes nothing. */
  | 'not-joined'
  /** A limit of ZooKeeper would be exceeded. Nothing was written. */
  | 'too-large'
  /** Several entries have the text that was asked for. */
  | 'ambiguous'
  /** The entry does not exist. */
  | 'no-entry'
  /** A write may have been carried out or not, and that cannot be found out any more. */
  | 'outcome-unknown';

/** Shared data that cannot be read or written, for another reason than ZooKeeper itself. */
export class SharedDataError extends NodeLeaseError {
  readonly code = 'SHARED_DATA_FAILED';

  /** @param path the znode that it is about, within the chroot */
  constructor(
    message: string,
    readonly fault: SharedDataFault,
    readonly path: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}
