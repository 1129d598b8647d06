import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { StoreError } from './lease-store.js';
import { MemoryLeaseStore } from './memory/memory-lease-store.js';
import { probeStore } from './probe/probe.js';
import { type Bounds, bounded } from './store-request.js';

it('takes a driver that throws instead of rejecting for one that failed, and leaves no timer and no listener', async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  const call = bounded({ clock, timeoutMs: 1_000, signal, what: 'reading' }, () => {
    throw new TypeError('a mistake');
  });
  const error = await call.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ outcome: 'unknown', cause: expect.any(TypeError) });
  expect(clock.sleepers).toBe(0);
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it('lets a probe end on a store whose driver never answers', async () => {
  const clock = new VirtualClock();
  const store = new MemoryLeaseStore({ clock, intercept: () => new Promise(() => undefined) });
  const probed = probeStore(store, { clock, random: seededRandom(1) }).catch((reason: unknown) => reason);
  await clock.advance(30_000);
  expect(await Promise.race([probed, 'still waiting'])).toMatchObject({ fault: 'unreachable' });
});

it('names the whole time where a request gets only the rest of it, and what else has not answered', async () => {
  const clock = new VirtualClock();
  const silent = () => new Promise<never>(() => undefined);
  const late = async (more: Partial<Bounds>) => {
    const call = bounded({ clock, timeoutMs: 72.6, what: 'reading', ...more }, silent).catch(String);
    await clock.advance(73);
    return call;
  };
  expect(await late({})).toContain('reading: no answer within 73 ms');
  expect(await late({ wholeMs: 7_500 })).toContain('reading: no answer within the last 73 of 7500 ms');
  expect(await late({ noAnswer: (within) => `no answer from elsewhere ${within}` })).toContain(
    'reading: no answer from elsewhere within 73 ms',
  );
});
