import { awsEnvironment, createBucket } from '../bucket.js';
import type { S3Access } from '../servers/minio.js';
import type { StoreServer } from './store-server.js';

/** An S3 server that is there already, and that others stop. */
export function s3StoreServer(s3: S3Access): StoreServer {
  return {
    kind: 's3',
    description: `S3 at ${s3.endpoint}`,
    endpoint: s3.endpoint,
    newPlace: async () => {
      const { name } = await createBucket(s3);
      return (endpoint = s3.endpoint) => ({ url: `s3://${name}/fleet`, endpoint, env: awsEnvironment(s3) });
    },
    isWrite: (head, key) => head.startsWith('PUT ') && head.includes(`/${key}`),
    stop: async () => undefined,
  };
}
