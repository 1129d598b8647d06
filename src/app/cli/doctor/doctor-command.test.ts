import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { decodeCluster, encodeCluster, newCluster } from '../../../core/lease/model/cluster-config.js';
import { initializeCluster } from '../../../core/lease/operate/initialize.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { StoreError, type StoreFact } from '../../../core/store/lease-store.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import { encodeMap, ownerless, SHARDS_KEY } from '../../../node/shards/shard-map.js';
import { clockFinding } from '../../kit/finding.js';
import { type CostTerms, type Diagnosis, paceFindings } from './diagnosis.js';
import { examine, showDiagnosis } from './doctor-command.js';

const quick = { random: seededRandom(1), watchAgeMs: 0 };

function scene(intercept?: MemoryIntercept) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const session = new StoreSession(
    new MemoryLeaseStore({ clock, ...(intercept && { intercept }) }, bucket),
    clock,
    1_000,
  );
  return { clock, bucket, session, examined: () => examine(session, { ...quick, clock }) };
}

function shown(diagnosis: Diagnosis, json = false) {
  const io = capturedIo();
  const code = showDiagnosis(diagnosis, { json }, io);
  return { code, answer: io.answer(), complaints: io.complaints() };
}

describe('nodelease doctor', () => {
  it('shows one line for each check of a sound store, the cluster and what it costs, and leaves nothing behind', async () => {
    const { session, bucket, clock, examined } = scene();
    await initializeCluster({
      session,
      clock,
      random: seededRandom(1),
      wanted: { nodes: 3, durationMs: 15_000, graceMs: 1_000 },
    });
    const before = bucket.list();
    const { code, answer, complaints } = shown(await examined());
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' });
    const lines = answer.trimEnd().split('\n');
    expect(lines[0]).toBe('The store memory:');
    expect(lines.slice(1, -1).every((line) => /^ {2}ok {5}\S/.test(line))).toBe(true);
    expect(answer).toMatch(/refuses a stale etag\n/);
    expect(answer).toMatch(/ {2}ok {5}latency: \d+\.\d ms/);
    expect(answer).toContain('  ok     cluster: 3 node ids, 0 of them held; duration 15s, grace 1s\n');
    expect(answer).toContain(
      '  ok     cost: 3 node ids, when all are held, with a duration of 15s: 1,555,200 writes (PUT) and 1,555,200 reads (GET) a month to renew them\n',
    );
    expect(lines.at(-1)).toBe('All is well.');
    expect(bucket.list()).toEqual(before);
  });

  it('shows the shards of a cluster that has some, and a map that needs a repair as a fault', async () => {
    const { session, bucket, examined } = scene();
    const config = { ...newCluster({ nodes: 1 }), shards: { count: 2, created: true } };
    bucket.create('cluster.json', encodeCluster(config), {});
    bucket.create(SHARDS_KEY, encodeMap(ownerless(1, 2)), {});
    const ofShards = ({ findings }: Diagnosis) => findings.filter(({ id }) => id === 'shards');
    expect(ofShards(await examined())).toEqual([
      { id: 'shards', title: 'shards', status: 'ok', detail: 'shards: owned 0, moving 0, orphaned 2' },
    ]);
    bucket.remove(SHARDS_KEY);
    const { code, complaints } = shown(await examined());
    expect(code).toBe(69);
    expect(complaints).toContain('shards.json is gone: nodelease init --repair mends it');
    expect(ofShards(await examine(session, { ...quick, clock: new VirtualClock() }))[0]?.status).toBe(
      'fault',
    );
  });

  it('says that the prices are those of S3 where requests go to another server', async () => {
    const clock = new VirtualClock();
    const store = () => Object.assign(new MemoryLeaseStore({ clock, remote: true }), { url: 's3://bucket' });
    const session = () => new StoreSession(store(), clock, 1_000);
    const endpoint = 'http://127.0.0.1:9000';
    const costOf = async (terms: CostTerms) => {
      const { findings } = await examine(session(), { ...quick, clock, terms });
      return findings.find(({ id }) => id === 'cost')?.detail;
    };
    expect(await costOf({})).toContain('to renew them, $44.79,');
    expect(await costOf({ endpoint })).toContain('to renew them, on S3 $44.79,');
  });

  it('says no price where requests cost nothing', async () => {
    const clock = new VirtualClock();
    const stores = [
      new MemoryLeaseStore({ clock }),
      Object.assign(new MemoryLeaseStore({ clock, remote: true }), { url: 'etcd://127.0.0.1:2379/x' }),
    ];
    for (const store of stores) {
      const session = new StoreSession(store, clock, 1_000);
      const { findings } = await examine(session, { ...quick, clock });
      const cost = findings.find(({ id }) => id === 'cost')?.detail;
      expect(cost).toMatch(/reads \(GET\) a month to renew them$/);
    }
  });

  it('shows what the store says of itself, with the cost of what it keeps, and fails where leases will be damaged', async () => {
    const clock = new VirtualClock();
    const fact = { id: 'bucket', detail: 'a detail' };
    const facts: readonly StoreFact[] = [
      { ...fact, status: 'ok', keptDays: 30 },
      { ...fact, status: 'fault' },
    ];
    const store = Object.assign(new MemoryLeaseStore({ clock }), { describe: async () => facts });
    const result = await examine(new StoreSession(store, clock, 1_000), { ...quick, clock });
    expect(result.findings.filter(({ id }) => id === 'bucket')).toEqual([
      { ...fact, title: 'bucket', status: 'ok' },
      { ...fact, title: 'bucket', status: 'fault' },
    ]);
    const { code, answer } = shown(result);
    expect(code).toBe(69);
    expect(answer).toContain('  ok     kept versions: 8,294,400 versions at a time, 8.3 GB');
  });

  it('asks again where the store is too busy for a moment, and finds a fault where it stays so', async () => {
    let failures = 2;
    const busy = new StoreError('memory: answered HTTP 503', { fault: 'unavailable', outcome: 'unknown' });
    const { clock, examined } = scene(async (_, apply) => {
      if (failures === 0) return apply();
      failures -= 1;
      throw busy;
    });
    const passing = examined();
    await clock.advance(5_000);
    expect((await passing).ok).toBe(true);
    failures = Number.POSITIVE_INFINITY;
    const staying = examined();
    await clock.advance(30_000);
    expect(shown(await staying)).toMatchObject({
      code: 69,
      complaints: expect.stringContaining('answered HTTP 503'),
    });
  });

  it('finds a cluster of Camunda 8 next to a cluster of nodelease', async () => {
    const { session, bucket, clock, examined } = scene();
    await initializeCluster({ session, clock, random: seededRandom(1), wanted: { nodes: 2 } });
    bucket.create('node-ids-initialized', '', {});
    const { code, answer } = shown(await examined());
    expect(code).toBe(69);
    expect(answer).toContain('  FAULT  cluster: ');
    expect(answer).toContain('next to the cluster of nodelease: one of the two has to move');
  });

  it.each([{ graceMs: 0 }, { durationMs: 1 }, { durationMs: 1e15 }])(
    'finds settings that no cluster can have: %j',
    async (wrong) => {
      const { bucket, examined } = scene();
      bucket.create(
        'cluster.json',
        JSON.stringify({ size: 2, durationMs: 15_000, graceMs: 1_000, bootstrapped: false, ...wrong }),
        {},
      );
      const { code, answer } = shown(await examined());
      expect(code).toBe(69);
      expect(answer).toMatch(
        new RegExp(
          `  FAULT  cluster: .*cluster.json cannot be used, it has no usable "${Object.keys(wrong)[0]}"`,
        ),
      );
    },
  );

  it('says that there is no cluster yet, which is no fault, and creates none', async () => {
    const { bucket, examined } = scene();
    const { code, answer } = shown(await examined());
    expect(code).toBe(0);
    expect(answer).toContain('cluster: none yet');
    expect(answer).toContain(
      'cost: 16 node ids, when all are held, with a duration of 15s: 8,294,400 writes',
    );
    expect(bucket.list().objects).toEqual([]);
  });

  it('names every damaged lease object, and fails', async () => {
    const { session, bucket, clock, examined } = scene();
    await initializeCluster({
      session,
      clock,
      random: seededRandom(1),
      wanted: { nodes: 3, durationMs: 15_000, graceMs: 1_000 },
    });
    bucket.remove('0.json');
    bucket.replace('2.json', 'garbage', {}, bucket.read('2.json')?.etag ?? '');
    const { code, answer, complaints } = shown(await examined());
    expect(code).toBe(69);
    expect(answer).toMatch(/ {2}FAULT {2}lease objects: node id 0: lease object is absent/);
    expect(answer).toMatch(/ {2}FAULT {2}lease objects: node id 2: lease object is not JSON/);
    expect(complaints).toMatch(/^nodelease: memory:: 2 faults: .*node id 0.*node id 2.*\n$/);
  });

  it('reads no more of a large cluster than it takes to see what stands out, by a bounded number of requests, and says what it has read', async () => {
    const requests = { list: 0, read: 0 };
    const { session, bucket, clock, examined } = scene(async (call, apply) => {
      if (call.operation === 'list') requests.list += 1;
      if (call.operation === 'read' && /^\d+\.json$/.test(call.key)) requests.read += 1;
      return apply();
    });
    const nodes = 10_000;
    await initializeCluster({
      session,
      clock,
      random: seededRandom(1),
      wanted: { nodes, durationMs: 15_000, graceMs: 1_000 },
    });
    Object.assign(requests, { list: 0, read: 0 });
    const sound = shown(await examined());
    expect(sound.code).toBe(0);
    expect(requests.read).toBe(500);
    expect(requests.list).toBeLessThanOrEqual(2);
    expect(sound.answer).toContain('cluster: 10000 node ids, about 0 of them held;');
    expect(sound.answer).toMatch(
      /ok {5}lease objects: none is damaged; read were 500 of 10000, .*: nodelease status --all reads all of them\n/,
    );

    bucket.remove('7000.json');
    bucket.replace('8123.json', 'garbage', {}, bucket.read('8123.json')?.etag ?? '');
    bucket.replace('9999.json', 'x'.repeat(1_000), {}, bucket.read('9999.json')?.etag ?? '');
    // No task renews what is no lease.
    await clock.advance(20_000);
    Object.assign(requests, { list: 0, read: 0 });
    const damaged = shown(await examined());
    expect(damaged.code).toBe(69);
    expect(damaged.complaints).toMatch(
      /: 3 faults: node id 7000: .* absent .*node id 8123: .*node id 9999: /,
    );
    expect(damaged.answer).toContain('read were 500 of 10000');
    expect(requests.read).toBe(500);

    for (let id = 0; id < 1_000; id += 1) bucket.remove(`${id}.json`);
    Object.assign(requests, { list: 0, read: 0 });
    const ruined = await examined();
    expect(shown(ruined).complaints).toContain('and 903 more node ids: nodelease status --all names them');
    expect(ruined.damaged.length).toBeLessThanOrEqual(500);
    expect(requests.read).toBe(500);
  });

  it('reports settings of the cluster that cannot be read as a fault', async () => {
    const { bucket, examined } = scene();
    bucket.create('cluster.json', '{}', {});
    const { code, answer } = shown(await examined());
    expect(code).toBe(69);
    expect(answer).toMatch(/FAULT {2}cluster: .*cluster\.json cannot be used/);
  });

  it('reports a store that denies access as a fault, without asking any further', async () => {
    let requests = 0;
    const { examined } = scene(async () => {
      requests += 1;
      throw new StoreError('memory: access denied', { fault: 'denied', outcome: 'not-applied' });
    });
    const { code, answer, complaints } = shown(await examined());
    expect(code).toBe(69);
    expect(answer).toMatch(/FAULT {2}store: memory: access denied/);
    expect(complaints).toBe('nodelease: memory:: 1 fault: memory: access denied [STORE_DENIED]\n');
    expect(requests).toBeLessThanOrEqual(2);
  });

  it('gives JSON in which no field is ever left out', async () => {
    const { session, clock, examined } = scene();
    const none = JSON.parse(shown(await examined(), true).answer) as Diagnosis;
    expect(none).toMatchObject({
      store: 'memory:',
      ok: true,
      latencyMs: 0,
      clockOffsetMs: [0, 1],
      cluster: null,
      damaged: [],
    });
    expect(none.cost).toMatchObject({ nodes: 16, durationMs: 15_000 });
    await initializeCluster({
      session,
      clock,
      random: seededRandom(1),
      wanted: { nodes: 3, durationMs: 15_000, graceMs: 1_000 },
    });
    const some = JSON.parse(shown(await examined(), true).answer) as Diagnosis;
    expect(some.cluster).toEqual({
      size: 3,
      durationMs: 15_000,
      graceMs: 1_000,
      idWidth: 8,
      bootstrapped: true,
    });
    expect(some.cost).toEqual({
      ...{
        nodes: 3,
        durationMs: 15_000,
        settingsIntervalMs: null,
        putsPerMonth: 1_555_200,
        getsPerMonth: 1_555_200,
      },
      ...{ dollarsPerMonth: 8.39808, putPrice: 0.005, getPrice: 0.0004 },
    });
    expect(some.findings.map(({ id }) => id)).toEqual(
      expect.arrayContaining(['create', 'races', 'latency', 'clock', 'cluster', 'cost']),
    );
  });

  it('says why no task uses the store where an earlier probe has failed, and has it used again where it is asked to and finds no fault', async () => {
    const { session, bucket, clock } = scene();
    const reason = 'If-Match is not atomic: 1 of 12 races was lost';
    bucket.create(
      'cluster.json',
      encodeCluster({ ...newCluster({ nodes: 3 }), proven: false, proofFailed: reason }),
      {},
    );
    const refused = shown(await examine(session, { ...quick, clock }));
    expect(refused.code).toBe(69);
    expect(refused.answer).toContain(
      `FAULT  earlier probe: found that ${reason}; no task uses the store since; this one has found no fault: nodelease doctor --accept`,
    );
    const accepted = shown(await examine(session, { ...quick, clock, accept: true }));
    expect(accepted.code).toBe(0);
    expect(accepted.answer).toMatch(/ok {5}earlier probe: .*accepted all the same/);
    expect(decodeCluster(bucket.read('cluster.json')?.body ?? '')).toMatchObject({ proven: true });
    expect(shown(await examine(session, { ...quick, clock })).answer).not.toContain('earlier probe');
  });

  it('accepts no store in which it finds a fault itself', async () => {
    const { bucket, clock } = scene();
    bucket.create(
      'cluster.json',
      encodeCluster({ ...newCluster({ nodes: 3 }), proven: false, proofFailed: 'a reason' }),
      {},
    );
    const careless = new (class extends MemoryLeaseStore {
      override async replace(key: string, body: string, metadata: Readonly<Record<string, string>>) {
        return bucket.replace(key, body, metadata, bucket.read(key)?.etag ?? '');
      }
    })({ clock }, bucket);
    const { code, answer } = shown(
      await examine(new StoreSession(careless, clock, 1_000), { ...quick, clock, accept: true }),
    );
    expect(code).toBe(69);
    expect(answer).toContain(
      'FAULT  earlier probe: found that a reason; no task uses the store since; use another store',
    );
    expect(decodeCluster(bucket.read('cluster.json')?.body ?? '').proofFailed).toBe('a reason');
  });

  it('removes its scratch objects, too, when it is interrupted', async () => {
    const { session, bucket, clock } = scene();
    const abort = new AbortController();
    const examined = examine(session, { random: seededRandom(1), clock, signal: abort.signal });
    examined.catch(() => undefined);
    await clock.advance(100);
    expect(bucket.list().objects).not.toEqual([]);
    abort.abort(new Error('interrupted'));
    await expect(examined).rejects.toThrow('interrupted');
    expect(bucket.list().objects).toEqual([]);
  });
});

describe('the store’s clock', () => {
  it.each<[number, number, string, RegExp]>([
    [-200, 300, 'ok', /^agrees/],
    [-1_500, 500, 'ok', /^agrees/],
    [1_001, 2_000, 'warning', /^at least 1\.0s ahead of .*harmless for leases/],
    [-7_300_000, -7_200_000, 'warning', /^at least 2h00m behind .*refuses signatures that are 15m off/],
    [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, 'ok', /^shows no time/],
  ])('off by %d to %d ms is %s', (min, max, status, detail) => {
    expect(clockFinding({ min, max })).toMatchObject({ status, detail: expect.stringMatching(detail) });
  });
});

it('doctor warns of leases that are renewed more often than the store keeps up with', () => {
  const store = { minWriteIntervalMs: 1_000 };
  expect(paceFindings(store, 3_000)).toEqual([]);
  expect(paceFindings({}, 100)).toEqual([]);
  expect(paceFindings(store, 2_400)).toMatchObject([
    {
      status: 'warning',
      detail:
        'a lease of 2.4s is renewed every 0.8s, and this store keeps up with one write of an object every 1s: use a duration of 3s or more',
    },
  ]);
});
