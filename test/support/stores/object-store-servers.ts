import { type StoreServerName, startStoreServer } from '../servers/store-servers.js';
import type { ServerKind, StoreServer } from './store-server.js';

/** Each with its server, and the requests that write. */
const SERVERS = {
  azblob: {
    name: 'azurite',
    isWrite: (head, key) => head.startsWith('PUT ') && head.includes(`/${key}`),
  },
  gs: { name: 'fake-gcs-server', isWrite: (head) => head.startsWith('POST /upload/') },
  dynamodb: { name: 'dynalite', isWrite: (head) => /^x-amz-target: \w+\.PutItem\r?$/im.test(head) },
} as const satisfies Partial<
  Record<ServerKind, { readonly name: StoreServerName } & Pick<StoreServer, 'isWrite'>>
>;

/**
 * A server that stands in for a cloud's: Azurite, an emulator of Cloud Storage, dynalite.
 * @throws Error when it cannot be installed or started
 */
export async function startObjectStoreServer(kind: keyof typeof SERVERS): Promise<StoreServer> {
  const { name, isWrite } = SERVERS[kind];
  const { endpoint, env, createBucket, stop } = await startStoreServer(name);
  return {
    kind,
    description: `${name} at ${endpoint}`,
    endpoint,
    newPlace: async () => {
      const { url } = await createBucket();
      return (at = endpoint) => ({ url: `${url}/fleet`, endpoint: at, env });
    },
    isWrite,
    stop,
  };
}
