import { createHash } from 'node:crypto';
import { ConfigError } from '../../base/errors.js';
import { MAX_NODE_IDS } from './lease-state.js';

/**
 * The node id that a task would rather have. It only orders the free ids: wrong, forged or doubled, it changes
 * which of them is tried first.
 */
export interface StickySettings {
  /** Names the instance over its restarts: 1 … 256 characters. @default none */
  readonly sticky?: string | undefined;
  /** Tried before all others where it is free. @default none */
  readonly preferId?: number | undefined;
  /**
   * How long to wait for a lease with the same key that was not released, in milliseconds, 0 … 86400000.
   * @default 0
   */
  readonly stickyWaitMs?: number | undefined;
}

/** The longest key. */
const MOST_CHARACTERS = 256;
/** Hex digits of a mark. */
const DIGITS = 16;

/** What lease objects show of a key: no secret, and equal for equal keys. */
export function stickyMark(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, DIGITS);
}

/** Whether a text may be a {@link stickyMark}. */
export function isMark(text: string): boolean {
  return text.length === DIGITS && /^[\da-f]+$/.test(text);
}

/** @throws {ConfigError} when a setting is out of range */
export function checkSticky({ sticky, preferId, stickyWaitMs }: StickySettings): void {
  if (
    sticky !== undefined &&
    (typeof sticky !== 'string' || sticky === '' || sticky.length > MOST_CHARACTERS)
  )
    throw new ConfigError('sticky', sticky, `1 to ${MOST_CHARACTERS} characters`);
  if (preferId !== undefined && (!Number.isInteger(preferId) || preferId < 0 || preferId >= MAX_NODE_IDS))
    throw new ConfigError('preferId', preferId, `a whole number from 0 to ${MAX_NODE_IDS - 1}`);
  if (stickyWaitMs !== undefined && !(stickyWaitMs >= 0 && stickyWaitMs <= 86_400_000))
    throw new ConfigError('stickyWaitMs', stickyWaitMs, 'a number from 0 to 86400000');
  if (stickyWaitMs && sticky === undefined)
    throw new ConfigError('stickyWaitMs', stickyWaitMs, 'a key as sticky, too');
}
