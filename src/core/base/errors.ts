import { valueWithoutSecrets } from './redaction.js';

/** Every failure that nodelease reports is one of these. `code` distinguishes them, never the text. */
export type NodeLeaseErrorCode =
  | 'CONFIG_INVALID'
  | 'STORE_UNREACHABLE'
  | 'STORE_UNAVAILABLE'
  | 'STORE_DENIED'
  | 'STORE_MISSING'
  | 'STORE_UNSUPPORTED'
  | 'STORE_REJECTED'
  | 'STORE_UNSAFE'
  | 'CLUSTER_MISSING'
  | 'CLUSTER_DAMAGED'
  | 'CLUSTER_FOREIGN'
  | 'CLUSTER_CHANGED'
  | 'ACQUIRE_TIMEOUT'
  | 'WAIT_TIMEOUT'
  | 'LEASE_LOST'
  | 'LEASE_RELEASED'
  | 'LEASE_RETIRING'
  | 'LOCK_LOST'
  | 'LOCK_RELEASED'
  | 'RECIPE_FAILED'
  | 'SHARED_DATA_FAILED'
  | 'DATA_DIR_FAILED'
  | 'LEASE_UNREADABLE'
  | 'ZOOKEEPER_FAILED'
  | 'NO_INSTANCE'
  | 'CONFIG_CONFLICT'
  | 'CONFIG_HISTORY'
  | 'CONFIG_SCHEMA'
  | 'IDS_EXHAUSTED';

/** The base of every error that nodelease throws on purpose. */
export abstract class NodeLeaseError extends Error {
  abstract readonly code: NodeLeaseErrorCode;

  constructor(message: string, options?: ErrorOptions) {
    // A cause that is undefined would be printed.
    super(message, options?.cause === undefined ? undefined : options);
    this.name = new.target.name;
  }
}

/** A setting is wrong. The message names the setting, the value and what was expected. */
export class ConfigError extends NodeLeaseError {
  readonly code = 'CONFIG_INVALID';
  readonly value: unknown;

  /**
   * @param setting its name, such as `duration`, of which the command line makes a flag
   * @param value the given value; a user's name and password in it are neither shown nor kept
   * @param expected the correct form, as the rest of the sentence "expected …"
   */
  constructor(
    readonly setting: string,
    value: unknown,
    readonly expected: string,
  ) {
    const shown = typeof value === 'string' ? valueWithoutSecrets(value) : value;
    super(`${setting}: expected ${expected}, got ${describe(shown)}`);
    this.value = shown;
  }
}

/**
 * The store cannot be used at all: `STORE_UNSAFE`, it ignores conditions; `CLUSTER_…`, what is there is no
 * sound cluster; otherwise the code of the {@link StoreError} that is its cause.
 */
export class StoreUnusableError extends NodeLeaseError {
  constructor(
    readonly code: Extract<NodeLeaseErrorCode, `STORE_${string}` | `CLUSTER_${string}`>,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** No node id became free within the time that the caller was ready to wait. */
export class AcquireTimeoutError extends NodeLeaseError {
  readonly code = 'ACQUIRE_TIMEOUT';
}

/** Another process did not do its part in time: a lock, a barrier, an item of a queue. */
export class WaitTimeoutError extends NodeLeaseError {
  readonly code = 'WAIT_TIMEOUT';
}

/** How much of a value is shown, in characters. */
const MAX_SHOWN = 1_000;

function describe(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  // Its elements may be secrets.
  if (Array.isArray(value)) return 'an array';
  let text: string;
  try {
    text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  } catch {
    // An object without a prototype.
    text = 'an object';
  }
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** One line that says what went wrong and why, the causes' texts included, without stack traces. */
export function explain(error: unknown): string {
  const parts: string[] = [];
  for (let current = error; current !== undefined && current !== null; ) {
    const text = (current instanceof Error ? current.message || current.name : String(current))
      .replace(/\s+/g, ' ')
      .trim();
    if (text !== '' && !parts.some((part) => part.includes(text))) parts.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  return parts.join(': ');
}
