import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { LeaseStore } from '../lease-store.js';
import { type Checks, isThere, METADATA, written } from './handles.js';

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

async function isKept(store: LeaseStore, other: LeaseStore, body: string): Promise<void> {
  const etag = written(await store.create('cluster.json', body, METADATA));
  await isThere(other, 'cluster.json', { body, metadata: METADATA, etag });
  const rows = (await other.list()).objects.map(({ key, size, etag: listed }) => ({
    key,
    size,
    etag: listed,
  }));
  deepStrictEqual(rows, [{ key: 'cluster.json', size: Buffer.byteLength(body), etag }]);
}
