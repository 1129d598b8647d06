import { deepStrictEqual, notStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { systemClock } from '../../base/system.js';
import { type LeaseStore, StoreError, type WriteResult } from '../lease-store.js';
import { type Checks, isThere, METADATA, neverWas, read, written } from './handles.js';

const CONFLICT: WriteResult = { status: 'conflict' };
/** A number this close to this machine's time, in milliseconds, is a time. */
const CLOSE_MS = 60_000;
const WRITERS = Array.from({ length: 10 }, (_, writer) => writer);

export const CONDITIONAL_WRITES: Checks = {
  'creates an object that is absent': async ({ openTwice }) => {
    const [store, other] = await openTwice();
    const etag = written(await store.create('0.json', '{"a":1}', METADATA));
    await isThere(other, '0.json', { body: '{"a":1}', metadata: METADATA, etag });
  },

  'refuses to create an object that is present, and leaves it untouched': async ({ openTwice }) => {
    const [store, other] = await openTwice();
    const etag = written(await store.create('0.json', 'first', METADATA));
    deepStrictEqual(await other.create('0.json', 'second', {}), CONFLICT);
    await isThere(store, '0.json', { body: 'first', metadata: METADATA, etag });
  },

  'replaces an object whose etag is the one given': async ({ openTwice }) => {
    const [store, other] = await openTwice();
    const first = written(await store.create('0.json', 'first', METADATA));
    const second = written(await other.replace('0.json', 'second', { version: '8' }, first));
    notStrictEqual(second, first);
    await isThere(store, '0.json', { body: 'second', metadata: { version: '8' }, etag: second });
  },

  'refuses a stale etag, and leaves the object untouched': async ({ openTwice }) => {
    const [store, other] = await openTwice();
    const first = written(await store.create('0.json', 'first', METADATA));
    const second = written(await store.replace('0.json', 'second', METADATA, first));
    deepStrictEqual(await other.replace('0.json', 'third', {}, first), CONFLICT);
    await isThere(store, '0.json', { body: 'second', metadata: METADATA, etag: second });
  },

  'refuses an etag that never was, and leaves the object untouched': async ({ open }) => {
    const store = await open();
    const etag = written(await store.create('0.json', 'first', METADATA));
    deepStrictEqual(await store.replace('0.json', 'second', {}, neverWas(etag)), CONFLICT);
    await isThere(store, '0.json', { body: 'first', metadata: METADATA, etag });
  },

  'refuses to replace an object that is absent, and does not create it': async ({ open }) => {
    const store = await open();
    const etag = written(await store.create('0.json', 'first', METADATA));
    deepStrictEqual(await store.replace('1.json', 'second', {}, etag), CONFLICT);
    strictEqual(await store.read('1.json'), undefined);
  },

  'lets exactly one of ten concurrent creations win': async ({ openTwice }) => {
    const [store, other] = await openTwice();
    await onlyOneWins(store, (writer, body) => (writer % 2 === 0 ? store : other).create('3.json', body, {}));
  },

  'lets exactly one of ten concurrent replacements win': async ({ openTwice }) => {
    const [store, other] = await openTwice();
    const etag = written(await store.create('3.json', '', {}));
    await onlyOneWins(store, (writer, body) =>
      (writer % 2 === 0 ? store : other).replace('3.json', body, {}, etag),
    );
  },

  'changes the etag with every write whose body differs': async ({ open }) => {
    const store = await open();
    const etags = [written(await store.create('0.json', 'body 0', {}))];
    for (let i = 1; i < 6; i++)
      etags.push(written(await store.replace('0.json', `body ${i}`, {}, etags[i - 1] ?? '')));
    strictEqual(new Set(etags).size, etags.length);
  },

  'makes no etag of the time in milliseconds, which two writes may share': async ({ open }) => {
    const store = await open();
    const before = systemClock.now();
    const etag = written(await store.create('0.json', 'x', {}));
    const times = (etag.match(/\d+/g) ?? []).filter(
      (digits) => digits.length === 13 && Math.abs(Number(digits) - before) < CLOSE_MS,
    );
    deepStrictEqual(times, [], `the etag ${etag} is the time of the write`);
  },

  'gives a content that comes back another etag, where it tells no time of writing': async ({ open }) => {
    const store = await open();
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
 * What a writer knows of its write of `3.json`: `unknown` where its connection was lost, as at any time it
 * may be.
 */
type Outcome = WriteResult['status'] | 'unknown';

async function onlyOneWins(
  store: LeaseStore,
  write: (writer: number, body: string) => Promise<WriteResult>,
): Promise<void> {
  const outcomes = await Promise.all(WRITERS.map((writer) => outcomeOf(write(writer, `writer ${writer}`))));
  const { body } = await read(store, '3.json');
  const told = outcomes.map((outcome, writer) => `writer ${writer}: ${outcome}`).join(', ');
  const winner = WRITERS.find((writer) => body === `writer ${writer}`);
  ok(winner !== undefined, `no concurrent write was kept: ${told}`);
  for (const [writer, outcome] of outcomes.entries()) {
    ok(
      outcome === 'unknown' || (writer === winner) === (outcome === 'written'),
      `"${body}" was kept, though ${told}`,
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
