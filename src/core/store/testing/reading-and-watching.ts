import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { systemClock } from '../../base/system.js';
import type { Interval, LeaseStore } from '../lease-store.js';
import { type Checks, createFirst, isThere, METADATA, read, written } from './handles.js';

const BODIES: Readonly<Record<string, string>> = {
  'an empty body': '',
  'a UTF-8 body': '{"name":"Zoë \u20ac \u{1f511}","line":"a\\nb"}\n',
  'white space at both ends': ' \r\n\tx \n\n',
  '64 KiB': 'x'.repeat(65_536),
};

export const READING: Checks = {
  'reads undefined where there is no object, and lists nothing in an empty store': async (store) => {
    strictEqual(await store.read('0.json'), undefined);
    deepStrictEqual((await store.list()).objects, []);
  },

  ...Object.fromEntries(
    Object.entries(BODIES).map(([what, body]) => [
      `gives back ${what} exactly`,
      (store: LeaseStore, other: LeaseStore) => isKept(store, other, body),
    ]),
  ),

  'keeps keys apart': async (store) => {
    const keys = ['0.json', '1.json', '10.json', 'cluster.json', 'probe-ab.json'];
    for (const key of keys) written(await store.create(key, `body of ${key}`, { key }));
    for (const key of keys) await isThere(store, key, { body: `body of ${key}`, metadata: { key } });
  },

  'lists every key once, with its size in bytes and the etag that a read gives': async (store, other) => {
    const expected = new Map<string, { size: number; etag: string }>();
    for (let id = 0; id < 27; id++) {
      const body = '\u20ac'.repeat(id);
      expected.set(`${id}.json`, { size: 3 * id, etag: written(await store.create(`${id}.json`, body, {})) });
    }
    const { objects } = await other.list();
    deepStrictEqual(new Map(objects.map(({ key, size, etag }) => [key, { size, etag }])), expected);
    strictEqual(objects.length, 27);
  },

  'lists the same in parts, in the order of the keys, where it lists in parts': async (store) => {
    if (store.listPage === undefined) return;
    for (let id = 0; id < 27; id++) written(await store.create(`${id}.json`, '', {}));
    const keys: string[] = [];
    for (let more = true; more; ) {
      const page = await store.listPage(keys.at(-1));
      keys.push(...page.objects.map(({ key }) => key));
      more = page.more;
    }
    deepStrictEqual(keys, (await store.list()).objects.map(({ key }) => key).sort());
    strictEqual(keys.length, 27);
  },
};

async function isKept(store: LeaseStore, other: LeaseStore, body: string) {
  const etag = written(await store.create('cluster.json', body, METADATA));
  await isThere(other, 'cluster.json', { body, metadata: METADATA, etag });
  const rows = (await other.list()).objects.map(({ key, size, etag: listed }) => ({
    key,
    size,
    etag: listed,
  }));
  deepStrictEqual(rows, [{ key: 'cluster.json', size: Buffer.byteLength(body), etag }]);
}

/**
 * How far the store's clock may be from this machine's, in milliseconds: no rule rests on it, and a mistake
 * in reading it shows.
 */
const PLAUSIBLE_MS = 10_000;

export const TIMES: Checks = {
  'gives an age interval that contains the true age, and grows': async (store, other, ageResolutionMs) => {
    const before = systemClock.monotonic();
    written(await store.create('0.json', 'x', {}));
    const after = systemClock.monotonic();

    const look = async (ageOf: () => Promise<Interval | undefined>) => {
      const asked = systemClock.monotonic();
      const age = await ageOf();
      const answered = systemClock.monotonic();
      ok(age !== undefined, '0.json is missing');
      // The holder counts from before its request: more than that would let a contender in too early.
      ok(
        age.min <= answered - before,
        `an age of at least ${age.min} ms, ${answered - before} ms after the writing began`,
      );
      ok(age.max >= asked - after, `an age of at most ${age.max} ms, ${asked - after} ms after the writing`);
      ok(age.min >= 0 && age.min <= age.max, `an age from ${age.min} to ${age.max} ms`);
      return age;
    };
    const readAge = async () => (await other.read('0.json'))?.age;
    const listAge = async () => (await other.list()).objects.find(({ key }) => key === '0.json')?.age;

    const young = [await look(readAge), await look(listAge)];
    const pauseMs = 2.5 * ageResolutionMs + 50;
    await systemClock.sleep(pauseMs);
    const old = [await look(readAge), await look(listAge)];
    for (const [index, { min }] of old.entries()) {
      ok(min > (young[index]?.min ?? 0), 'the age does not grow');
      ok(min >= pauseMs - 2 * ageResolutionMs, `an age of at least ${min} ms, seen for ${pauseMs} ms`);
    }
  },

  'starts the age again with every write': async (store, _, ageResolutionMs) => {
    const etag = await createFirst(store);
    await read(store, '0.json');
    await systemClock.sleep(2.5 * ageResolutionMs + 50);
    const before = systemClock.monotonic();
    written(await store.replace('0.json', 'second', {}, etag));
    const { age } = await read(store, '0.json');
    ok(age.min <= systemClock.monotonic() - before, `an age of at least ${age.min} ms right after a write`);
  },

  'gives the time as an interval that is narrow, plausible and does not go back': async (
    store,
    _,
    ageResolutionMs,
  ) => {
    const result = await store.create('0.json', 'x', {});
    ok(result.status === 'written', 'the first creation must win');
    const times = [result.storeTime, (await read(store, '0.json')).storeTime, (await store.list()).storeTime];
    for (const [index, { min, max }] of times.entries()) {
      ok(max >= min && max - min <= ageResolutionMs + 1_000, `a time from ${min} to ${max}`);
      ok(
        Math.abs(min - systemClock.now()) < PLAUSIBLE_MS,
        `a time of ${min}, which is ${systemClock.now()} here`,
      );
      ok(max >= (times[Math.max(0, index - 1)]?.min ?? 0), 'the time goes back');
    }
  },
};

