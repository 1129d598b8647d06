import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { LeaseEvent } from '../../core/lease/model/lease.js';
// Loaded here, and not by the first lock: virtual time continues while a module is being read.
import '../../core/lease/acquire/acquire-lease.js';
import { evictHolder } from '../../core/lease/operate/evict.js';
import { readCluster } from '../../core/lease/session/cluster-store.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { electOnStore } from './elect.js';
import { acquireLock, type LockOptions, type StoreLock } from './store-lock.js';

const DURATION = 15_000;
const GRACE = 1_000;
const UNREACHABLE = new StoreError('fault', { fault: 'unreachable', outcome: 'unknown' });

afterEach(() => void vi.unstubAllEnvs());

it.each([
  ['a lock', () => acquireLock('nightly')],
  ['an election', async () => electOnStore('leader')],
])(
  '%s requires the store in a container, where the default would exclude no other one',
  async (_, acquire) => {
    vi.stubEnv('KUBERNETES_SERVICE_HOST', '10.0.0.1');
    await expect(acquire()).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting: 'store' });
  },
);

/** A store for locks in virtual time, as any number of tasks reach it. */
function lockStore({ remote = false } = {}) {
  const clock = new VirtualClock();
  const buckets = new Map<string, MemoryBucket>();
  const bucketAt = (path: string) => {
    const bucket = buckets.get(path) ?? new MemoryBucket(clock, 1);
    buckets.set(path, bucket);
    return bucket;
  };
  let tasks = 0;
  /** A task with its own network. */
  const task = () => {
    tasks += 1;
    const network = { calls: [] as (MemoryCall & { path: string })[], isAway: false, open: 0 };
    const events: LeaseEvent[] = [];
    const open = (path: string) => {
      network.open += 1;
      const store = new MemoryLeaseStore(
        {
          ...{ clock, remote },
          intercept: async (call, apply) => {
            network.calls.push({ ...call, path });
            if (network.isAway) throw UNREACHABLE;
            return apply();
          },
        },
        bucketAt(path),
      );
      store.close = async () => {
        network.open -= 1;
      };
      return store;
    };
    const options: LockOptions = {
      ...{ store: open, clock, random: seededRandom(tasks), taskId: `task-${tasks}` },
      ...{ durationMs: DURATION, graceMs: GRACE, onEvent: (event) => void events.push(event) },
    };
    const lock = (name: string, own: LockOptions = {}) => acquireLock(name, { ...options, ...own });
    return { lock, options, network, events };
  };
  return { clock, task, bucketAt };
}

/** Moves the clock on until the promise has settled. */
async function within<T>(clock: VirtualClock, ms: number, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  promise.finally(() => (isSettled = true)).catch(() => undefined);
  for (let step = 0; step < ms && !isSettled; step += 100) await clock.advance(100);
  if (!isSettled) throw new Error(`not settled within ${ms} ms`);
  return promise;
}

