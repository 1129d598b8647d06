import { describe, expect, it } from 'vitest';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import type { ListOptions } from '../../core/store/lease-store.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { oncePer } from './once.js';
import { locksReader } from './read-locks.js';
import { acquireLock } from './store-lock.js';

const DURATION = 15_000;

/** Locks in virtual time, and a reader of all of them, with the requests that it makes. */
function scene() {
  const clock = new VirtualClock();
  const buckets = new Map<string, MemoryBucket>();
  const open = (path: string) => {
    const bucket = buckets.get(path) ?? new MemoryBucket(clock, 1);
    buckets.set(path, bucket);
    return new MemoryLeaseStore({ clock }, bucket);
  };
  const lockOptions = { clock, random: seededRandom(1), durationMs: DURATION, graceMs: 1_000 };
  const lock = (name: string, taskId: string) =>
    acquireLock(name, { ...lockOptions, store: open, taskId, timeoutMs: 0 });
  const once = (name: string) =>
    inVirtualTime(clock, oncePer(open, { ...lockOptions, name, every: '1h', taskId: 'task' }));
  const all = open('locks');
  const requests: string[] = [];
  // The folders of a memory are buckets of their own.
  all.list = async (call?: ListOptions) => {
    requests.push('list');
    const listings = [...buckets].map(async ([path]) => {
      const { objects } = await open(path).list();
      return objects.map((object) => ({ ...object, key: `${path}/${object.key}`.replace('locks/', '') }));
    });
    const storeTime = { min: clock.now(), max: clock.now() };
    return { objects: call?.folders ? (await Promise.all(listings)).flat() : [], storeTime };
  };
  all.read = async (key) => {
    requests.push(key);
    const [name, file = ''] = key.split('/');
    return open(`locks/${name}`).read(file);
  };
  const read = locksReader(new StoreSession(all, clock, 5_000));
  return { clock, open, lock, once, read, requests: () => requests.splice(0) };
}

describe('the locks of a store', () => {
  it('have holders with their tokens and times, are free after their release, and expire with their tasks', async () => {
    const { clock, lock, read } = scene();
    expect(await read()).toEqual([]);
    const begun = clock.now();
    const nightly = await lock('nightly', 'task-1');
    await (await lock('report', 'task-2')).release();
    const [held, free] = await read();
    expect(held).toMatchObject({ name: 'nightly', state: 'held', holder: 'task-1', token: 1, problem: null });
    expect((held?.since ?? 0) - begun).toBeLessThan(1_000);
    expect((held?.until ?? 0) - (held?.since ?? 0)).toBeGreaterThanOrEqual(DURATION - 1_000);
    expect(free).toEqual({
      ...{ name: 'report', state: 'released', holder: null, token: 1 },
      ...{ since: null, until: null, problem: null, once: null },
    });
    clock.freeze(DURATION + 1_000);
    expect(await read()).toMatchObject([{ state: 'expired', holder: 'task-1' }, { state: 'released' }]);
    await nightly.release();
  });

  it('have their last ticks, with what became of them', async () => {
    const { once, read } = scene();
    const run = await once('nightly');
    const ticks = { tick: run?.tick, attempt: 1, missed: 0, taskId: 'task' };
    const [running] = await read();
    expect(running).toMatchObject({ name: 'nightly', state: 'held', once: ticks });
    expect(running?.once).not.toHaveProperty('outcome');
    await run?.complete();
    expect(await read()).toMatchObject([{ state: 'released', once: { ...ticks, outcome: 'succeeded' } }]);
  });

  it('show that the record of the last tick cannot be read, which keeps all tasks from the next one', async () => {
    const { lock, open, read } = scene();
    await (await lock('nightly', 'task')).release();
    await open('locks/nightly').create('tick.json', '{', {});
    expect(await read()).toMatchObject([
      { state: 'released', once: null, problem: 'tick.json is not JSON: "{"' },
    ]);
  });

  it('cost a listing, and a read of each lock that was written since', async () => {
    const { lock, read, requests } = scene();
    await (await lock('a', 'task')).release();
    const held = await lock('b', 'task');
    await read();
    expect(requests()).toEqual(['list', 'a/0.json', 'b/0.json']);
    await read();
    expect(requests()).toEqual(['list']);
    await held.release();
    expect(await read()).toMatchObject([{ holder: null }, { holder: null }]);
    expect(requests()).toEqual(['list', 'b/0.json']);
  });
});
