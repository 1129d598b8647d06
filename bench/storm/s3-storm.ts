import { randomBytes } from 'node:crypto';
import { S3Client } from '@aws-sdk/client-s3';
import type { Clock } from '../../src/base/clock.js';
import { systemClock, systemRandom } from '../../src/base/system.js';
import type { Lease } from '../../src/lease/model/lease.js';
import { initializeCluster } from '../../src/lease/operate/initialize.js';
import { StoreSession } from '../../src/lease/session/store-session.js';
import { createS3Client } from '../../src/store/s3/open-s3-store.js';
import { S3LeaseStore } from '../../src/store/s3/s3-lease-store.js';
import type { Contestant } from './contestants.js';
import { NO_REQUESTS, plus, type RequestCount } from './request-count.js';
import type { Operation } from './s3-latency.js';
import { checkDistinct, type Storm } from './storm.js';

export interface S3StormOptions {
  readonly contestant: Contestant;
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly starters: number;
  /** Whether the cluster is made before the storm, as by `nodelease init`. @default false */
  readonly initialised?: boolean;
}

/** Tasks and server share a machine: nobody is to miss a renewal for that. Milliseconds. */
const DURATION_MS = 3_600_000;
/** Longer than the engine's own patience, which is what counts. Milliseconds. */
const REQUEST_TIMEOUT_MS = 120_000;
/** Time-outs of a request that both contestants have, told from pauses, which are drawn by chance, by their length; and what they last here. Milliseconds. */
const TIME_OUTS_MS: ReadonlySet<number> = new Set([4_000, 5_000]);
const PATIENCE_MS = 60_000;

const OPERATIONS: Readonly<Record<string, Operation>> = {
  GetObjectCommand: 'get',
  PutObjectCommand: 'put',
  ListObjectsV2Command: 'list',
  DeleteObjectCommand: 'delete',
};

/** With hundreds of tasks in one process each answer waits for the others: a minute, until a request is given up. */
const patientClock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(TIME_OUTS_MS.has(ms) ? PATIENCE_MS : ms, signal),
};

/** A task's own client of the server, and what it has sent. */
class CountedStore extends S3LeaseStore {
  requests: RequestCount = NO_REQUESTS;

  static async open({ endpoint, region, bucket }: S3StormOptions, prefix: string): Promise<CountedStore> {
    const client = await createS3Client({ endpoint, region, requestTimeoutMs: REQUEST_TIMEOUT_MS });
    if (!(client instanceof S3Client)) throw new Error('the client has no middleware to count its requests with');
    const store = new CountedStore({ bucket, prefix, client, clock: systemClock, requestTimeoutMs: REQUEST_TIMEOUT_MS });
    client.middlewareStack.add(
      (next, { commandName = '' }) =>
        (args) => {
          const operation = OPERATIONS[commandName];
          if (operation === undefined) throw new Error(`${commandName} has no price here`);
          store.requests = plus(store.requests, { ...NO_REQUESTS, [operation]: 1 });
          return next(args);
        },
      { step: 'initialize' },
    );
    return store;
  }
}

/**
 * Two storms of so many tasks, each with a client of its own, all in this process, on a real server: one in an empty folder of the
 * bucket or right after `init`, and, once all have released their ids, another one.
 *
 * Credentials come from the AWS default chain.
 *
 * @throws Error when two tasks got the same id, or a task lost its id before the last one had one
 */
export async function s3Storms(options: S3StormOptions): Promise<{ readonly first: Storm; readonly released: Storm }> {
  const prefix = randomBytes(6).toString('hex');
  if (options.initialised) await initialise(options, prefix);
  return { first: await s3Storm(options, prefix), released: await s3Storm(options, prefix) };
}

async function initialise(options: S3StormOptions, prefix: string): Promise<void> {
  const store = await CountedStore.open(options, prefix);
  try {
    const session = new StoreSession(store, systemClock, REQUEST_TIMEOUT_MS);
    const wanted = { nodes: options.starters, durationMs: DURATION_MS };
    await initializeCluster({ session, clock: patientClock, random: systemRandom, wanted });
  } finally {
    await store.close();
  }
}

async function s3Storm(options: S3StormOptions, prefix: string): Promise<Storm> {
  const { contestant, starters } = options;
  const stores = await Promise.all(Array.from({ length: starters }, () => CountedStore.open(options, prefix)));
  const leases: Lease[] = [];
  const shared = { clock: patientClock, random: systemRandom, nodes: starters, durationMs: DURATION_MS };
  const begun = systemClock.monotonic();
  try {
    const storm = await Promise.all(
      stores.map(async (store, task) => {
        const lease = await contestant.acquire({ ...shared, store, taskId: `task-${task}` });
        leases.push(lease);
        return {
          id: lease.id,
          requests: store.requests,
          tookMs: systemClock.monotonic() - begun,
          afterwards: NO_REQUESTS,
        };
      }),
    );
    checkDistinct(storm.map(({ id }) => id));
    const lost = leases.filter((lease) => !lease.isValid()).length;
    if (lost > 0) throw new Error(`${lost} of ${starters} tasks lost their ids before the last one had one: the machine is too slow`);
    return storm;
  } finally {
    await Promise.all(leases.map((lease) => lease.release()));
    await Promise.all(stores.map((store) => store.close()));
  }
}
