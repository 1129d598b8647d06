import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { explain } from '../../../../src/core/base/errors.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { LeaseStore } from '../../../../src/core/store/lease-store.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { probeStore } from '../../../../src/core/store/probe/probe.js';
import { awsEnvironment, createBucket, type TestBucket } from '../../../support/bucket.js';

// A real S3 server, reached as a user would: by URL, with the credentials of the environment.

const s3 = inject('s3');
const base = { clock: systemClock, random: systemRandom, requestTimeoutMs: 5_000 };
let bucket: TestBucket;
const opened: LeaseStore[] = [];

beforeEach(async () => {
  for (const [name, value] of Object.entries(awsEnvironment(s3))) vi.stubEnv(name, value);
  bucket = await createBucket(s3);
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  vi.unstubAllEnvs();
});

async function open(
  url: string,
  options: { endpoint?: string; region?: string } = { endpoint: s3.endpoint },
): Promise<LeaseStore> {
  const store = await openStore(url, { ...base, ...options });
  opened.push(store);
  return store;
}

const causeOf = (call: Promise<unknown>) => call.then(() => 'no failure', explain);

describe('a store on a real S3 server', () => {
  it('keeps its objects where its URL says, with the facts in their metadata', async () => {
    const store = await open(`s3://${bucket.name}/prod/orders/`);
    expect(store.url).toBe(`s3://${bucket.name}/prod/orders`);
    await store.create('7.json', '{"taskId":"é"}', { taskid: 'task-a', version: '1' });
    expect(await bucket.listKeys()).toEqual(['prod/orders/7.json']);
    expect(await bucket.getRaw('prod/orders/7.json')).toMatchObject({
      body: '{"taskId":"é"}',
      metadata: { taskid: 'task-a', version: '1' },
    });
  });

  it('works with the endpoint from the AWS environment', async () => {
    vi.stubEnv('AWS_ENDPOINT_URL_S3', s3.endpoint);
    const store = await open(`s3://${bucket.name}/p`, {});
    expect(await store.create('0.json', '', {})).toMatchObject({ status: 'written' });
  });

  it('says in one line that the bucket does not exist', async () => {
    const store = await open('s3://no-such-bucket-anywhere/p');
    const expected =
      's3://no-such-bucket-anywhere/p: bucket does not exist: The specified bucket does not exist';
    for (const call of [
      () => store.read('0.json'),
      () => store.list(),
      () => store.create('0.json', '', {}),
    ]) {
      expect(await causeOf(call())).toBe(expected);
    }
    await expect(store.replace('0.json', 'x', {}, '"e"')).rejects.toMatchObject({
      fault: 'missing',
      outcome: 'not-applied',
    });
    await expect(probeStore(store, base)).rejects.toMatchObject({ fault: 'missing' });
  });

  it.each([
    ['a wrong key id', { AWS_ACCESS_KEY_ID: 'wrong' }, 'InvalidAccessKeyId'],
    ['a wrong secret', { AWS_SECRET_ACCESS_KEY: 'wrong-wrong' }, 'SignatureDoesNotMatch'],
  ])('says in one line that access is denied with %s', async (_, env, code) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    const store = await open(`s3://${bucket.name}/p`);
    expect(await causeOf(store.read('cluster.json'))).toMatch(
      new RegExp(`^s3://${bucket.name}/p: reading cluster.json: access denied \\(${code}\\): [^\\n]+$`),
    );
    await expect(store.create('0.json', '', {})).rejects.toMatchObject({
      fault: 'denied',
      outcome: 'not-applied',
    });
    await expect(probeStore(store, base)).rejects.toMatchObject({ fault: 'denied' });
  });
});