describe('a lock on a store', () => {
  it('has one holder at a time, and a greater token for each', async () => {
    const { task, clock } = lockStore();
    const [a, b] = [task(), task()];
    const first = await a.lock('nightly');
    expect(first).toMatchObject({ name: 'nightly', token: 1n });
    expect([first.isValid(), first.signal.aborted, first.deadline]).toEqual([true, false, DURATION]);
    await expect(b.lock('nightly', { timeoutMs: 0 })).rejects.toMatchObject({
      code: 'WAIT_TIMEOUT',
      message: 'lock nightly did not become free in time',
    });
    await first.release();
    expect([first.isValid(), first.signal.aborted]).toEqual([false, false]);
    const second = await within(clock, 1_000, b.lock('nightly', { timeoutMs: 0 }));
    expect(second.token).toBe(2n);
    await second.release();
  });

  it('excludes no holder of a lock of another name', async () => {
    const { task } = lockStore();
    const held = await Promise.all(
      ['a', 'b', 'A', '-_-', 'a.b'].map((name) => task().lock(name, { timeoutMs: 0 })),
    );
    expect(held.every((lock) => lock.isValid())).toBe(true);
  });

  it('goes to one of five tasks that begin at the same moment on an empty store, and then to the next', async () => {
    const { task, clock } = lockStore();
    const tokens: bigint[] = [];
    let holders = 0;
    const work = async () => {
      await using lock = await task().lock('nightly');
      holders += 1;
      expect(holders).toBe(1);
      await clock.sleep(700);
      tokens.push(lock.token);
      holders -= 1;
    };
    await within(clock, 60_000, Promise.all([work(), work(), work(), work(), work()]));
    expect(tokens).toEqual([1n, 2n, 3n, 4n, 5n]);
  });

  it('is waited for until the timeout, and acquired as soon as it is released', async () => {
    const { task, clock } = lockStore();
    const first = await task().lock('nightly');
    const begun = clock.monotonic();
    await expect(within(clock, 10_000, task().lock('nightly', { timeoutMs: 5_000 }))).rejects.toThrow(
      'did not become free',
    );
    expect(clock.monotonic() - begun).toBeLessThan(5_200);
    const waiting = task().lock('nightly', { timeoutMs: 60_000 });
    await clock.advance(3_000);
    await first.release();
    expect((await within(clock, 1_000, waiting)).token).toBe(2n);
  });

  it('is renewed for as long as it is held', async () => {
    const { task, clock } = lockStore();
    const lock = await task().lock('nightly');
    await clock.advance(10 * DURATION);
    expect(lock.isValid()).toBe(true);
    expect(lock.deadline).toBeGreaterThan(10 * DURATION);
    await expect(task().lock('nightly', { timeoutMs: 0 })).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' });
  });

  it('is lost before its deadline while the store is away, and the error names the lock', async () => {
    const { task, clock } = lockStore();
    const { lock, network } = task();
    const held = await lock('nightly');
    network.isAway = true;
    await clock.advance(DURATION - 1);
    expect(held.signal.reason).toMatchObject({
      name: 'LockLostError',
      code: 'LOCK_LOST',
      lock: 'nightly',
      token: 1n,
      reason: 'unreachable',
    });
    expect(held.signal.reason.message).toMatch(/^lock nightly \(token 1\) is lost: could not be renewed: /);
    expect(held.signal.reason.deadline).toBe(held.deadline);
    expect(held.isValid()).toBe(false);
    await held.release();
  });

  it('is known to be lost at once by a holder that was paused past its deadline', async () => {
    const { task, clock } = lockStore();
    const held = await task().lock('nightly');
    clock.freeze(DURATION);
    expect([held.isValid(), held.signal.aborted]).toEqual([false, false]);
    await clock.advance(0);
    expect(held.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'paused' });
  });

  it('is taken from a dead holder after duration and grace, and not before', async () => {
    const { task, clock } = lockStore();
    const { lock, network } = task();
    await lock('nightly');
    network.isAway = true;
    const next = await within(clock, 60_000, task().lock('nightly'));
    expect(next.token).toBe(2n);
    expect(clock.monotonic()).toBeGreaterThan(DURATION + GRACE);
    expect(clock.monotonic()).toBeLessThan(DURATION + GRACE + 2_000);
  });

  it('can be taken from its holder by an operator, as the node id 0 of the cluster at locks/NAME', async () => {
    const { task, clock, bucketAt } = lockStore();
    const held = await task().lock('nightly');
    const session = new StoreSession(
      new MemoryLeaseStore({ clock }, bucketAt('locks/nightly')),
      clock,
      1_000,
    );
    await evictHolder(session, 0);
    await clock.advance(DURATION / 2);
    expect(held.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'taken', lock: 'nightly' });
  });

  it('is refused on a larger cluster, where two tasks would hold node ids at a time', async () => {
    const { task, clock, bucketAt } = lockStore();
    const held = await task().lock('nightly');
    const store = new MemoryLeaseStore({ clock }, bucketAt('locks/nightly'));
    const cluster = await readCluster(new StoreSession(store, clock, 1_000));
    await store.replace(
      'cluster.json',
      cluster?.body.replace('"size":1', '"size":2') ?? '',
      {},
      cluster?.etag ?? '',
    );
    await expect(within(clock, 5_000, task().lock('nightly'))).rejects.toMatchObject({
      code: 'CLUSTER_FOREIGN',
      message: 'lock nightly cannot be acquired',
      cause: { message: expect.stringContaining('nodelease scale 1') },
    });
    expect(held.isValid()).toBe(true);
  });

  it('is given up waiting for when the signal aborts, which has no effect once it is held, and leaves no listener', async () => {
    const { task, clock } = lockStore();
    const stop = new AbortController();
    const held = await task().lock('nightly', { signal: stop.signal });
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    const waiting = task().lock('nightly', { signal: stop.signal });
    await clock.advance(1_000);
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect([held.isValid(), held.signal.aborted]).toEqual([true, false]);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  });

  it('closes every store that it opened: after the release, and when it could not be acquired', async () => {
    const { task } = lockStore();
    const [a, b] = [task(), task()];
    const held = await a.lock('nightly');
    expect(a.network.open).toBe(1);
    await expect(b.lock('nightly', { timeoutMs: 0 })).rejects.toThrow();
    expect(b.network.open).toBe(0);
    await Promise.all([held.release(), held[Symbol.asyncDispose]()]);
    expect(a.network.open).toBe(0);
  });

  it.each([undefined as never, '', '.', '..', '.a', 'a/b', 'a b', 'ä', 'a\n', 'x.json', 'a'.repeat(201)])(
    'refuses the name %j, and contacts no store',
    async (name) => {
      const { lock, network } = lockStore().task();
      await expect(lock(name)).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting: 'name of the lock' });
      expect(() => electOnStore(name)).toThrow('name of the lock');
      expect(network.open).toBe(0);
    },
  );

  it.each<[string, object]>([
    ['options', { timeout: 1 }],
    ['options', { nodes: 2 }],
    ['timeoutMs', { timeoutMs: -1 }],
    ['timeoutMs', { timeoutMs: Number.NaN }],
    ['timeoutMs', { timeoutMs: '1s' }],
    ['durationMs', { durationMs: 10 }],
    ['keeper', { keeper: 'bogus' }],
    ['store', { store: 'ftp://x' }],
  ])('names the option that is wrong: %s in %j', async (setting, options) => {
    await expect(acquireLock('nightly', options as LockOptions)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      setting,
    });
  });
});

