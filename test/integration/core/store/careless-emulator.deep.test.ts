import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { StoreError } from '../../../../src/core/store/lease-store.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { probeStore } from '../../../../src/core/store/probe/probe.js';
import { type StoreServer, startStoreServer } from '../../../support/servers/store-servers.js';

const base = { clock, random, requestTimeoutMs: 10_000 };
let server: StoreServer;

beforeAll(async () => {
  server = await startStoreServer('gcp-storage-emulator');
}, 600_000);

afterAll(() => server?.stop());

it('an emulator of Cloud Storage that ignores conditions is refused by the probe', async () => {
  const store = await openStore((await server.createBucket()).url, { ...base, endpoint: server.endpoint });
  expect((await store.create('0.json', 'first', {})).status).toBe('written');
  expect((await store.create('0.json', 'second', {})).status).toBe('written');
  const refusal = await probeStore(store, { ...base, watchAgeMs: 0 }).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StoreError);
  expect(refusal).toMatchObject({
    fault: 'rejected',
    message: expect.stringContaining('is this Cloud Storage?'),
  });
  await store.close();
});
