import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { encodeCluster, newCluster } from '../../../../src/core/lease/model/cluster-config.js';
import { type EncodedLease, nativeCodec } from '../../../../src/core/lease/model/lease-codec.js';
import {
  evicted,
  type HeldLease,
  type LeaseState,
  released,
  retired,
} from '../../../../src/core/lease/model/lease-state.js';
import { awsEnvironment, createBucket, type TestBucket } from '../../../support/bucket.js';
import { camundaBucket } from '../../../support/camunda-bucket.js';
import { camundaHeld } from '../../../support/camunda-objects.js';
import { newEtcdStore } from '../../../support/etcd.js';
import { etcdCall } from '../../../support/etcd-admin.js';
import { newStore, removeStores } from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { cliFile, killAll, runCli, runProcess } from '../../../support/processes.js';
import { restrictedEnvironment } from '../../../support/restricted-access.js';
import { startEtcdProcess } from '../../../support/servers/etcd-process.js';

afterEach(async () => {
  vi.unstubAllEnvs();
  await killAll();
  await removeStores();
});

interface Report {
  readonly ok: boolean;
  readonly versions: number;
  readonly kept: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly breaches: readonly { readonly breach: string; readonly key: string; readonly detail: string }[];
  readonly tenures: Readonly<Record<string, number>>;
}

