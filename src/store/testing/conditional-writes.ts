import { deepStrictEqual, notStrictEqual, strictEqual } from 'node:assert/strict';
import type { WriteResult } from '../lease-store.js';
import { type Checks, isThere, METADATA, neverWas, read, written } from './handles.js';

const CONFLICT: WriteResult = { status: 'conflict' };
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
    const results = await Promise.all(WRITERS.map((writer) => (writer % 2 === 0 ? store : other).create('3.json', `writer ${writer}`, {})));
    strictEqual((await read(store, '3.json')).body, `writer ${onlyWinner(results)}`);
  },

  'lets exactly one of ten concurrent replacements win': async ({ openTwice }) => {
    const [store, other] = await openTwice();
    const etag = written(await store.create('3.json', '', {}));
    const results = await Promise.all(
      WRITERS.map((writer) => (writer % 2 === 0 ? store : other).replace('3.json', `writer ${writer}`, {}, etag)),
    );
    strictEqual((await read(store, '3.json')).body, `writer ${onlyWinner(results)}`);
  },

  'changes the etag with every write whose body differs': async ({ open }) => {
    const store = await open();
    const etags = [written(await store.create('0.json', 'body 0', {}))];
    for (let i = 1; i < 6; i++) etags.push(written(await store.replace('0.json', `body ${i}`, {}, etags[i - 1] ?? '')));
    strictEqual(new Set(etags).size, etags.length);
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

function onlyWinner(results: readonly WriteResult[]): number | undefined {
  const winners = results.flatMap(({ status }, writer) => (status === 'written' ? [writer] : []));
  strictEqual(winners.length, 1, `${winners.length} of ${results.length} concurrent writes were accepted`);
  return winners[0];
}
