import type { S3Access } from '../servers/minio.js';
import { startEtcdStoreServer } from './etcd-store-server.js';
import { startObjectStoreServer } from './object-store-servers.js';
import { s3StoreServer } from './s3-store-server.js';
import type { ServerKind, StoreServer } from './store-server.js';

/**
 * Starts a server of that kind, or takes the S3 server that is there.
 *
 * @throws Error when it cannot be installed or started
 */
export async function startStoreServer(kind: ServerKind, s3: S3Access): Promise<StoreServer> {
  switch (kind) {
    case 's3':
      return s3StoreServer(s3);
    case 'etcd':
      return startEtcdStoreServer();
    case 'azblob':
    case 'gs':
    case 'dynamodb':
      return startObjectStoreServer(kind);
  }
}
