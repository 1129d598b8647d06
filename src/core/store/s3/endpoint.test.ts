import { afterEach, expect, it, vi } from 'vitest';
import { standInStore } from '../../../../test/support/stand-in-store.js';
import { systemClock } from '../../base/system.js';
import { bucketInEndpoint } from './endpoint.js';
import { openS3Store } from './open-s3-store.js';

afterEach(() => void vi.unstubAllEnvs());

it.each([
  ['http://127.0.0.1:9000/leases', 'http://127.0.0.1:9000'],
  ['http://127.0.0.1:9000/leases/', 'http://127.0.0.1:9000'],
  ['http://127.0.0.1:9000/gateway/leases/orders', 'http://127.0.0.1:9000/gateway'],
  ['https://leases.s3.eu-central-1.amazonaws.com', 'https://s3.eu-central-1.amazonaws.com'],
  ['https://leases.minio:9000/', 'https://minio:9000'],
])('the bucket in %s is found, and the server without it named', (endpoint, server) => {
  expect(bucketInEndpoint('s3://leases/orders', endpoint)).toBe(
    `endpoint ${endpoint}: expected the server’s URL without a bucket, such as ${server}; the bucket is in s3://leases/orders`,
  );
});

it('any path is found where the server says that it was asked for an object', () => {
  const other = 'http://127.0.0.1:9000/other';
  expect(bucketInEndpoint('s3://leases', other)).toBeUndefined();
  expect(bucketInEndpoint('s3://leases', other, true)).toContain('such as http://127.0.0.1:9000;');
  expect(bucketInEndpoint('s3://leases', 'http://127.0.0.1:9000', true)).toBeUndefined();
});

it.each(['http://127.0.0.1:9000', 'https://leases-of-others.example', 'http://h/leases2', undefined])(
  'no bucket is found in %s',
  (endpoint) => expect(bucketInEndpoint('s3://leases/orders', endpoint)).toBeUndefined(),
);

it.each(['an option', 'AWS_ENDPOINT_URL_S3'])(
  'the address of a bucket as the endpoint, by %s, is named',
  async (by) => {
    const { server, close } = await standInStore();
    const address = `${server.endpoint}/bucket`;
    if (by !== 'an option') vi.stubEnv(by, address);
    const store = await openS3Store({
      ...{ bucket: 'bucket', prefix: 'p', clock: systemClock, requestTimeoutMs: 5_000 },
      endpoint: by === 'an option' ? address : undefined,
    });
    try {
      const failure = await store.list().catch((error: unknown) => error);
      expect(failure).toMatchObject({ fault: 'rejected' });
      const name = by === 'an option' ? 'endpoint' : by;
      expect(String(failure)).toContain(
        `${name} ${address}: expected the server’s URL without a bucket, such as ${server.endpoint};`,
      );
      server.next({ status: 403, code: 'AccessDenied' });
      expect(String(await store.list().catch((error: unknown) => error))).toMatch(
        /AccessDenied.*without a bucket/,
      );
    } finally {
      await store.close();
      await close();
    }
  },
);
