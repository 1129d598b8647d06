import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { ZooKeeperError } from '../../../zookeeper/client/zookeeper-error.js';
import type { ServiceInstance } from '../../../zookeeper/services/instance/service-instance.js';
import { type PooledProvider, ProviderPool, type ProviderPoolOptions } from './provider-pool.js';

const INSTANCE = { name: 'orders', id: '1', enabled: true } as ServiceInstance;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** In bytes, of what is still needed. */
function usedMemory(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

class FakeProvider implements PooledProvider {
  stale: { since: number } | undefined;
  closed = false;
  becomeReady: () => void = () => undefined;
  readonly ready = new Promise<void>((resolve) => {
    this.becomeReady = resolve;
  });

  constructor(readonly instances: readonly ServiceInstance[] = [INSTANCE]) {}

  pick() {
    return this.instances[0];
  }

  close() {
    this.closed = true;
  }
}

function setUp(
  options: {
    readonly most?: number;
    readonly ready?: boolean;
    readonly exists?: ProviderPoolOptions['exists'];
  } = {},
) {
  const clock = new VirtualClock();
  const opened: { name: string; provider: FakeProvider }[] = [];
  const open = (name: string) => {
    const provider = new FakeProvider(name.startsWith('absent') ? [] : [INSTANCE]);
    if (options.ready !== false) provider.becomeReady();
    opened.push({ name, provider });
    return provider;
  };
  const pool = new ProviderPool({
    open,
    exists: options.exists,
    clock,
    most: options.most,
    idleMs: 60_000,
    readyWithinMs: 2_000,
  });
  const followed = () => opened.filter(({ provider }) => !provider.closed).map(({ name }) => name);
  return { clock, pool, opened, followed };
}

describe('the requested services', () => {
  it('are followed from the first question on, once each', async () => {
    const { pool, opened } = setUp();
    expect(await pool.any('orders')).toEqual({ status: 'picked', instance: INSTANCE, staleMs: undefined });
    await pool.any('orders');
    await pool.any('billing');
    expect(opened.map(({ name }) => name)).toEqual(['orders', 'billing']);
    pool.close();
  });

  it('are waited for until they have been read, and no longer than they may take', async () => {
    const { clock, pool, opened } = setUp({ ready: false });
    const late = pool.any('orders');
    await clock.advance(2_000);
    expect(await late).toEqual({ status: 'unknown' });
    const inTime = pool.any('orders');
    await clock.advance(1_999);
    opened[0]?.provider.becomeReady();
    expect(await inTime).toMatchObject({ status: 'picked' });
    // One sleeps: the search for services that no client asks for any more.
    await settled();
    expect(clock.sleepers).toBe(1);
    expect(opened).toHaveLength(1);
    pool.close();
    await settled();
    expect(clock.sleepers).toBe(0);
  });

  it('are not waited for by a client that has gone', async () => {
    const { clock, pool } = setUp({ ready: false });
    const gone = new AbortController();
    const answer = pool.any('orders', gone.signal);
    gone.abort(new Error('hung up'));
    await expect(answer).rejects.toThrow('hung up');
    pool.close();
    await settled();
    expect(clock.sleepers).toBe(0);
  });

  it('cost no memory for each question while they cannot be read', async () => {
    const { clock, pool } = setUp({ ready: false });
    const ask = async () => {
      const gone = new AbortController();
      const answers = Array.from({ length: 1_000 }, () => pool.any('orders', gone.signal));
      await clock.advance(2_000);
      await Promise.all(answers);
      expect(getEventListeners(gone.signal, 'abort')).toEqual([]);
    };
    await ask();
    const before = usedMemory();
    for (let i = 0; i < 5; i += 1) await ask();
    expect((usedMemory() - before) / 5_000).toBeLessThan(250);
    pool.close();
  });

  it('are followed only where they exist, and the followed ones are not looked for', async () => {
    const looked: [string, unknown][] = [];
    const signal = new AbortController().signal;
    const exists = async (name: string, call: unknown) => looked.push([name, call]) > 0 && name === 'orders';
    const { pool, followed } = setUp({ exists });
    expect(await pool.any('unknown', signal)).toEqual({ status: 'none', staleMs: undefined });
    for (let i = 0; i < 3; i += 1) expect(await pool.any('orders')).toMatchObject({ status: 'picked' });
    expect(followed()).toEqual(['orders']);
    expect(looked).toEqual([
      ['unknown', { timeoutMs: 2_000, signal }],
      ['orders', { timeoutMs: 2_000, signal: undefined }],
    ]);
    pool.close();
    expect(await pool.any('billing')).toEqual({ status: 'unknown' });
    expect(looked).toHaveLength(2);
  });

  it('are followed once by all who ask for them at one time, and not at all after the end', async () => {
    const { pool, opened } = setUp({ exists: async () => true });
    await Promise.all([pool.any('orders'), pool.any('orders')]);
    expect(opened).toHaveLength(1);
    const late = pool.any('billing');
    pool.close();
    expect(await late).toEqual({ status: 'unknown' });
    expect(opened).toHaveLength(1);
  });

  it('are unknown while ZooKeeper cannot be asked whether they exist', async () => {
    let failure: Error = new ZooKeeperError('away', 'timeout', 'not-applied');
    const { pool, followed } = setUp({ exists: () => Promise.reject(failure) });
    expect(await pool.any('orders')).toEqual({ status: 'unknown' });
    await expect(pool.any('orders', AbortSignal.abort(new Error('hung up')))).rejects.toThrow('hung up');
    failure = new TypeError('a bug');
    await expect(pool.any('orders')).rejects.toThrow(TypeError);
    expect(followed()).toEqual([]);
    pool.close();
  });

  it('are answered from what was seen last while ZooKeeper is away, with its age', async () => {
    const { clock, pool, opened } = setUp();
    await pool.any('orders');
    await clock.advance(1_000);
    if (opened[0]) opened[0].provider.stale = { since: clock.monotonic() };
    await clock.advance(3_500);
    expect(await pool.any('orders')).toEqual({ status: 'picked', instance: INSTANCE, staleMs: 3_500 });
    pool.close();
  });

  it('are let go when no client has asked for them for a while, with all that they started', async () => {
    const { clock, pool, followed } = setUp();
    await pool.any('orders');
    await pool.any('billing');
    await clock.advance(40_000);
    await pool.any('orders');
    await clock.advance(40_000);
    expect(followed()).toEqual(['orders']);
    await clock.advance(40_000);
    expect(followed()).toEqual([]);
    expect(pool.size).toBe(0);
    expect(clock.sleepers).toBe(0);
    await pool.any('orders');
    await clock.advance(60_000);
    expect(followed()).toEqual([]);
  });

  it('are bounded in number: the one that was asked for the longest time ago goes', async () => {
    const { pool, followed } = setUp({ most: 3 });
    for (const name of ['a', 'b', 'c', 'a', 'd']) await pool.any(name);
    expect(followed()).toEqual(['a', 'c', 'd']);
    pool.close();
  });

  it('are not pushed out by names that do not exist', async () => {
    const { pool, followed } = setUp({ most: 3 });
    for (const name of ['a', 'b']) await pool.any(name);
    for (let i = 0; i < 20; i += 1)
      expect(await pool.any(`absent-${i}`)).toEqual({ status: 'none', staleMs: undefined });
    expect(followed()).toEqual(['a', 'b', 'absent-19']);
    pool.close();
  });

  it('are all let go at the end, and no client waits any longer', async () => {
    const { clock, pool, followed } = setUp({ ready: false });
    const answer = pool.any('orders');
    pool.close();
    pool.close();
    expect(await answer).toEqual({ status: 'unknown' });
    expect(await pool.any('billing')).toEqual({ status: 'unknown' });
    await settled();
    expect({ followed: followed(), sleepers: clock.sleepers }).toEqual({ followed: [], sleepers: 0 });
  });
});
