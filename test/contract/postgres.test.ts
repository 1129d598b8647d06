import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../src/core/base/system.js';
import { openStore } from '../../src/core/store/open-store.js';
import { type PostgresProcess, startPostgresProcess } from '../support/servers/postgres-process.js';
import { leaseStoreContract } from './lease-store-contract.js';

let server: PostgresProcess;

beforeAll(async () => {
  server = await startPostgresProcess();
}, 600_000);

afterAll(() => server?.dispose());

const open = (url: string) => openStore(url, { clock, random, requestTimeoutMs: 10_000 });

leaseStoreContract('PostgresLeaseStore', {
  open: () => open(`postgres://nodelease@${server.address}/nodelease/${randomUUID()}/fleet`),
  reopen: (store) => open(store.url),
  ageResolutionMs: 0,
});
