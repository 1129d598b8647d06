import { afterAll, beforeAll, inject, vi } from 'vitest';
import { systemClock } from '../../src/core/base/system.js';
import { openS3Store } from '../../src/core/store/s3/open-s3-store.js';
import { awsEnvironment, createBucket } from '../support/bucket.js';
import { leaseStoreContract, ofKeys } from './lease-store-contract.js';

const s3 = inject('s3');

beforeAll(() => {
  for (const [name, value] of Object.entries(awsEnvironment(s3))) vi.stubEnv(name, value);
});

afterAll(() => {
  vi.unstubAllEnvs();
});

const connect = (bucket: string, prefix: string) =>
  openS3Store({
    bucket,
    prefix,
    endpoint: s3.endpoint,
    region: s3.region,
    clock: systemClock,
    requestTimeoutMs: 10_000,
  });

leaseStoreContract('S3LeaseStore', {
  open: async () => connect((await createBucket(s3)).name, 'some/prefix'),
  reopen: (store) => connect(new URL(store.url).host, 'some/prefix'),
  ageResolutionMs: 1_000,
});

leaseStoreContract(
  'S3LeaseStore on a whole bucket',
  {
    open: async () => connect((await createBucket(s3)).name, ''),
    ageResolutionMs: 1_000,
  },
  ofKeys,
);
