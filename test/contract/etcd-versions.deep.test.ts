import { afterAll, beforeAll, describe } from 'vitest';
import { newEtcdStore } from '../support/etcd.js';
import { type EtcdProcess, startEtcdProcess } from '../support/servers/etcd-process.js';
import { etcdContract } from './etcd-contract.js';

// The versions that the quick tests do not use.

describe.each(['debian', '3.6'] as const)('etcd of version %s', (version) => {
  let server: EtcdProcess;
  beforeAll(async () => {
    server = await startEtcdProcess({ version });

    // One of them is built, which takes minutes.
  }, 900_000);
  afterAll(() => server.dispose());

  etcdContract(`EtcdLeaseStore on ${version}`, () => newEtcdStore(server));
});
