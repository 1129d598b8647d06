import { deepStrictEqual, notStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { systemClock } from '../../base/system.js';
import { type LeaseStore, StoreError, type WriteResult } from '../lease-store.js';
import { otherEtag } from '../probe/probe-conditions.js';
import { type Checks, createFirst, isThere, METADATA, read, written } from './handles.js';

const CONFLICT: WriteResult = { status: 'conflict' };
/** A number this close to this machine's time, in milliseconds, is a time. */
const CLOSE_MS = 60_000;
const WRITERS = Array.from({ length: 10 }, (_, writer) => writer);

export const CONDITIONAL_WRITES: Checks = {
  'creates an object that is absent': async (store, other) => {
    const etag = written(await store.create('0.json', '{"a":1}', METADATA));
    await isThere(other, '0.json', { body: '{"a":1}', metadata: METADATA, etag });
  },

  'refuses to create an object that is present, and leaves it untouched': async (store, other) => {
    const etag = await createFirst(store);
    deepStrictEqual(await other.create('0.json', 'second', {}), CONFLICT);
    await isThere(store, '0.json', { body: 'first', metadata: METADATA, etag });
  },

  'replaces an object whose etag is the one given': async (store, other) => {
    const etag = await createFirst(store);
    const second = written(await other.replace('0.json', 'second', { version: '8' }, etag));
    notStrictEqual(second, etag);
    await isThere(store, '0.json', { body: 'second', metadata: { version: '8' }, etag: second });
  },

  'refuses a stale etag, and leaves the object untouched': async (store, other) => {
    const etag = await createFirst(store);
    const second = written(await store.replace('0.json', 'second', METADATA, etag));
    deepStrictEqual(await other.replace('0.json', 'third', {}, etag), CONFLICT);
    await isThere(store, '0.json', { body: 'second', metadata: METADATA, etag: second });
  },

  'refuses an etag that never was, and leaves the object untouched': async (store) => {
    const etag = await createFirst(store);
    deepStrictEqual(await store.replace('0.json', 'second', {}, otherEtag(etag)), CONFLICT);
    await isThere(store, '0.json', { body: 'first', metadata: METADATA, etag });
  },

  'refuses to replace an object that is absent, and does not create it': async (store) => {
    const etag = await createFirst(store);
    deepStrictEqual(await store.replace('1.json', 'second', {}, etag), CONFLICT);
    strictEqual(await store.read('1.json'), undefined);
  },

  'lets exactly one of ten concurrent creations win': async (store, other) => {
    await onlyOneWins(store, other, (handle, body) => handle.create('3.json', body, {}));
  },

  'lets exactly one of ten concurrent replacements win': async (store, other) => {
    const etag = written(await store.create('3.json', '', {}));
    await onlyOneWins(store, other, (handle, body) => handle.replace('3.json', body, {}, etag));
  },

  'changes the etag with every write whose body differs': async (store) => {
    const etags = [written(await store.create('0.json', 'body 0', {}))];
    for (let i = 1; i < 6; i++)
      etags.push(written(await store.replace('0.json', `body ${i}`, {}, etags[i - 1] ?? '')));
    strictEqual(new Set(etags).size, etags.length);
  },

  'makes no etag of the time in milliseconds, which two writes may share': async (store) => {
    const before = systemClock.now();
    const etag = written(await store.create('0.json', 'x', {}));
    const times = (etag.match(/\d+/g) ?? []).filter(
      (digits) => digits.length === 13 && Math.abs(Number(digits) - before) < CLOSE_MS,
    );
    deepStrictEqual(times, [], `the etag ${etag} is the time of the write`);
  },

  'gives a content that comes back another etag, where it reports no write time': async (store) => {
    const etags = [written(await store.create('probe-ab.json', 'once', {}))];
    if (Number.isFinite((await read(store, 'probe-ab.json')).age.max)) return;
    etags.push(written(await store.replace('probe-ab.json', 'twice', {}, etags[0] ?? '')));
    etags.push(written(await store.replace('probe-ab.json', 'once', {}, etags[1] ?? '')));
    await store.discardProbe('probe-ab.json');
    etags.push(written(await store.create('probe-ab.json', 'once', {})));
    strictEqual(new Set(etags).size, etags.length);
  },
};

/**
 * What a writer knows of its write of `3.json`: `unknown` if its connection was lost, as may happen at any
 * time.
 */
type Outcome = WriteResult['status'] | 'unknown';

async function onlyOneWins(
  store: LeaseStore,
  other: LeaseStore,
  write: (handle: LeaseStore, body: string) => Promise<WriteResult>,
) {
  const outcomes = await Promise.all(
    WRITERS.map((writer) => outcomeOf(write(writer % 2 === 0 ? store : other, `writer ${writer}`))),
  );
  const { body } = await read(store, '3.json');
  const said = outcomes.map((outcome, writer) => `writer ${writer}: ${outcome}`).join(', ');
  const winner = WRITERS.find((writer) => body === `writer ${writer}`);
  ok(winner !== undefined, `no concurrent write was kept: ${said}`);
  for (const [writer, outcome] of outcomes.entries()) {
    ok(
      outcome === 'unknown' || (writer === winner) === (outcome === 'written'),
      `"${body}" was kept, though ${said}`,
    );
  }
}

async function outcomeOf(write: Promise<WriteResult>): Promise<Outcome> {
  try {
    return (await write).status;
  } catch (error) {
    if (error instanceof StoreError && error.outcome === 'unknown') return 'unknown';
    throw error;
  }
}