describe('locks on a remote store', () => {
  it('share one probe: the first lock costs hundreds of requests, each further one of another name a few', async () => {
    const { task, clock } = lockStore({ remote: true });
    const first = task();
    await within(clock, 60_000, first.lock('first'));
    expect(first.network.calls.length).toBeGreaterThan(300);
    const further = Array.from({ length: 5 }, () => task());
    await within(clock, 5_000, Promise.all(further.map(({ lock }, number) => lock(`further-${number}`))));
    for (const { network } of further) {
      expect(network.calls.length).toBeLessThan(12);
      expect(network.calls.filter(({ path }) => path === 'locks').map(({ operation }) => operation)).toEqual([
        'read',
      ]);
    }
  });

  it('go to one of several tasks that create the same one at the same moment, without the wait for a probe', async () => {
    const { task, clock } = lockStore({ remote: true });
    await (await within(clock, 60_000, task().lock('first'))).release();
    const begun = clock.monotonic();
    const tries = Array.from({ length: 5 }, () => task().lock('second', { timeoutMs: 0 }));
    const outcomes = await within(clock, 5_000, Promise.allSettled(tries));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(clock.monotonic() - begun).toBeLessThan(600);
  });

  it('are all refused where the store ignores conditions, also by the tasks that come later', async () => {
    const { task, clock } = lockStore({ remote: true });
    const careless = (options: LockOptions): LockOptions => ({
      store: async (path) => {
        const store = await (options.store as (path: string) => MemoryLeaseStore)(path);
        const replace = store.replace.bind(store);
        store.replace = async (key, body, metadata, _etag, call) => {
          const { etag = '' } = (await store.read(key)) ?? {};
          return replace(key, body, metadata, etag, call);
        };
        return store;
      },
    });
    const [a, b] = [task(), task()];
    await expect(within(clock, 60_000, a.lock('a', careless(a.options)))).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
    });
    await expect(within(clock, 60_000, b.lock('b', careless(b.options)))).rejects.toMatchObject({
      cause: { message: expect.stringContaining('as an earlier probe has found') },
    });
  });
});

describe('an election on a store', () => {
  /** Collects the terms; each one continues until it is lost or `endTerm` is called. */
  function standing(options: LockOptions, name = 'leader') {
    const terms: StoreLock[] = [];
    let endTerm = () => {};
    let last: 'break' | undefined;
    const ended = (async () => {
      for await (const term of electOnStore(name, options)) {
        terms.push(term);
        await new Promise<void>((resolve) => {
          endTerm = resolve;
          term.signal.addEventListener('abort', () => resolve());
        });
        if (last === 'break') break;
      }
    })();
    ended.catch(() => undefined);
    return {
      ...{ terms, ended },
      endTerm: () => endTerm(),
      leave: () => {
        last = 'break';
        endTerm();
      },
    };
  }

  it('has one leader at a time, and another one once the term ends', async () => {
    const { task, clock } = lockStore();
    const a = standing(task().options);
    await clock.advance(500);
    const b = standing(task().options);
    await clock.advance(5_000);
    expect([a.terms.length, b.terms.length]).toEqual([1, 0]);
    a.leave();
    await a.ended;
    await clock.advance(1_000);
    expect(b.terms.map(({ token }) => token)).toEqual([2n]);
    b.endTerm();
    await clock.advance(1_000);
    // There is no other candidate: it leads again, with a greater token.
    expect(b.terms.map(({ token }) => token)).toEqual([2n, 3n]);
    expect(b.terms.map((term) => term.isValid())).toEqual([false, true]);
  });

  it('is joined again after a loss, for as long as the store is away, and reports that', async () => {
    const { task, clock } = lockStore();
    const { options, network, events } = task();
    const { terms } = standing(options);
    await clock.advance(500);
    network.isAway = true;
    await clock.advance(120_000);
    expect(terms).toHaveLength(1);
    expect(terms[0]?.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'unreachable' });
    expect(events.some((event) => event.type === 'store-failed' && event.sleepMs >= 5_000)).toBe(true);
    network.isAway = false;
    await clock.advance(30_000);
    expect(terms.map(({ token }) => token)).toEqual([1n, 2n]);
    expect(network.open).toBe(1);
  });

  it('fails at the first term where the store cannot be reached: a wrong address should be known soon', async () => {
    const { task, clock } = lockStore();
    const { options, network } = task();
    network.isAway = true;
    await expect(within(clock, 20_000, standing(options).ended)).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
    });
  });

  it('ends with the signal that aborts during the wait', async () => {
    const { task, clock } = lockStore();
    await task().lock('leader');
    const stop = new AbortController();
    const { ended } = standing({ ...task().options, signal: stop.signal });
    await clock.advance(1_000);
    stop.abort(new Error('enough'));
    await expect(ended).rejects.toThrow('enough');
  });
});
