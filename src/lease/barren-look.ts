import type { Clock, RandomSource } from '../clock.js';
import type { ClusterConfig } from './cluster-config.js';
import type { LeaseListener } from './lease.js';
import type { LeaseCodec } from './lease-codec.js';
import type { Surveyed } from './lease-survey.js';
import type { StoreSession } from './store-session.js';

/** A look at the store that found nothing free. */
export interface BarrenLook {
  readonly config: ClusterConfig;
  /** Everything, or a part of it. */
  readonly listing: Surveyed;
  /** How many parts everything has that one request each shows. */
  readonly parts: number;
  /** How many leases should have been renewed by now, and were not. */
  readonly overdue: number;
  /** When the listing was there, on the monotonic clock. */
  readonly lookedAt: number;
  /** When the first of those that seem held could be found expired, on the monotonic clock; infinity for none. */
  readonly expiryAt: number;
  /** When the first of those that look free and are not is worth another try, on the monotonic clock; infinity for none. */
  readonly laterAt: number;
  /** How many races for an id this task has lost so far. */
  readonly losses: number;
}

/** What waiting needs. */
export interface WaitingOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly codec: LeaseCodec;
  readonly taskId: string;
  readonly emit: LeaseListener;
  readonly signal?: AbortSignal;
  /** When to stop, on the monotonic clock. */
  readonly until: number;
}

/** A way to wait between two looks. */
export interface Patience {
  /**
   * Resolves when it is time for another look, at `until` at the latest.
   *
   * @returns at how many parts to look; it may be all of them, and more
   * @throws `signal.reason`
   */
  pass(look: BarrenLook): Promise<number>;
  /** Lets go of everything. Idempotent. */
  end(): void;
}

/** How long after it could first be found an expiry may be noticed, in milliseconds, beyond the duration and the grace; taking the id comes on top. */
const NOTICE_MS = 500;

/**
 * A pause that is longer than a lease's duration, so that a waiting task makes fewer than one request in each, and short enough for a lease
 * that expires meanwhile to be taken within the duration, the grace and two seconds. Chance keeps those who wait apart.
 *
 * @returns milliseconds
 */
export function longPauseMs({ durationMs, graceMs }: ClusterConfig, random: RandomSource): number {
  const room = graceMs + NOTICE_MS;
  return durationMs + room / 2 + (random.next() * room) / 2;
}
