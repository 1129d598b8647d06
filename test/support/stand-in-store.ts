import { vi } from 'vitest';
import { systemClock } from '../../src/core/base/system.js';
import { openS3Store } from '../../src/core/store/s3/open-s3-store.js';
import type { S3LeaseStore } from '../../src/core/store/s3/s3-lease-store.js';
import { S3StandIn } from './s3-stand-in.js';

/** A stand-in for S3, and a store on it with the prefix `p`. */
export interface StandInStore {
  readonly server: S3StandIn;
  readonly store: S3LeaseStore;
  /** For `afterEach`. */
  close(): Promise<void>;
}

/**
 * Starts a stand-in, and opens a store with credentials from the environment, which it sets until it is
 * closed.
 */
export async function standInStore(): Promise<StandInStore> {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'key');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  const server = await S3StandIn.start();
  const { bucket, endpoint } = server;
  const store = await openS3Store({
    bucket,
    prefix: 'p',
    endpoint,
    clock: systemClock,
    requestTimeoutMs: 5_000,
  });
  const close = async () => {
    await store.close();
    await server.stop();
    vi.unstubAllEnvs();
  };
  return { server, store, close };
}
