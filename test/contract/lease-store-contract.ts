import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/base/system.js';
import type { Interval, LeaseStore, StoredObject, WriteResult } from '../../src/store/lease-store.js';

/** What the suite has to know about a driver. */
export interface LeaseStoreContractOptions {
  /** Opens a store that holds no object. Called once a test; the suite closes what it opened. */
  open(): Promise<LeaseStore>;

  /** Opens a second handle on the objects of a store that `open` gave, as another process would. Without it one handle is used twice. */
  reopen?(store: LeaseStore): Promise<LeaseStore>;

  /** How coarse the store's times are, in milliseconds: 1000 for whole seconds. */
  readonly ageResolutionMs: number;
}

const metadata = { taskid: 'task-a', version: '7', expiry: '1795219197534' };
const timeoutMs = 30_000;

/**
 * The promises that every driver keeps, as one suite. It runs in real time, since the clock of a real server cannot be moved.
 *
 * @param name the driver, for the report
 */
export function leaseStoreContract(name: string, options: LeaseStoreContractOptions): void {
  const opened: LeaseStore[] = [];
  const open = async () => {
    const store = await options.open();
    opened.push(store);
    return store;
  };
  const openTwice = async (): Promise<[LeaseStore, LeaseStore]> => {
    const store = await open();
    const other = (await options.reopen?.(store)) ?? store;
    opened.push(other);
    return [store, other];
  };

  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close();
  });

  describe(`${name}: conditional writes`, { timeout: timeoutMs }, () => {
    it('creates an object that is absent', async () => {
      const [store, other] = await openTwice();
      const etag = written(await store.create('0.json', '{"a":1}', metadata));
      expect(await read(other, '0.json')).toMatchObject({ key: '0.json', body: '{"a":1}', metadata, etag });
    });

    it('refuses to create an object that is present, and leaves it untouched', async () => {
      const [store, other] = await openTwice();
      const etag = written(await store.create('0.json', 'first', metadata));
      expect(await other.create('0.json', 'second', {})).toEqual({ status: 'conflict' });
      expect(await read(store, '0.json')).toMatchObject({ body: 'first', metadata, etag });
    });

    it('replaces an object whose etag is the one given', async () => {
      const [store, other] = await openTwice();
      const first = written(await store.create('0.json', 'first', metadata));
      const second = written(await other.replace('0.json', 'second', { version: '8' }, first));
      expect(second).not.toBe(first);
      expect(await read(store, '0.json')).toMatchObject({ body: 'second', metadata: { version: '8' }, etag: second });
    });

    it('refuses a stale etag, and leaves the object untouched', async () => {
      const [store, other] = await openTwice();
      const first = written(await store.create('0.json', 'first', metadata));
      const second = written(await store.replace('0.json', 'second', metadata, first));
      expect(await other.replace('0.json', 'third', {}, first)).toEqual({ status: 'conflict' });
      expect(await read(store, '0.json')).toMatchObject({ body: 'second', metadata, etag: second });
    });

    it('refuses an etag that never was, and leaves the object untouched', async () => {
      const store = await open();
      const etag = written(await store.create('0.json', 'first', metadata));
      expect(await store.replace('0.json', 'second', {}, neverWas(etag))).toEqual({ status: 'conflict' });
      expect(await read(store, '0.json')).toMatchObject({ body: 'first', metadata, etag });
    });

    it('refuses to replace an object that is absent, and does not create it', async () => {
      const store = await open();
      const etag = written(await store.create('0.json', 'first', metadata));
      expect(await store.replace('1.json', 'second', {}, etag)).toEqual({ status: 'conflict' });
      expect(await store.read('1.json')).toBeUndefined();
    });

    it('lets exactly one of ten concurrent creations win', async () => {
      const [store, other] = await openTwice();
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, writer) => (writer % 2 === 0 ? store : other).create('3.json', `writer ${writer}`, {})),
      );
      const winners = results.flatMap((result, writer) => (result.status === 'written' ? [writer] : []));
      expect(winners).toHaveLength(1);
      expect((await read(store, '3.json')).body).toBe(`writer ${winners[0]}`);
    });

    it('lets exactly one of ten concurrent replacements win', async () => {
      const [store, other] = await openTwice();
      const etag = written(await store.create('3.json', '', {}));
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, writer) => (writer % 2 === 0 ? store : other).replace('3.json', `writer ${writer}`, {}, etag)),
      );
      const winners = results.flatMap((result, writer) => (result.status === 'written' ? [writer] : []));
      expect(winners).toHaveLength(1);
      expect((await read(store, '3.json')).body).toBe(`writer ${winners[0]}`);
    });

    it('changes the etag with every write whose body differs', async () => {
      const store = await open();
      const etags = [written(await store.create('0.json', 'body 0', {}))];
      for (let i = 1; i < 6; i++) etags.push(written(await store.replace('0.json', `body ${i}`, {}, etags[i - 1] ?? '')));
      expect(new Set(etags).size).toBe(etags.length);
    });
  });

  describe(`${name}: reading and listing`, { timeout: timeoutMs }, () => {
    it('reads undefined where there is no object, and lists nothing in an empty store', async () => {
      const store = await open();
      expect(await store.read('0.json')).toBeUndefined();
      expect((await store.list()).objects).toEqual([]);
    });

    it.each([
      ['an empty body', ''],
      ['a UTF-8 body', '{"name":"Zoë \u20ac \u{1f511}","line":"a\\nb"}\n'],
      ['white space at both ends', ' \r\n\tx \n\n'],
      ['64 KiB', 'x'.repeat(65_536)],
    ])('gives back %s exactly', async (_, body) => {
      const [store, other] = await openTwice();
      const etag = written(await store.create('cluster.json', body, metadata));
      expect(await read(other, 'cluster.json')).toMatchObject({ body, metadata, etag });
      expect((await other.list()).objects).toMatchObject([{ key: 'cluster.json', size: Buffer.byteLength(body), etag }]);
    });

    it('keeps keys apart', async () => {
      const store = await open();
      const keys = ['0.json', '1.json', '10.json', 'cluster.json', 'probe-ab.json'];
      for (const key of keys) written(await store.create(key, `body of ${key}`, { key }));
      for (const key of keys) expect(await read(store, key)).toMatchObject({ key, body: `body of ${key}`, metadata: { key } });
    });

    it('lists every key once, with its size in bytes and the etag that a read gives', async () => {
      const [store, other] = await openTwice();
      const expected = new Map<string, { size: number; etag: string }>();
      for (let id = 0; id < 27; id++) {
        const body = '\u20ac'.repeat(id);
        expected.set(`${id}.json`, { size: 3 * id, etag: written(await store.create(`${id}.json`, body, {})) });
      }
      const { objects } = await other.list();
      expect(new Map(objects.map(({ key, size, etag }) => [key, { size, etag }]))).toEqual(expected);
      expect(objects).toHaveLength(27);
    });
  });

  describe(`${name}: time`, { timeout: timeoutMs }, () => {
    it('gives an age interval that contains the true age, and grows', async () => {
      const [store, other] = await openTwice();
      const before = systemClock.monotonic();
      written(await store.create('0.json', 'x', {}));
      const after = systemClock.monotonic();

      const look = async (ageOf: () => Promise<Interval | undefined>) => {
        const asked = systemClock.monotonic();
        const age = await ageOf();
        const answered = systemClock.monotonic();
        if (age === undefined) throw new Error('0.json is missing');
        // The holder counts from before its request: more than that would let a contender in too early.
        expect(age.min).toBeLessThanOrEqual(answered - before);
        expect(age.max).toBeGreaterThanOrEqual(asked - after);
        expect(age.min).toBeGreaterThanOrEqual(0);
        expect(age.min).toBeLessThanOrEqual(age.max);
        return age;
      };
      const readAge = async () => (await other.read('0.json'))?.age;
      const listAge = async () => (await other.list()).objects.find(({ key }) => key === '0.json')?.age;

      const youngRead = await look(readAge);
      const youngList = await look(listAge);
      const pauseMs = 2.5 * options.ageResolutionMs + 50;
      await systemClock.sleep(pauseMs);
      const oldRead = await look(readAge);
      const oldList = await look(listAge);
      for (const [young, old] of [
        [youngRead, oldRead],
        [youngList, oldList],
      ] as const) {
        expect(old.min).toBeGreaterThan(young.min);
        expect(old.min).toBeGreaterThanOrEqual(pauseMs - 2 * options.ageResolutionMs);
      }
    });

    it('starts the age again with every write', async () => {
      const store = await open();
      const first = written(await store.create('0.json', 'first', {}));
      await systemClock.sleep(2.5 * options.ageResolutionMs + 50);
      const before = systemClock.monotonic();
      written(await store.replace('0.json', 'second', {}, first));
      const { age } = await read(store, '0.json');
      expect(age.min).toBeLessThanOrEqual(systemClock.monotonic() - before);
    });

    it('tells the time as an interval that is narrow, plausible and does not go back', async () => {
      const store = await open();
      const result = await store.create('0.json', 'x', {});
      if (result.status !== 'written') throw new Error('the first creation must win');
      const times = [result.storeTime, (await read(store, '0.json')).storeTime, (await store.list()).storeTime];
      for (const [index, time] of times.entries()) {
        expect(time.max).toBeGreaterThanOrEqual(time.min);
        expect(time.max - time.min).toBeLessThanOrEqual(options.ageResolutionMs + 1000);
        expect(Math.abs(time.min - systemClock.now())).toBeLessThan(10_000);
        expect(time.max).toBeGreaterThanOrEqual(times[Math.max(0, index - 1)]?.min ?? 0);
      }
    });
  });

  describe(`${name}: changes`, { timeout: timeoutMs }, () => {
    // Offered or not: what holds for a store that tells of none holds for it too.
    it('tells one who waits what has changed, and wakes it for what it wants and for nothing else', async () => {
      const [store, other] = await openTwice();
      const first = written(await other.create('0.json', 'x'.repeat(300), {}));
      if (store.changed === undefined) return expect(store.pollMs).toBeGreaterThan(0);
      const told = new Map<string, number | undefined>();
      const given = new AbortController();
      let woken = false;
      const waiting = store
        .changed(given.signal, ({ key, size }) => {
          told.set(key, size);
          return size !== undefined && size <= 135;
        })
        .then(() => {
          woken = true;
        });
      written(await other.create('1.json', 'y'.repeat(400), {}));
      const second = written(await other.replace('0.json', 'x'.repeat(200), {}, first));
      await vi.waitFor(() => expect(Object.fromEntries(told)).toMatchObject({ '0.json': 200, '1.json': 400 }), { timeout: 5_000 });
      expect(woken).toBe(false);
      written(await other.replace('0.json', 'released', {}, second));
      await waiting;
      expect(told.get('0.json')).toBe(8);
      expect(getEventListeners(given.signal, 'abort')).toHaveLength(0);
    });

    it('wakes one who does not say what it wants at every change, and at none when it is given up', async () => {
      const [store, other] = await openTwice();
      written(await other.create('0.json', 'x', {}));
      if (store.changed === undefined) return;
      const given = new AbortController();
      const waiting = store.changed(given.signal);
      written(await other.create('1.json', 'y'.repeat(400), {}));
      await waiting;
      const again = store.changed(given.signal, () => true);
      given.abort(new Error('enough'));
      await expect(again).rejects.toThrow('enough');
      expect(getEventListeners(given.signal, 'abort')).toHaveLength(0);
    });
  });

  describe(`${name}: giving up`, { timeout: timeoutMs }, () => {
    it('rejects every call whose signal has aborted, and writes nothing', async () => {
      const store = await open();
      const etag = written(await store.create('0.json', 'first', {}));
      written(await store.create('probe-ab.json', 'x', {}));
      const aborted = { signal: AbortSignal.abort(new Error('given up')) };
      await expect(store.read('0.json', aborted)).rejects.toThrow();
      await expect(store.list(aborted)).rejects.toThrow();
      await expect(store.create('1.json', 'x', {}, aborted)).rejects.toThrow();
      await expect(store.replace('0.json', 'second', {}, etag, aborted)).rejects.toThrow();
      await expect(store.discardProbe('probe-ab.json', aborted)).rejects.toThrow();
      expect((await store.list()).objects.map(({ key }) => key).sort()).toEqual(['0.json', 'probe-ab.json']);
      expect(await read(store, '0.json')).toMatchObject({ body: 'first', etag });
    });

    it('discards scratch objects of a probe and nothing else', async () => {
      const store = await open();
      written(await store.create('probe-ab.json', 'x', {}));
      written(await store.create('0.json', 'x', {}));
      await store.discardProbe('probe-ab.json');
      for (const key of ['0.json', 'cluster.json', 'xprobe-ab.json']) await expect(store.discardProbe(key)).rejects.toThrow(key);
      expect(await store.read('probe-ab.json')).toBeUndefined();
      expect((await store.list()).objects.map(({ key }) => key)).toEqual(['0.json']);
    });

    it('can be closed twice', async () => {
      const store = await open();
      written(await store.create('0.json', 'x', {}));
      await store.close();
      await store.close();
    });
  });
}

function written(result: WriteResult): string {
  expect(result.status).toBe('written');
  return result.status === 'written' ? result.etag : '';
}

async function read(store: LeaseStore, key: string): Promise<StoredObject> {
  const object = await store.read(key);
  if (object === undefined) throw new Error(`${key} is missing`);
  return object;
}

/** An etag of the same shape that no object has: servers refuse misshapen ones for another reason. */
function neverWas(etag: string): string {
  const base = /^\d+$/.test(etag) ? 10 : 16;
  return etag.replace(/[0-9a-f]/g, (digit) => ((Number.parseInt(digit, base) + 7) % base).toString(base));
}
