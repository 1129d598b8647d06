import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { systemClock, systemRandom } from '../../src/core/base/system.js';
import { FileLeaseStore } from '../../src/core/store/file/file-lease-store.js';
import { leaseStoreContract } from './lease-store-contract.js';

const folders: string[] = [];

afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

const openFolder = (directory: string) =>
  new FileLeaseStore({ directory, clock: systemClock, random: systemRandom });

leaseStoreContract('file', {
  open: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'nodelease-contract-'));
    folders.push(folder);
    // Two folders deep, so that the first write has to make them.
    return openFolder(join(folder, 'stores', 'leases'));
  },
  reopen: async (store) => openFolder(store.url.slice('file:'.length)),
  ageResolutionMs: 20,
});
