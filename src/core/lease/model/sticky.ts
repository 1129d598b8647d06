import { createHash } from 'node:crypto';

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
   * How long to wait for a lease with the same key that was not released, in milliseconds. It has no effect
   * without `sticky`. @default 0
   */
  readonly stickyWaitMs?: number | undefined;
}

/** What lease objects show of a key: no secret, and equal for equal keys. */
export function stickyMark(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 16);
}
