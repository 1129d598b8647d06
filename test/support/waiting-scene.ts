import { expect } from 'vitest';
import { acquireLease } from '../../src/core/lease/acquire/acquire-lease.js';
import type { Lease, LeaseEvent } from '../../src/core/lease/model/lease.js';
import { type LeaseStore, StoreError } from '../../src/core/store/lease-store.js';
import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../src/core/store/memory/memory-lease-store.js';
import { observedAge } from '../../src/core/store/observed-age.js';
import { inPages } from './in-pages.js';
import { timeless as withoutAges } from './timeless-store.js';
import { seededRandom, VirtualClock } from './virtual-clock.js';

export const DURATION = 15_000;
export const GRACE = 1_000;
export const REQUEST = 20;
/** What "within duration + grace + 2 s" is, from the expiry on. */
export const PROMISED = DURATION + GRACE + 2_000;
/** From one scan to the next: a third of the duration, and a fifth of that by chance. */
export const LONGEST_PAUSE = (DURATION / 3) * 1.2;
/** How many requests a waiting task may make in a duration. */
export const MOST_REQUESTS = 3.3;

/** What a store says of its changes. */
export type Reporting = 'reporting what changed' | 'reporting that something changed' | 'reporting nothing';

export const REPORTING: readonly Reporting[] = [
  'reporting what changed',
  'reporting that something changed',
  'reporting nothing',
];

/** Tests count its listeners, also where the engine's own controllers are quick ones. */
const PlatformAbortController = AbortController;

/** A task that wants an id, and what it asks for. */
export class Waiter {
  readonly calls: { readonly at: number; readonly call: MemoryCall }[] = [];
  readonly events: LeaseEvent[] = [];
  readonly stop = new PlatformAbortController();
  lease: Lease | undefined;
  error: unknown;
  takenAt = Number.NaN;
  /** Its requests reach the store no more. */
  isDead = false;
}

interface SceneOptions {
  readonly reporting: Reporting;
  /** How many ids are held by tasks that renew, and how many others there are. @default 0 others */
  readonly held: number;
  readonly free?: number;
  /** How long a request takes, in milliseconds. @default 20 */
  readonly requestMs?: number;
  readonly pollMs?: number;
  /** How many objects one request of a listing shows. @default all */
  readonly page?: number;
  /** Whether the store reports no time of writing. @default false */
  readonly timeless?: boolean;
  /** In place of what the store reports. */
  readonly changed?: LeaseStore['changed'];
}

const begun: Waiter[] = [];

/** Stops all that a test has begun. */
export function endScenes(): void {
  for (const { stop } of begun.splice(0)) stop.abort(new Error('the test is over'));
}

/** A cluster on a virtual clock, ids that are held by tasks that renew, and tasks that want one. */
export async function waitingScene({
  reporting,
  held,
  free = 0,
  requestMs = REQUEST,
  pollMs = 1_200,
  page,
  timeless = false,
  changed,
}: SceneOptions) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);

  const connect = (waiter: Waiter): LeaseStore => {
    const intercept = async <Reply>(call: MemoryCall, apply: () => Reply): Promise<Reply> => {
      if (waiter.isDead) throw new StoreError('dead', { fault: 'unreachable', outcome: 'not-applied' });
      waiter.calls.push({ at: clock.monotonic(), call });
      await clock.sleep(requestMs / 2);
      const reply = apply();
      await clock.sleep(requestMs / 2);
      return reply;
    };
    const store = new MemoryLeaseStore({ clock, intercept }, bucket);
    if (reporting === 'reporting what changed' && changed === undefined) return store;
    const silent: LeaseStore = {
      ...{ url: store.url, remote: false, timeStepMs: store.timeStepMs, pollMs },
      read: (key, call) => store.read(key, call),
      list: (call) => store.list(call),
      create: (key, body, metadata, call) => store.create(key, body, metadata, call),
      replace: (key, body, metadata, etag, call) => store.replace(key, body, metadata, etag, call),
      discardProbe: (key, call) => store.discardProbe(key, call),
      close: () => store.close(),
      ...(reporting === 'reporting that something changed' && {
        changed: (signal: AbortSignal) => store.changed(signal),
      }),
      ...(changed && { changed }),
    };
    const shown = page === undefined ? silent : inPages(silent, page);
    return timeless ? observedAge(withoutAges(shown), clock) : shown;
  };

  const start = (own: { readonly acquireTimeoutMs?: number } = {}): Waiter => {
    const waiter = new Waiter();
    begun.push(waiter);
    const wanted = {
      taskId: `task-${begun.length}`,
      nodes: held + free,
      durationMs: DURATION,
      graceMs: GRACE,
      signal: waiter.stop.signal,
    };
    const onEvent = (event: LeaseEvent) => void waiter.events.push(event);
    acquireLease({
      ...wanted,
      ...own,
      store: connect(waiter),
      clock,
      random: seededRandom(begun.length),
      onEvent,
    }).then(
      (lease) => {
        waiter.lease = lease;
        waiter.takenAt = clock.monotonic();
      },
      (error: unknown) => {
        waiter.error = error;
      },
    );
    return waiter;
  };

  const holders: Waiter[] = [];
  while (holders.length < held) {
    holders.push(start());
    await clock.advance((DURATION / 3 / held) * 0.9);
  }
  await clock.advance(DURATION);
  expect(new Set(holders.map(({ lease }) => lease?.id)).size).toBe(held);
  return { clock, bucket, start, holders };
}

/** How many requests each of them made. */
export function requests(waiters: readonly Waiter[], from: number, until: number): number[] {
  return waiters.map(({ calls }) => calls.filter(({ at }) => at >= from && at < until).length);
}

export const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
export const scans = (waiters: readonly Waiter[], from: number) =>
  sum(
    waiters.map(
      ({ calls }) => calls.filter(({ at, call }) => at >= from && call.operation === 'list').length,
    ),
  );
export const pauses = ({ events }: Waiter) =>
  events.flatMap((event) => (event.type === 'waiting' ? [event.sleepMs] : []));
export const taken = (waiters: readonly Waiter[]) => waiters.filter(({ lease }) => lease !== undefined);
export const latest = (waiters: readonly Waiter[]) =>
  Math.max(...taken(waiters).map(({ takenAt }) => takenAt));

/**
 * When the last write that a holder's store has applied was at least sent, and with it the end of the lease.
 */
export function expiryOf(holder: Waiter): number {
  return (
    Math.max(...holder.calls.filter(({ call }) => call.operation !== 'read').map(({ at }) => at)) + DURATION
  );
}