/** Where a fleet is, as options and environment of the command line. */
interface Place {
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

async function audit({ options, env }: Place, ...more: string[]) {
  const { code, answer, complaints } = await runInProcess(['audit', ...options, ...more], { env });
  return { code, answer, complaints };
}

async function verdict(place: Place): Promise<Report & { code: number }> {
  const { code, answer } = await audit(place, '--json');
  return { code, ...(JSON.parse(answer) as Report) };
}

async function s3Place(isVersioned = true): Promise<Place & { readonly bucket: TestBucket }> {
  const s3 = inject('s3');
  const bucket = await createBucket(s3, isVersioned);
  const options = ['--store', `s3://${bucket.name}/fleet`, '--endpoint', s3.endpoint];
  return { bucket, options, env: awsEnvironment(s3) };
}

/**
 * Three node ids: some are held and released, one is evicted; a lock, and a tick; another duration; shards; one id
 * more, and two ids fewer.
 */
async function live({ options, env }: Place): Promise<void> {
  const run = async (...args: readonly string[]) => {
    const { code, stderr } = await ended(runCli(args, { env }));
    if (code !== 0) throw new Error(stderr);
  };
  const words = (...args: string[]) => [...args, ...options];
  await run(...words('init', '--nodes', '3', '--duration', '4s', '--grace', '1s'));
  await run(...words('run', '--task-id', 'a'), '--', 'true');
  await run(...words('run', '--task-id', 'b', '--shards', '2'), '--', 'sleep', '2');
  const task = runCli([...words('run', '--task-id', 'c'), '--', 'sleep', '60'], { env });
  await task.waitForOutput(/acquired/);
  await run(...words('release', '0', '--force'));
  await task.exit;
  await run(...words('lock', 'nightly', '--duration', '4s'), '--', 'true');
  await run(...words('lock', 'nightly'), '--', 'true');
  await run(...words('once', 'report', '--every', '1h'), '--', 'true');
  await run(...words('tune', '--duration', '5s'));
  await run(...words('run', '--task-id', 'd'), '--', 'sleep', '2');
  await run(...words('scale', '4'));
  await run(...words('scale', '2'));
}

/** What came of that. */
const ENDS = { released: 6, expired: 0, evicted: 1, retired: 0, held: 0 };

async function ended(process: ReturnType<typeof runCli>) {
  const { code } = await process.exit;
  return { code, stderr: process.stderr() };
}

const held = (version: number, more: Partial<HeldLease> = {}): HeldLease => ({
  ...{ kind: 'held', taskId: `task-${version}`, version, durationMs: 60_000, knownNodes: {}, renewal: 0 },
  ...{ nonce: `nonce-${version}`, acquiredAt: 1, idWidth: 8, narrowIdsUntil: 0, timestamp: 2 },
  ...more,
});
const gone = (version: number) => released(held(version), 1, 1);
const MAP = { count: 1, members: [[0, 1]], owner: [0], token: [5], next: {} };

/** What is written to a key, one after the other, and what that breaks; undefined: it is removed. */
const PLANTED: readonly (readonly [
  breach: string,
  key: string,
  ...(LeaseState | EncodedLease | undefined)[],
])[] = [
  ['taken-early', '0.json', held(1), held(2)],
  ['taken-early', '1.json', held(1), evicted(held(1)), held(3)],
  ['taken-early', '2.json', held(1), evicted(held(1), true)],
  ['version-twice', '3.json', held(1), held(1, { nonce: 'other', taskId: 'b' })],
  ['version-twice', '4.json', held(1), gone(1), held(1, { nonce: 'other' })],
  ['version-fell', '5.json', held(5), gone(5), held(3)],
  ['version-fell', '6.json', held(1), { body: '', metadata: {} }],
  ['foreign-write', '7.json', held(1), held(1, { renewal: 4 }), held(1, { renewal: 3 })],
  ['foreign-write', '8.json', held(1), { body: 'by hand', metadata: {} }],
  ['foreign-write', '9.json', held(1), { ...nativeCodec.encode(held(2)), metadata: { version: '3' } }],
  ['foreign-write', '10.json', held(1), retired(gone(1), 1)],
  ['retired-taken', '11.json', gone(1), retired(gone(1), 7), held(2)],
  ['deleted', '12.json', held(1), undefined],
  ['deleted', '13.json'],
  ['deleted', 'locks/x/0.json', { kind: 'vacant' }, undefined],
  [
    'shard-token',
    'shards.json',
    ...[5, 6, 6].map((epoch) => ({ body: JSON.stringify({ epoch, ...MAP }), metadata: {} })),
  ],
];
const settings = (nodes: number) =>
  encodeCluster({ ...newCluster({ nodes, durationMs: 60_000 }), bootstrapped: true });

describe('nodelease audit', () => {
  it('finds no breach in what a fleet has written to a bucket, and how each tenure ended', async () => {
    const place = await s3Place();
    await live(place);
    expect(await verdict(place)).toMatchObject({ code: 0, ok: true, breaches: [], tenures: ENDS });
    const shown = await audit(place, '--tenures', '--json');
    const lines = shown.answer
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toHaveLength(8);
    expect(lines).toContainEqual(expect.objectContaining({ key: '0.json', taskId: 'c', end: 'evicted' }));
    const { answer } = await audit(place);
    expect(answer).toMatch(/^tenures: 6 released, 0 expired, 1 evicted/m);
    expect(answer).toMatch(/^no breach$/m);
  });

  it('ends with 141 when the reader of its tenures has read enough', async () => {
    const { bucket, options, env } = await s3Place();
    await bucket.putRaw('fleet/cluster.json', settings(1));
    for (const state of [held(1), gone(1)]) {
      const { body, metadata } = nativeCodec.encode(state);
      await bucket.putRaw('fleet/0.json', body, metadata);
    }
    const pipeline = '{ "$0" "$@"; echo "code $?" >&2; } | true';
    const command = [process.execPath, cliFile, 'audit', '--tenures', ...options];
    const shell = runProcess('sh', ['-c', pipeline, ...command], { env });
    await shell.exit;
    expect(shell.stderr()).toBe('code 141\n');
  });

  it('finds none on etcd, from the revision on to which it was compacted', async () => {
    // Compacting takes the history from every test that uses the server.
    const server = await startEtcdProcess();
    try {
      const place = { options: ['--store', newEtcdStore(server)], env: {} };
      await live(place);
      expect(await verdict(place)).toMatchObject({ code: 0, ok: true, breaches: [], tenures: ENDS });
      const { header } = (await etcdCall(server.endpoint, 'kv/range', { key: 'AA==' })) as {
        header: { revision: string };
      };
      await etcdCall(server.endpoint, 'kv/compaction', { revision: header.revision });
      // What is left are four node ids, two locks, a tick and a map of shards.
      expect(await verdict(place)).toMatchObject({ code: 0, breaches: [], versions: 8 });
    } finally {
      await server.dispose();
    }
  });

  it('finds each planted breach, and exits with 1', async () => {
    const place = await s3Place();
    const { bucket } = place;
    await bucket.putRaw('fleet/cluster.json', settings(14));
    await bucket.putRaw('fleet/locks/x/cluster.json', settings(1));
    for (const [, key, ...states] of PLANTED)
      for (const state of states) {
        if (state === undefined) await bucket.deleteRaw(`fleet/${key}`);
        else {
          const { body, metadata } = 'body' in state ? state : nativeCodec.encode(state);
          await bucket.putRaw(`fleet/${key}`, body, metadata);
        }
      }
    const { code, breaches } = await verdict(place);
    expect(code).toBe(1);
    const found = breaches.map(({ breach, key }) => `${breach} ${key}`).sort();
    expect(found).toEqual(PLANTED.map(([breach, key]) => `${breach} ${key}`).sort());
    const { answer, complaints } = await audit(place);
    expect(answer).toMatch(/0\.json +20\S+Z +taken-early +held by task-1, version 1/);
    expect(complaints).toMatch(/: 16 breaches\n$/);
  });

  it('judges a store that has locks only, and says where there is nothing', async () => {
    const place = await s3Place();
    const { bucket, options, env } = place;
    const lock = (name: string) => `fleet/locks/${name}`;
    await bucket.putRaw(lock('cluster.json'), encodeCluster(newCluster({ nodes: 1 })));
    await bucket.putRaw(lock('x/cluster.json'), settings(1));
    for (const state of [held(1), gone(1), held(2), held(3)]) {
      const { body, metadata } = nativeCodec.encode(state);
      await bucket.putRaw(lock('x/0.json'), body, metadata);
    }
    expect(await verdict(place)).toMatchObject({
      code: 1,
      versions: 4,
      breaches: [{ breach: 'taken-early', key: 'locks/x/0.json' }],
    });
    const locks = { env, options: options.map((word) => word.replace(/fleet$/, 'fleet/locks')) };
    expect(await audit(locks)).toMatchObject({
      code: 69,
      complaints: expect.stringMatching(/there is no cluster at .*locks.*\[CLUSTER_MISSING\]\n$/),
    });
  });

  it('reads more versions than a page has, in the order of their writes', async () => {
    const { bucket, ...place } = await s3Place();
    await bucket.putRaw('fleet/cluster.json', settings(30));
    const ids = Array.from({ length: 30 }, (_, id) => id);
    const write = async (id: number) => {
      for (let renewal = 0; renewal < 40; renewal += 1) {
        const { body, metadata } = nativeCodec.encode(held(1, { renewal }));
        await bucket.putRaw(`fleet/${id}.json`, body, metadata);
      }
    };
    await Promise.all(ids.map(write));
    expect(await verdict(place)).toMatchObject({ code: 0, versions: 1_200, breaches: [] });
  });

  it('says that a bucket keeps no versions, and judges the history in its objects', async () => {
    const { bucket, ...place } = await s3Place(false);
    await bucket.putRaw('fleet/cluster.json', settings(1));
    const { body, metadata } = nativeCodec.encode(held(3, { history: '2/8/9/x/b 1/6/7/r/a' }));
    await bucket.putRaw('fleet/0.json', body, metadata);
    const tenures = { released: 1, expired: 1, evicted: 0, retired: 0, held: 1 };
    expect(await verdict(place)).toMatchObject({ code: 0, kept: 0, tenures });
    expect((await audit(place)).answer).toContain('the store keeps no versions');
  });

  it('needs two rights, and says which one is missing', async () => {
    const { bucket, ...place } = await s3Place();
    await bucket.putRaw('fleet/cluster.json', settings(1));
    await bucket.putRaw('fleet/0.json', '');
    const list = { 's3:ListBucketVersions': bucket.name };
    const rights = { ...list, 's3:GetObjectVersion': `${bucket.name}/fleet/*` };
    const env = await restrictedEnvironment(inject('s3'), rights);
    expect(await audit({ ...place, env })).toMatchObject({ code: 0, complaints: '' });
    const less = await restrictedEnvironment(inject('s3'), list);
    expect(await audit({ ...place, env: less })).toMatchObject({
      code: 69,
      complaints: expect.stringMatching(/needs s3:GetObjectVersion\).*\[STORE_DENIED\]/),
    });
  });

  it('says which stores can be audited, and where there is nothing to audit', async () => {
    const file = await newStore('file');
    expect(await audit(file)).toMatchObject({
      code: 69,
      complaints: expect.stringMatching(
        /s3:\/\/ with versioning and etcd:\/\/ alone .*\[STORE_UNSUPPORTED\]\n$/,
      ),
    });
    expect(await audit(await s3Place())).toMatchObject({
      code: 69,
      complaints: expect.stringMatching(/there is no cluster at .*\[CLUSTER_MISSING\]\n$/),
    });
    const camunda = await camundaBucket(inject('s3'));
    await camunda.put(camundaHeld({ id: 0, taskId: 'a', version: 1, timestamp: 1 }));
    expect(await audit(camunda)).toMatchObject({
      code: 69,
      complaints: expect.stringMatching(/\[CLUSTER_FOREIGN\]\n$/),
    });
  });
});
