import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { acquireLease } from '../../../core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../../core/lease/model/lease.js';
import { initializeCluster } from '../../../core/lease/operate/initialize.js';
import { scaleCluster } from '../../../core/lease/operate/scale.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { StoreError } from '../../../core/store/lease-store.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import { releaseId } from './release-command.js';

async function scene() {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const session = new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000);
  await initializeCluster({
    session,
    clock,
    random: seededRandom(1),
    wanted: { nodes: 3, durationMs: 15_000, graceMs: 1_000 },
  });
  return { clock, bucket, session, io: capturedIo(undefined, clock) };
}

describe('nodelease release --force', () => {
  it('says whom it took the id from, at which version it is now, and when others may take it; and the holder stops', async () => {
    const { clock, session, io } = await scene();
    const lease = await acquireLease({
      store: session.store,
      clock,
      random: seededRandom(1),
      taskId: 'holder',
    });
    session.requests = 0;
    expect(await releaseId(session, 0, { options: {}, io })).toBe(0);
    // The settings, the lease, and the tombstone in its place.
    expect(session.requests).toBe(3);
    expect(io.answer()).toBe(
      'node id 0 is taken away from task holder: its version is 2 now\n' +
        'the task stops at its next renewal, others may take the id in 16s at the latest\n',
    );
    await clock.advance(5_000);
    expect(lease.signal.aborted).toBe(true);
  });

  it('says the same as JSON', async () => {
    const { clock, session, io } = await scene();
    const random = seededRandom(1);
    const lease = await acquireLease({ store: session.store, clock, random, taskId: 'holder' });
    expect(await releaseId(session, 0, { options: { json: true }, io })).toBe(0);
    expect(await releaseId(session, 2, { options: { json: true }, io })).toBe(0);
    const none = { store: 'memory:', id: 2, evicted: false, taskId: null, version: null, freeInMs: null };
    expect(
      io
        .answer()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { store: 'memory:', id: 0, evicted: true, taskId: 'holder', version: 2, freeInMs: 16_000 },
      none,
    ]);
    await clock.advance(5_000);
    expect(lease.signal.aborted).toBe(true);
  });

  it('does not try for ever where the holder is always faster', async () => {
    const { clock, bucket, session, io } = await scene();
    await acquireLease({ store: session.store, clock, random: seededRandom(1), taskId: 'holder' });
    let writes = 0;
    const intercept: MemoryIntercept = async (call, apply) => {
      if (call.operation !== 'replace') return apply();
      writes += 1;
      return { status: 'conflict' } as never;
    };
    const slower = new StoreSession(new MemoryLeaseStore({ clock, intercept }, bucket), clock, 1_000);
    await expect(releaseId(slower, 0, { options: {}, io })).rejects.toMatchObject({
      code: 'CLUSTER_CHANGED',
      message: 'memory:: 0.json changes too often to be changed',
    });
    expect(writes).toBe(10);
  });

  it('promises no task an id that the cluster has no more', async () => {
    const { clock, session, io } = await scene();
    const leases: Lease[] = [];
    for (const seed of [1, 2, 3]) {
      leases.push(
        await acquireLease({
          store: session.store,
          clock,
          random: seededRandom(seed),
          taskId: `task-${seed}`,
        }),
      );
    }
    const scaling = new AbortController();
    const shrinking = scaleCluster({
      session,
      clock,
      random: seededRandom(4),
      size: 2,
      signal: scaling.signal,
    });
    const stopped = expect(shrinking).rejects.toBe('enough');
    await clock.advance(1_000);
    scaling.abort('enough');
    await stopped;
    expect(await releaseId(session, 2, { options: {}, io })).toBe(0);
    expect(io.answer()).toMatch(
      /\nthe task stops at its next renewal, no task may take the id: it is no longer in the cluster\n$/,
    );
    await clock.advance(5_000);
    expect(leases.map(({ signal }) => signal.aborted)).toEqual([false, false, true]);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it('says that an id is not held, which is no failure, and changes nothing', async () => {
    const { bucket, session, io } = await scene();
    const before = bucket.list();
    expect(await releaseId(session, 2, { options: {}, io })).toBe(0);
    expect(io.answer()).toBe('node id 2 is not held: it is vacant, nothing was changed\n');
    expect(bucket.list()).toEqual(before);
  });

  it('has patience with a store that is busy for a moment, and takes the id away once', async () => {
    const { clock, bucket, session, io } = await scene();
    await acquireLease({ store: session.store, clock, random: seededRandom(1), taskId: 'holder' });
    let calls = 0;
    // Each first one of three fails: the last write has been applied.
    const busy = new MemoryLeaseStore(
      {
        clock,
        intercept: async (call, apply) => {
          calls += 1;
          if (calls % 3 === 0) return apply();
          if (call.operation === 'replace') apply();
          throw new StoreError('slow down', { fault: 'unavailable', outcome: 'unknown' });
        },
      },
      bucket,
    );
    const released = releaseId(new StoreSession(busy, clock, 1_000), 0, {
      options: { json: true },
      io,
    });
    await clock.advance(20_000);
    expect(await released).toBe(0);
    expect(JSON.parse(io.answer())).toMatchObject({ evicted: true, taskId: 'holder', version: 2 });
  });

  it.each([
    [
      'before it is taken away',
      'is not held any more by task dead: another task has just acquired it, nothing was changed',
    ],
    ['when the reply to that is lost', 'is taken away from task dead: its version is 2 now'],
  ])('leaves the next holder alone, who comes %s', async (when, text) => {
    const { clock, bucket, session, io } = await scene();
    const dead = await acquireLease({ store: session.store, clock, random: seededRandom(1), taskId: 'dead' });
    clock.freeze(17_000);
    let next: Lease | undefined;
    const intercept: MemoryIntercept = async (call, apply) => {
      if (call.operation !== 'replace' || next) return apply();
      const isLost = when !== 'before it is taken away';
      if (isLost) apply();
      next = await acquireLease({ store: session.store, clock, random: seededRandom(2), taskId: 'next' });
      if (isLost) throw new StoreError('lost', { fault: 'unreachable', outcome: 'unknown' });
      return apply();
    };
    const store = new MemoryLeaseStore({ clock, intercept }, bucket);
    const released = releaseId(new StoreSession(store, clock, 1_000), 0, { options: {}, io });
    await clock.advance(1_000);
    expect(await released).toBe(0);
    expect(io.answer().split('\n')[0]).toBe(`node id 0 ${text}`);
    await clock.advance(10_000);
    expect([dead.isValid(), next?.id, next?.isValid()]).toEqual([false, 0, true]);
    await next?.release();
  });

  it('says so where there is no lease object, and fails where there is no cluster', async () => {
    const { bucket, session, io, clock } = await scene();
    bucket.remove('2.json');
    expect(await releaseId(session, 2, { options: {}, io })).toBe(0);
    expect(io.answer()).toMatch(/not held.*init --repair/);
    const nowhere = new StoreSession(new MemoryLeaseStore({ clock }), clock, 1_000);
    expect(await releaseId(nowhere, 2, { options: {}, io })).toBe(69);
    expect(io.complaints()).toMatch(/memory:.*\[CLUSTER_MISSING\]\n$/);
  });

  it('names a damaged lease object, leaves it as it is, and fails', async () => {
    const { bucket, session, io } = await scene();
    bucket.replace('1.json', 'garbage', {}, bucket.read('1.json')?.etag ?? '');
    expect(await releaseId(session, 1, { options: {}, io })).toBe(69);
    expect(io.complaints()).toMatch(
      /^nodelease: node id 1: lease object is not JSON: "garbage": left as it is .* \[LEASE_UNREADABLE\]\n$/,
    );
    expect(bucket.read('1.json')?.body).toBe('garbage');
  });

  it('refuses ids that do not exist', async () => {
    const { session, io } = await scene();
    await expect(releaseId(session, 3, { options: {}, io })).rejects.toThrow(
      'node id: expected a node id from 0 to 2, got 3',
    );
  });
});
