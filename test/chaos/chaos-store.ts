import { setTimeout as sleep } from 'node:timers/promises';
import type { RandomSource } from '../../src/core/base/clock.js';
import { awsEnvironment, createBucket, type TestBucket } from '../support/bucket.js';
import { newEtcdStore } from '../support/etcd.js';
import { etcdGet } from '../support/etcd-admin.js';
import type { EtcdCluster } from '../support/servers/etcd-cluster.js';
import type { S3Access } from '../support/servers/minio.js';
import type { StoreBucket } from '../support/servers/store-servers.js';
import { monotonicMicros } from './act.js';
import type { FaultRecord } from './trouble.js';

/** A lease object as it lies in the store. */
export interface RawLease {
  readonly body: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** How a task reaches a store. */
export interface StoreAddress {
  readonly url: string;
  /** Empty for none. */
  readonly endpoint: string;
}

/** Where a fleet keeps its leases. */
export interface ChaosStore {
  /** Each task has a proxy of its own before each of them. */
  readonly servers: readonly { readonly hostname: string; readonly port: number }[];
  readonly env: Readonly<Record<string, string>>;
  /** How it is reached by the proxies on these ports of 127.0.0.1; without them, directly. */
  address(ports?: readonly number[]): StoreAddress;
  /** Reads a lease object, past what is tested. */
  read(id: number): Promise<RawLease | undefined>;
  /** Whether it keeps what writes replace, for `nodelease audit`. @default false */
  readonly keepsHistory?: boolean;
  /** Whether the harm takes writes back that were acknowledged. @default false */
  readonly goesBack?: boolean;
  /** Harms the servers until the signal aborts, and mends them. Absent where they are left alone. */
  harm?(random: RandomSource, signal: AbortSignal, record: (fault: FaultRecord) => void): Promise<void>;
}

const FOLDER = 'fleet';

export async function s3ChaosStore(s3: S3Access): Promise<ChaosStore> {
  const bucket = await createBucket(s3, true);
  const store = chaosStoreIn({ ...bucket, url: `s3://${bucket.name}` }, s3.endpoint, awsEnvironment(s3));
  return { ...store, keepsHistory: true };
}

/** In a bucket or a table of a server that an endpoint names. */
export function chaosStoreIn(bucket: StoreBucket, endpoint: string, env: ChaosStore['env']): ChaosStore {
  const { protocol, hostname, port } = new URL(endpoint);
  if (protocol !== 'http:')
    throw new Error(`${endpoint}: the proxies of a chaos run need a server that speaks plain HTTP`);
  return {
    servers: [{ hostname, port: Number(port) }],
    env,
    address: ([through] = []) => ({
      url: `${bucket.url}/${FOLDER}`,
      endpoint: through === undefined ? endpoint : `http://127.0.0.1:${through}`,
    }),
    read: leasesIn(bucket),
  };
}

/** Reads the lease objects in a bucket. */
export function leasesIn(bucket: TestBucket): ChaosStore['read'] {
  return (id) => bucket.getRaw(`${FOLDER}/${id}.json`);
}

/**
 * How long a server is away, and how long all are well after that, in milliseconds. The marks of writes
 * (`age-marks.ts`) are over before the longest is.
 */
const AWAY_MS = { least: 500, most: 9_000 };
const WELL_MS = { least: 1_000, most: 5_000 };
/** How long a look at a lease object may take while members are away, in milliseconds. */
const READ_WITHIN_MS = 20_000;

/** One member at a time is killed, paused or cut off from the others: more often than not the leader. */
export function etcdChaosStore(cluster: EtcdCluster): ChaosStore {
  const url = newEtcdStore(cluster);
  const prefix = url.slice(`etcd://${cluster.address}/`.length);
  const between = (random: RandomSource, { least, most }: { least: number; most: number }) =>
    least + random.next() * (most - least);
  return {
    keepsHistory: true,
    servers: cluster.servers.map(({ address }) => ({
      hostname: '127.0.0.1',
      port: Number(address.split(':')[1]),
    })),
    env: {},
    address: (ports) => ({
      url:
        ports === undefined ? url : `etcd://${ports.map((port) => `127.0.0.1:${port}`).join(',')}/${prefix}`,
      endpoint: '',
    }),
    async read(id) {
      const value = await fromAny(cluster, `${prefix}/${id}.json`);
      if (value === undefined) return undefined;
      const end = value.indexOf('\n');
      return {
        metadata: JSON.parse(value.slice(0, end)) as Record<string, string>,
        body: value.slice(end + 1),
      };
    },
    async harm(random, signal, record) {
      const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => undefined);
      let kinds: ('kill' | 'pause' | 'isolate')[] = [];
      while (!signal.aborted) {
        await pause(between(random, WELL_MS));
        const leader = await cluster.leader();
        const others = cluster.servers.filter((server) => server !== leader);
        const server = random.next() < 0.6 ? leader : others[Math.floor(random.next() * others.length)];
        if (signal.aborted || server === undefined) return;
        const lengthMs = Math.round(between(random, AWAY_MS));
        // Each of them once in three times, so that no run is without one.
        if (kinds.length === 0) kinds = ['kill', 'pause', 'isolate'];
        const [kind = 'kill'] = kinds.splice(Math.floor(random.next() * kinds.length), 1);
        const name = `${kind} of a member${server === leader ? ', the leader' : ''}`;
        record({ name, at: monotonicMicros(), lengthMs, slot: undefined, taskId: undefined });
        if (kind === 'kill') await server.kill();
        else if (kind === 'pause') server.pause();
        else cluster.isolate(server);
        await pause(lengthMs);
        if (kind === 'kill') await server.start();
        else if (kind === 'pause') server.resume();
        else cluster.heal();
      }
    },
  };
}

/** The text at a key, from the first member that answers. Such a read is linearizable. */
async function fromAny({ servers }: EtcdCluster, key: string): Promise<string | undefined> {
  for (const deadline = performance.now() + READ_WITHIN_MS; ; ) {
    for (const { endpoint } of servers) {
      try {
        return await etcdGet(endpoint, key);
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
    }
    await sleep(50);
  }
}
