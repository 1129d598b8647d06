import { execFileSync } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { acquireLease } from '../../../../src/core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../../../src/core/lease/model/lease.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { awsEnvironment, createBucket } from '../../../support/bucket.js';
import { runInProcess } from '../../../support/in-process.js';
import { type EtcdProcess, findEtcd, prepareEtcd } from '../../../support/servers/etcd-process.js';
import { freePorts } from '../../../support/servers/free-ports.js';
import { started } from '../../../support/servers/local-server.js';

// A copy of each kind of store is put back while a task holds what the copy does not know of.

const [DURATION, GRACE] = [1_000, 500];
const ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  vi.unstubAllEnvs();
});

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'nodelease-restored-'));
  ends.push(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function acquire(url: string, endpoint?: string): Promise<Lease> {
  const settings = { clock: systemClock, random: systemRandom, requestTimeoutMs: 5_000 };
  const store = await openStore(url, { ...settings, endpoint });
  const lease = await acquireLease({
    ...{ store, clock: systemClock, random: systemRandom, nodes: 1 },
    ...{ taskId: `task-${systemRandom.hex(4)}`, durationMs: DURATION, graceMs: GRACE },
  });
  ends.push(async () => {
    await lease.release();
    await store.close();
  });
  return lease;
}

interface Place {
  readonly url: string;
  readonly endpoint?: string;
  /** Makes a copy; what it resolves to puts the copy back, and resolves to where it is then. */
  readonly copy: () => Promise<() => Promise<string>>;
}

/** Version 1 is in the copy, version 2 is held when it is put back, and the next one is what is shown. */
async function nextVersion({ url, endpoint, copy }: Place) {
  await (await acquire(url, endpoint)).release();
  const putBack = await copy();
  const forgotten = await acquire(url, endpoint);
  expect(forgotten.version).toBe(2);
  const restored = await putBack();
  const begun = systemClock.monotonic();
  const next = await acquire(restored, endpoint);
  const tookMs = systemClock.monotonic() - begun;
  expect(forgotten.isValid()).toBe(false);
  return { version: next.version, tookMs };
}

it('a folder that is replaced by its copy gives out no version twice', async () => {
  const [path, aside] = [join(await folder(), 'leases'), join(await folder(), 'copy')];
  const copy = async () => {
    await cp(path, aside, { recursive: true, preserveTimestamps: true });
    return async () => {
      await rm(path, { recursive: true });
      await cp(aside, path, { recursive: true, preserveTimestamps: true });
      return `file:${path}`;
    };
  };
  const { version, tookMs } = await nextVersion({ url: `file:${path}`, copy });
  expect(version).toBeGreaterThan(2 ** 32);
  expect(tookMs).toBeGreaterThan(DURATION + GRACE);
});

it('a folder over which a copy is laid names what came back, and a repair gives it the next version', async () => {
  const [path, aside] = [join(await folder(), 'leases'), join(await folder(), 'copy')];
  const copy = async () => {
    await cp(path, aside, { recursive: true, preserveTimestamps: true });
    return async () => {
      await cp(aside, path, { recursive: true, preserveTimestamps: true });
      const store = ['--store', `file:${path}`];
      expect(await runInProcess(['status', ...store])).toMatchObject({
        answer: expect.stringContaining('has version 1, where version 2 was written'),
      });
      expect((await runInProcess(['init', '--repair', ...store])).answer).toContain('restored at version 3');
      return `file:${path}`;
    };
  };
  expect((await nextVersion({ url: `file:${path}`, copy })).version).toBeGreaterThan(3);
});

it('a bucket that is said to be restored gives out no version twice', async () => {
  const s3 = inject('s3');
  const bucket = await createBucket(s3);
  const env = awsEnvironment(s3);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const url = `s3://${bucket.name}/fleet`;
  const copy = async () => {
    const keys = await bucket.listKeys('fleet/');
    const objects = await Promise.all(keys.map(async (key) => [key, await bucket.getRaw(key)] as const));
    return async () => {
      for (const [key, object] of objects) await bucket.putRaw(key, object?.body ?? '', object?.metadata);
      const store = ['--store', url, '--endpoint', s3.endpoint];
      const said = await runInProcess(['init', '--restored', ...store], { env });
      expect(said).toMatchObject({ code: 0, answer: expect.stringContaining('the cluster and 0 locks') });
      expect((await runInProcess(['status', ...store], { env })).answer).toContain('nothing is given out');
      return url;
    };
  };
  const { version, tookMs } = await nextVersion({ url, endpoint: s3.endpoint, copy });
  expect(version).toBeGreaterThan(2 ** 32);
  expect(tookMs).toBeGreaterThan(DURATION);
});

describe('a snapshot of etcd', () => {
  it.each([
    ['that is restored with another token', 'another', false],
    ['that is restored with the same token, and said to be restored', 'same', true],
  ])('%s gives out no version twice', async (_, token, isSaid) => {
    const utility = join(dirname(await findEtcd('3.5')), 'etcdutl');
    const [clientPort = 0, peerPort = 0] = await freePorts(2);
    const cluster = `alone=http://127.0.0.1:${peerPort}`;
    const member = { name: 'alone', clientPort, peerPort, advertisedPort: peerPort, cluster };
    const server = async (flags: readonly string[]): Promise<EtcdProcess> => {
      const process = await started(await prepareEtcd({ member, flags }));
      ends.push(() => process.dispose());
      return process;
    };
    const first = await server(['--initial-cluster-token', 'same']);
    const url = `etcd://${first.address}/fleet`;
    const path = await folder();
    const copy = async () => {
      const reply = await fetch(`${first.endpoint}/v3/maintenance/snapshot`, { method: 'POST', body: '{}' });
      const parts = (await reply.text()).trim().split('\n');
      const blobs = parts.map((part) => Buffer.from(JSON.parse(part).result.blob ?? '', 'base64'));
      const snapshot = join(path, 'snapshot.db');
      await writeFile(snapshot, Buffer.concat(blobs));
      return async () => {
        await first.stop();
        const data = join(path, 'data');
        const options = [
          ...['snapshot', 'restore', snapshot, '--data-dir', data, '--name', 'alone'],
          ...['--initial-cluster', cluster, '--initial-cluster-token', token],
          ...['--initial-advertise-peer-urls', `http://127.0.0.1:${peerPort}`],
        ];
        execFileSync(utility, options, { stdio: 'ignore' });
        await server(['--data-dir', data, '--initial-cluster-token', token]);
        if (isSaid) expect((await runInProcess(['init', '--restored', '--store', url])).code).toBe(0);
        return url;
      };
    };
    const { version, tookMs } = await nextVersion({ url, copy });
    expect(version).toBeGreaterThan(2 ** 32);
    expect(tookMs).toBeGreaterThan(DURATION);
  });
});
