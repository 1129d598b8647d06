import { afterAll, beforeAll, vi } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../src/core/base/system.js';
import { openStore } from '../../src/core/store/open-store.js';
import { type StoreServer, startStoreServer } from '../support/servers/store-servers.js';
import { leaseStoreContract, ofKeys } from './lease-store-contract.js';

let server: StoreServer;

beforeAll(async () => {
  server = await startStoreServer('dynalite');
  for (const [name, value] of Object.entries(server.env)) vi.stubEnv(name, value);
}, 600_000);

afterAll(async () => {
  await server?.stop();
  vi.unstubAllEnvs();
});

const open = (url: string) => openStore(url, { clock, random, requestTimeoutMs: 10_000 });
const suite = (name: string, prefix: string, isMeant?: typeof ofKeys) =>
  leaseStoreContract(
    name,
    {
      open: async () => open(`${(await server.createBucket()).url}/${prefix}`),
      reopen: (store) => open(store.url),
      ageResolutionMs: 1,
    },
    isMeant,
  );

suite('DynamoDbLeaseStore', 'some/prefix');
suite('DynamoDbLeaseStore of a lock', 'some/prefix/locks/nightly', ofKeys);