/** How late a store may report a change, in milliseconds. */
const REPORT_TIMEOUT_MS = 20_000;

export const WATCHING_AND_ENDING: Checks = {
  'reports to a waiting task what has changed, and wakes it for what it wants and for nothing else': async (
    store,
    other,
  ) => {
    const first = written(await other.create('0.json', 'x'.repeat(300), {}));
    if (store.changed === undefined) return ok((store.pollMs ?? 1) > 0);
    const reported = new Map<string, number | undefined>();
    const given = new AbortController();
    let woken = false;
    const waiting = store
      .changed(given.signal, ({ key, size }) => {
        reported.set(key, size);
        return size !== undefined && size <= 135;
      })
      .then(() => {
        woken = true;
      });
    written(await other.create('1.json', 'y'.repeat(400), {}));
    const second = written(await other.replace('0.json', 'x'.repeat(200), {}, first));
    const isReported = () => reported.get('0.json') === 200 && reported.get('1.json') === 400;
    for (const end = systemClock.monotonic() + REPORT_TIMEOUT_MS; !isReported(); await systemClock.sleep(10))
      ok(systemClock.monotonic() < end, `reported ${JSON.stringify([...reported])} alone`);
    strictEqual(woken, false);
    written(await other.replace('0.json', 'released', {}, second));
    await waiting;
    strictEqual(reported.get('0.json'), 8);
    strictEqual(getEventListeners(given.signal, 'abort').length, 0, 'a listener is left');
  },

  'wakes a task that does not say what it wants at every change, and at none when it gives up': async (
    store,
    other,
  ) => {
    written(await other.create('0.json', 'x', {}));
    if (store.changed === undefined) return;
    const given = new AbortController();
    const waiting = store.changed(given.signal);
    written(await other.create('1.json', 'y'.repeat(400), {}));
    await waiting;
    const again = store.changed(given.signal, () => true);
    given.abort(new Error('enough'));
    await rejects(again, /enough/);
    strictEqual(getEventListeners(given.signal, 'abort').length, 0, 'a listener is left');
  },

  'rejects every call whose signal has aborted, and writes nothing': async (store) => {
    const etag = await createFirst(store);
    written(await store.create('probe-ab.json', 'x', {}));
    const aborted = { signal: AbortSignal.abort(new Error('given up')) };
    await rejects(store.read('0.json', aborted));
    await rejects(store.list(aborted));
    await rejects(store.create('1.json', 'x', {}, aborted));
    await rejects(store.replace('0.json', 'second', {}, etag, aborted));
    await rejects(store.discardProbe('probe-ab.json', aborted));
    deepStrictEqual((await store.list()).objects.map(({ key }) => key).sort(), ['0.json', 'probe-ab.json']);
    await isThere(store, '0.json', { body: 'first', etag });
  },

  'discards scratch objects of a probe and nothing else': async (store) => {
    await createFirst(store);
    written(await store.create('probe-ab.json', 'x', {}));
    await store.discardProbe('probe-ab.json');
    for (const key of ['0.json', 'cluster.json', 'xprobe-ab.json'])
      await rejects(store.discardProbe(key), (error: Error) => error.message.includes(key));
    strictEqual(await store.read('probe-ab.json'), undefined);
    deepStrictEqual(
      (await store.list()).objects.map(({ key }) => key),
      ['0.json'],
    );
  },

  'reports the same epoch after a write, and to another client, where it reports one': async (
    store,
    other,
  ) => {
    const epoch = await store.epoch?.();
    ok(epoch === undefined || epoch !== '', 'an epoch is a text');
    await createFirst(store);
    strictEqual(await store.epoch?.(), epoch);
    strictEqual(await other.epoch?.(), epoch);
  },

  'can be closed twice': async (store) => {
    await createFirst(store);
    await store.close();
    await store.close();
  },
};
