import { randomBytes } from 'node:crypto';
import { startEtcdProcess } from '../servers/etcd-process.js';
import type { StoreServer } from './store-server.js';

/** An etcd that stands alone. @throws Error when it cannot be installed or started */
export async function startEtcdStoreServer(): Promise<StoreServer> {
  const { endpoint, description, dispose } = await startEtcdProcess();
  return {
    kind: 'etcd',
    description,
    endpoint,
    newPlace: async () => {
      const prefix = `nodelease-test-${randomBytes(6).toString('hex')}/fleet`;
      return (at = endpoint) => ({ url: `etcd://${new URL(at).host}/${prefix}`, env: {} });
    },
    isWrite: (head) => head.startsWith('POST /v3/kv/txn '),
    stop: dispose,
  };
}
