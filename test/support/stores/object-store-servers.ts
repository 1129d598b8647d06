import { type StoreServerName, startStoreServer } from '../servers/store-servers.js';
import type { StoreServer } from './store-server.js';

/** Azurite, or an emulator of Cloud Storage. @throws Error when it cannot be installed or started */
export async function startObjectStoreServer(kind: 'azblob' | 'gs'): Promise<StoreServer> {
  const name: StoreServerName = kind === 'azblob' ? 'azurite' : 'fake-gcs-server';
  const { endpoint, env, createBucket, stop } = await startStoreServer(name);
  return {
    kind,
    description: `${name} at ${endpoint}`,
    endpoint,
    newPlace: async () => {
      const { url } = await createBucket();
      return (at = endpoint) => ({ url: `${url}/fleet`, endpoint: at, env });
    },
    isWrite: (head, key) =>
      kind === 'azblob'
        ? head.startsWith('PUT ') && head.includes(`/${key}`)
        : head.startsWith('POST /upload/'),
    stop,
  };
}
