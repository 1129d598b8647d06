import { S3Client } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, expect, inject, it, vi } from 'vitest';
import type { Clock } from '../../../../src/core/base/clock.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { acquireLease } from '../../../../src/core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../../../src/core/lease/model/lease.js';
import { createS3Client } from '../../../../src/core/store/s3/open-s3-store.js';
import { S3LeaseStore } from '../../../../src/core/store/s3/s3-lease-store.js';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';

// All that start at once get an id of their own from a real server, for few requests each.

const TASKS = 300;
/**
 * What a plain scan sends before it looks at any id is a request for each of the objects. A twentieth of that
 * is the promise.
 */
const MOST_REQUESTS = TASKS / 20;
/** No task is to renew, or to lose an id, while 300 tasks share this machine with their server. */
const DURATION_MS = 3_600_000;
const LIMIT_MS = 240_000;

/**
 * Time-outs of the engine's requests and of the probe's, distinguished by their length from pauses, which are
 * drawn by chance. Milliseconds.
 */
const TIME_OUTS_MS: ReadonlySet<number> = new Set([4_000, 5_000]);

/**
 * As many tasks in one process as otherwise on 300 machines: their time-outs last longer, and nothing else
 * does.
 */
const patientClock: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  sleep: (ms, signal) => systemClock.sleep(TIME_OUTS_MS.has(ms) ? LIMIT_MS : ms, signal),
};

const stores: S3LeaseStore[] = [];

beforeEach(() => {
  for (const [name, value] of Object.entries(awsEnvironment(inject('s3')))) vi.stubEnv(name, value);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(stores.splice(0).map((store) => store.close()));
});

/** A client of its own for one task, as a process would have it, and how many requests it has sent. */
async function countedStore(bucket: string): Promise<{ store: S3LeaseStore; sent: () => number }> {
  const { endpoint, region } = inject('s3');
  const client = await createS3Client({ endpoint, region, requestTimeoutMs: LIMIT_MS });
  if (!(client instanceof S3Client))
    throw new Error('the client has no middleware to count its requests with');
  let requests = 0;
  client.middlewareStack.add(
    (next) => (args) => {
      requests += 1;
      return next(args);
    },
    { step: 'finalizeRequest', name: 'countRequests' },
  );
  const store = new S3LeaseStore({
    bucket,
    prefix: 'storm',
    client,
    clock: systemClock,
    requestTimeoutMs: LIMIT_MS,
  });
  stores.push(store);
  return { store, sent: () => requests };
}

async function storm(bucket: string): Promise<{ leases: Lease[]; requests: readonly number[] }> {
  const clients = await Promise.all(Array.from({ length: TASKS }, () => countedStore(bucket)));
  const requests: number[] = [];
  const leases = await Promise.all(
    clients.map(async ({ store, sent }, task) => {
      const settings = { nodes: TASKS, durationMs: DURATION_MS, taskId: `task-${task}` };
      const lease = await acquireLease({ ...settings, store, clock: patientClock, random: systemRandom });
      requests.push(sent());
      return lease;
    }),
  );
  return { leases, requests };
}

it(
  'gives each of 300 tasks that start at once an id of its own, at once and after all were released, for few requests',
  async () => {
    const { name } = await createBucket(inject('s3'));
    for (const version of [1, 2]) {
      const { leases, requests } = await storm(name);
      expect(leases.map(({ id }) => id).sort((a, b) => a - b)).toEqual(
        Array.from({ length: TASKS }, (_, id) => id),
      );
      expect(new Set(leases.map((lease) => lease.version))).toEqual(new Set([version]));
      const mean = requests.reduce((sum, n) => sum + n, 0) / TASKS;
      expect(mean).toBeLessThan(MOST_REQUESTS);
      await Promise.all(leases.map((lease) => lease.release()));
    }
  },
  LIMIT_MS,
);
