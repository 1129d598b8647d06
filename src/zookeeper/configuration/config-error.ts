import { NodeLeaseError } from '../../core/base/errors.js';

/** The current revision is not the expected one: another publisher has published since. */
export class ConfigConflictError extends NodeLeaseError {
  readonly code = 'CONFIG_CONFLICT';
  /** The current revision; 0 for none. */
  readonly revision: number;
  /** Who published it; empty where there is none. */
  readonly author: string;

  constructor(
    readonly context: string,
    readonly expected: number,
    { revision, author, at }: { readonly revision: number; readonly author: string; readonly at: string },
  ) {
    const current = revision === 0 ? 'there is none' : `${author} published revision ${revision} at ${at}`;
    super(`${context}: expected revision ${expected}, but ${current}`);
    this.revision = revision;
    this.author = author;
  }
}

/** The history does not have what was asked for. */
export class ConfigHistoryError extends NodeLeaseError {
  readonly code = 'CONFIG_HISTORY';

  /**
   * @param fault `no-such-revision`: never published, or pruned; `damaged`: a znode of the history has other
   * data than nodelease writes
   */
  constructor(
    message: string,
    readonly fault: 'no-such-revision' | 'damaged',
  ) {
    super(message);
  }
}

/**
 * The configuration is not what a schema expects. The message has the keys and the schema's own words, which
 * may quote a value.
 */
export class InvalidConfigurationError extends NodeLeaseError {
  readonly code = 'CONFIG_SCHEMA';

  constructor(readonly issues: readonly { readonly key: string; readonly message: string }[]) {
    const texts = issues.map(({ key, message }) => (key === '' ? message : `${key}: ${message}`));
    super(`the configuration is not as expected: ${texts.join('; ')}`);
  }
}
