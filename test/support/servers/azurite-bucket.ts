import { ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import type { StoreBucket } from './store-servers.js';

/**
 * The account and its key that every Azurite has:
 * https://learn.microsoft.com/azure/storage/common/storage-use-azurite
 */
const ACCOUNT = 'devstoreaccount1';
export const DEVELOPMENT_KEY =
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

/** Creates a container on Azurite. */
export async function azuriteBucket(endpoint: string, name: string): Promise<StoreBucket> {
  const credential = new StorageSharedKeyCredential(ACCOUNT, DEVELOPMENT_KEY);
  const client = new ContainerClient(`${endpoint}/${ACCOUNT}/${name}`, credential);
  await client.create();
  return {
    name,
    url: `azblob://${ACCOUNT}/${name}`,

    async putRaw(key, body, metadata = {}) {
      await client
        .getBlockBlobClient(key)
        .upload(body, Buffer.byteLength(body), { metadata: { ...metadata } });
    },

    async getRaw(key) {
      const blob = client.getBlobClient(key);
      if (!(await blob.exists())) return undefined;
      const { metadata = {}, etag = '', lastModified = new Date(Number.NaN) } = await blob.getProperties();
      return { body: (await blob.downloadToBuffer()).toString(), metadata, etag, lastModified };
    },

    async listKeys(prefix = '') {
      const keys: string[] = [];
      for await (const { name: key } of client.listBlobsFlat({ prefix })) keys.push(key);
      return keys;
    },

    async deleteRaw(key) {
      await client.deleteBlob(key);
    },
  };
}
