import { beforeEach, describe, expect, it } from 'vitest';
import { inPages } from '../../../test/support/in-pages.js';
import { timeless } from '../../../test/support/timeless-store.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { Clock } from '../base/clock.js';
import type { Interval, LeaseStore, ListedObject, WriteResult } from './lease-store.js';
import { MemoryLeaseStore } from './memory/memory-lease-store.js';
import { observedAge } from './observed-age.js';

const SEED = 20;

let clock: VirtualClock;
let memory: MemoryLeaseStore;
let store: LeaseStore;

beforeEach(() => {
  clock = new VirtualClock();
  memory = new MemoryLeaseStore({ clock });
  store = observedAge(timeless(memory), clock);
});

const etagOf = (result: WriteResult) => (result.status === 'written' ? result.etag : 'not written');
const ageOf = async (key: string) => (await store.read(key))?.age;
const listedAges = async () => (await store.list()).objects.map(({ age }) => age.min);

describe('the age of an object on a store without times of writing', () => {
  it('is at least the time for which this process has seen the object unchanged', async () => {
    await memory.create('0.json', 'x', {});
    await clock.advance(5_000);
    expect(await ageOf('0.json')).toEqual({ min: 0, max: Number.POSITIVE_INFINITY });
    await clock.advance(3_000);
    expect(await ageOf('0.json')).toEqual({ min: 3_000, max: Number.POSITIVE_INFINITY });
    expect(await listedAges()).toEqual([3_000]);
  });

  it('begins with the first listing, for every object at once', async () => {
    await memory.create('0.json', 'x', {});
    await memory.create('1.json', 'y', {});
    expect(await listedAges()).toEqual([0, 0]);
    await clock.advance(3_000);
    expect((await ageOf('1.json'))?.min).toBe(3_000);
  });

  it('starts again with each write', async () => {
    const etag = etagOf(await memory.create('0.json', 'x', {}));
    await ageOf('0.json');
    await clock.advance(3_000);
    await memory.replace('0.json', 'y', {}, etag);
    expect((await ageOf('0.json'))?.min).toBe(0);
  });

  it('starts again where the object was gone meanwhile', async () => {
    for (const look of [() => store.read('probe-a'), () => store.list()]) {
      await memory.create('probe-a', 'x', {});
      await ageOf('probe-a');
      await clock.advance(3_000);
      await memory.discardProbe('probe-a');
      await look();
      await memory.create('probe-a', 'x', {});
      expect((await ageOf('probe-a'))?.min).toBe(0);
    }
  });

  it('is forgotten for an object that its page does not show any more, and for no other', async () => {
    store = observedAge(inPages(timeless(memory), 2), clock);
    for (const key of ['0.json', '1.json', 'probe-a', 'probe-b']) await memory.create(key, key, {});
    await store.listPage?.(undefined);
    await store.listPage?.('1.json');
    await clock.advance(3_000);
    await memory.discardProbe('probe-a');
    const last = await store.listPage?.('1.json');
    expect(last?.objects).toMatchObject([{ key: 'probe-b', age: { min: 3_000 } }]);
    await memory.create('probe-a', 'probe-a', {});
    expect(await listedAges()).toEqual([3_000, 3_000, 0, 3_000]);
  });

  it('is the one that the store itself knows, where that is more', async () => {
    const inner = timeless(memory);
    const reported = { min: 16_001, max: Number.POSITIVE_INFINITY };
    const read: LeaseStore['read'] = async (key) => ({
      ...((await memory.read(key)) ?? expect.fail()),
      age: reported,
    });
    store = observedAge({ ...inner, read }, clock);
    await memory.create('0.json', 'x', {});
    expect(await ageOf('0.json')).toEqual(reported);
  });

  it('grows less on a clock that stops while the machine is suspended', async () => {
    let stoppedMs = 0;
    const stopping: Clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() - stoppedMs,
      sleep: (ms) => clock.sleep(ms),
    };
    store = observedAge(timeless(memory), stopping);
    await memory.create('0.json', 'x', {});
    await ageOf('0.json');
    await clock.advance(10_000);
    stoppedMs = 8_000;
    expect((await ageOf('0.json'))?.min).toBe(2_000);
  });

  it('never exceeds the true one, in whatever order requests and replies are delayed', async () => {
    const random = seededRandom(SEED);
    const delay = () => clock.sleep(random.next() < 0.3 ? random.next() * 8_000 : random.next() * 50);
    memory = new MemoryLeaseStore({ clock, resolutionMs: 0 });
    const slow = memory.connect(async (_, apply) => {
      await delay();
      const reply = apply();
      await delay();
      return reply;
    });
    store = observedAge(timeless(slow), clock);
    const writtenAt = new Map<string, number>();
    let shown = 0;
    let grown = 0;
    const check = ({ etag, age }: ListedObject, { max: madeAt }: Interval) => {
      const trueAge = madeAt - clock.wallOffset - (writtenAt.get(etag) ?? expect.fail());
      expect(age.min).toBeLessThanOrEqual(trueAge);
      shown += 1;
      if (age.min > 1_000) grown += 1;
    };
    const read = async () => {
      const object = (await store.read('0.json')) ?? expect.fail();
      check({ ...object, size: object.body.length }, object.storeTime);
    };
    const list = async () => {
      const { objects, storeTime } = await store.list();
      for (const row of objects) check(row, storeTime);
    };
    let etag = etagOf(await memory.create('0.json', 'x', {}));
    writtenAt.set(etag, clock.monotonic());
    for (let step = 0; step < 2_000; step += 1) {
      if (random.next() < 0.05) {
        etag = etagOf(await memory.replace('0.json', `body ${step}`, {}, etag));
        writtenAt.set(etag, clock.monotonic());
      }
      void (random.next() < 0.5 ? read() : list());
      await clock.advance(random.next() * 400);
    }
    await clock.advance(20_000);
    expect(shown).toBe(2_000);
    expect(grown).toBeGreaterThan(200);
  });
});

describe('a store with observed ages', () => {
  it('writes, watches, removes and closes as the store below it does', async () => {
    const given = new AbortController();
    const changes: unknown[] = [];
    const watch = store.changed?.(given.signal, (change) => changes.push(change) === 2);
    const etag = etagOf(await store.create('probe-a', 'x', { version: '1' }));
    await store.replace('probe-a', 'xy', {}, etag);
    await watch;
    expect(changes).toEqual([
      { key: 'probe-a', size: 1 },
      { key: 'probe-a', size: 2 },
    ]);
    await store.discardProbe('probe-a');
    expect(await memory.read('probe-a')).toBeUndefined();
    await store.close();
  });

  it('says how often an object may be written where the store below it does', () => {
    const slow = Object.assign(timeless(memory), { minWriteIntervalMs: 1_000 });
    expect(observedAge(slow, clock).minWriteIntervalMs).toBe(1_000);
    expect(store).not.toHaveProperty('minWriteIntervalMs');
  });

  it('tells an epoch where the store below it does', async () => {
    const told = observedAge(Object.assign(timeless(memory), { epoch: async () => 'first' }), clock);
    expect([await told.epoch?.(), store.epoch]).toEqual(['first', undefined]);
  });

  it('lists in parts, and watches, only where the store below it does', () => {
    const { listPage, changed } = observedAge(inPages(timeless(memory), 2), clock);
    expect([listPage, changed]).toEqual([expect.any(Function), expect.any(Function)]);
    const { changed: _, ...unwatched } = timeless(memory);
    const keys = Object.keys(observedAge(unwatched, clock));
    expect([keys.includes('listPage'), keys.includes('changed')]).toEqual([false, false]);
  });
});
