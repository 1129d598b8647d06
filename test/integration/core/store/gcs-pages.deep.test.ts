import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { type StoreServer, startStoreServer } from '../../../support/servers/store-servers.js';

// fake-gcs-server takes its time for a thousand objects.

let server: StoreServer;

beforeAll(async () => {
  server = await startStoreServer('fake-gcs-server');
}, 600_000);

afterAll(() => server?.stop());

it('a store on Cloud Storage lists more objects than fit on one page, and any part of them', async () => {
  const bucket = await server.createBucket();
  const keys = Array.from({ length: 1_010 }, (_, id) => `${id}.json`);
  const put = async (lane: number) => {
    for (const key of keys.filter((_, id) => id % 8 === lane)) await bucket.putRaw(`p/${key}`, 'x');
  };
  await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(put));
  const sorted = [...keys].sort();
  const store = await openStore(`${bucket.url}/p`, {
    clock,
    random,
    endpoint: server.endpoint,
    requestTimeoutMs: 10_000,
  });
  expect((await store.list()).objects.map(({ key }) => key)).toEqual(sorted);
  for (const from of [0, 5, 900]) {
    const page = await store.listPage?.(from === 0 ? undefined : sorted[from - 1]);
    const shown = page?.objects.map(({ key }) => key) ?? [];
    expect(shown).toEqual(sorted.slice(from, from + shown.length));
    expect(page?.more || from + shown.length === sorted.length).toBe(true);
    expect(shown.length).toBeGreaterThan(100);
  }
  await store.close();
});
