import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { acquireLease } from '../../../../src/core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../../../src/core/lease/model/lease.js';
import type { LeaseStore } from '../../../../src/core/store/lease-store.js';
import { openS3Store } from '../../../../src/core/store/s3/open-s3-store.js';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';

// What it costs to wait, and how soon an id is taken, is in src/core/lease/acquire/wait-for-free-id.test.ts, in
// virtual time. Here: a real server.

const s3 = inject('s3');
const DURATION_MS = 15_000;
const stores: LeaseStore[] = [];
const stop = new AbortController();

beforeAll(() => {
  for (const [name, value] of Object.entries(awsEnvironment(s3))) vi.stubEnv(name, value);
});

afterEach(async () => {
  stop.abort(new Error('the test is over'));
  for (const store of stores.splice(0)) await store.close();
});

afterAll(() => {
  vi.unstubAllEnvs();
});

describe('tasks that wait on S3', () => {
  it('get the id one after the other as it is released, and leave nothing in the bucket', async () => {
    const bucket = (await createBucket(s3)).name;
    const connect = async () => {
      const { endpoint, region } = s3;
      const store = await openS3Store({
        bucket,
        prefix: 'leases',
        endpoint,
        region,
        clock: systemClock,
        requestTimeoutMs: 10_000,
      });
      stores.push(store);
      return store;
    };
    let waits = 0;
    const acquire = async (taskId: string): Promise<Lease> =>
      acquireLease({
        ...{
          store: await connect(),
          clock: systemClock,
          random: systemRandom,
          taskId,
          nodes: 1,
          durationMs: DURATION_MS,
        },
        signal: stop.signal,
        onEvent: ({ type }) => {
          if (type === 'waiting') waits += 1;
        },
      });
    const viewer = await connect();
    const keys = async () => (await viewer.list()).objects.map(({ key }) => key).sort();

    const holder = await acquire('holder');
    const waiting = ['a', 'b'].map(acquire);
    // Should the test fail, nothing listens any more to how the waits end.
    for (const one of waiting) one.catch(() => undefined);
    await expect.poll(() => waits).toBeGreaterThanOrEqual(2);

    let last = holder;
    for (let left = 2; left > 0; left -= 1) {
      await last.release();
      const taken = await Promise.race(waiting.map((one, index) => one.then((lease) => ({ lease, index }))));
      expect(taken.lease).toMatchObject({ id: 0, version: 4 - left });
      waiting.splice(taken.index, 1);
      last = taken.lease;
    }
    await last.release();
    expect(await keys()).toEqual(['0.json', 'cluster.json']);
  });
});
