import { ok } from 'node:assert/strict';
import { systemClock } from '../../base/system.js';
import type { Interval } from '../lease-store.js';
import { type Checks, createFirst, read, written } from './handles.js';

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
