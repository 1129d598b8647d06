import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { StoreError, type WriteResult } from '../lease-store.js';
import { type MemoryIntercept, MemoryLeaseStore } from './memory-lease-store.js';

let clock: VirtualClock;
let store: MemoryLeaseStore;

beforeEach(() => {
  clock = new VirtualClock();
  store = new MemoryLeaseStore({ clock });
});

const lost = new StoreError('the connection broke', { fault: 'unreachable', outcome: 'unknown' });
const etagOf = (result: WriteResult) => (result.status === 'written' ? result.etag : 'not written');
const through = (intercept: MemoryIntercept) => store.connect(intercept);

describe('the network of a memory store', () => {
  it('can lose a request, which then has no effect', async () => {
    const cut = through(() => Promise.reject(lost));
    await expect(cut.create('0.json', 'x', {})).rejects.toBe(lost);
    expect(await store.read('0.json')).toBeUndefined();
  });

  it('can lose a reply, when the write has been done', async () => {
    const deaf = through(async (_, apply) => {
      apply();
      throw lost;
    });
    await expect(deaf.create('0.json', 'x', {})).rejects.toBe(lost);
    expect((await store.read('0.json'))?.body).toBe('x');
  });

  it('can deliver a request twice: the second one meets the first one’s write', async () => {
    const replies: unknown[] = [];
    const twice = through(async (_, apply) => {
      replies.push(apply());
      return apply();
    });
    expect((await twice.create('0.json', 'x', {})).status).toBe('conflict');
    expect(replies).toMatchObject([{ status: 'written' }]);
  });

  it('can hold a request back until after another one', async () => {
    let letGo = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const slow = through(async (_, apply) => {
      await held;
      return apply();
    });
    const late = slow.create('0.json', 'late', {});
    expect((await store.create('0.json', 'early', {})).status).toBe('written');
    letGo();
    expect((await late).status).toBe('conflict');
  });

  it('sees what every call is about', async () => {
    const calls: unknown[] = [];
    const seen = through(async (call, apply) => {
      calls.push(call);
      return apply();
    });
    const etag = etagOf(await seen.create('probe-1.json', 'a', {}));
    await seen.replace('probe-1.json', 'b', {}, etag);
    await seen.read('probe-1.json');
    await seen.list();
    await seen.discardProbe('probe-1.json');
    expect(calls).toEqual([
      { operation: 'create', key: 'probe-1.json', body: 'a' },
      { operation: 'replace', key: 'probe-1.json', body: 'b', etag },
      { operation: 'read', key: 'probe-1.json' },
      { operation: 'list' },
      { operation: 'discardProbe', key: 'probe-1.json' },
    ]);
  });

  it('lets go of a caller whose signal aborts, though the request may still arrive', async () => {
    let deliver = () => {};
    const slow = through(
      (_, apply) =>
        new Promise((resolve) => {
          deliver = () => resolve(apply());
        }),
    );
    const given = new AbortController();
    const call = slow.create('0.json', 'x', {}, { signal: given.signal });
    await Promise.resolve();
    given.abort(new Error('given up'));
    await expect(call).rejects.toThrow('given up');
    expect(getEventListeners(given.signal, 'abort')).toHaveLength(0);
    deliver();
    expect((await store.read('0.json'))?.body).toBe('x');
  });
});

describe('a memory store', () => {
  it('gives a body that comes back its old etag again, as S3 does', async () => {
    const first = etagOf(await store.create('0.json', 'x', {}));
    const second = etagOf(await store.replace('0.json', 'y', {}, first));
    expect(etagOf(await store.replace('0.json', 'x', {}, second))).toBe(first);
    expect(first).toBe('9dd4e461268c8034f5c8564e155c67a6');
  });

  it('measures ages on its monotonic clock, in steps of its resolution', async () => {
    const coarse = new MemoryLeaseStore({ clock, resolutionMs: 1000 });
    await clock.advance(1999);
    await coarse.create('0.json', 'x', {});
    await clock.advance(1);
    clock.wallOffset += 3_600_000;
    expect((await coarse.read('0.json'))?.age).toEqual({ min: 0, max: 2000 });
    await clock.advance(5000);
    expect((await coarse.read('0.json'))?.age).toEqual({ min: 5000, max: 7000 });
    const exact = new MemoryLeaseStore({ clock, resolutionMs: 0 });
    await exact.create('0.json', 'x', {});
    await clock.advance(7);
    expect((await exact.list()).objects[0]?.age).toEqual({ min: 7, max: 7 });
  });

  it('wakes waiting tasks at a write, not at a refused one, and keeps no listener', async () => {
    const given = new AbortController();
    let woken = 0;
    const wait = () => store.changed(given.signal).then(() => woken++);
    const first = wait();
    await store.replace('0.json', 'x', {}, 'no such etag');
    expect(woken).toBe(0);
    await store.connect().create('0.json', 'x', {});
    await first;
    expect(woken).toBe(1);
    expect(getEventListeners(given.signal, 'abort')).toHaveLength(0);
    const changes: unknown[] = [];
    const wanted = store.changed(given.signal, (change) => changes.push(change) === 3);
    await store.connect().create('probe-1.json', 'né', {});
    await store.discardProbe('probe-1.json');
    await store.create('1.json', '', {});
    await wanted;
    expect(changes).toEqual([
      { key: 'probe-1.json', size: 3 },
      { key: 'probe-1.json', size: undefined },
      { key: '1.json', size: 0 },
    ]);
    const second = wait();
    given.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
    expect(getEventListeners(given.signal, 'abort')).toHaveLength(0);
  });
});
