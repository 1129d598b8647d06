import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../test/support/captured-io.js';
import { seededRandom, VirtualClock } from '../../test/support/virtual-clock.js';
import { initializeCluster } from '../lease/initialize.js';
import { StoreSession } from '../lease/store-session.js';
import { StoreError } from '../store/lease-store.js';
import { MemoryBucket } from '../store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../store/memory/memory-lease-store.js';
import { clockFinding, type Diagnosis } from './diagnosis.js';
import { examine, showDiagnosis } from './doctor-command.js';

const quick = { random: seededRandom(1), watchAgeMs: 0 };

function scene(intercept?: MemoryIntercept) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const session = new StoreSession(new MemoryLeaseStore({ clock, ...(intercept && { intercept }) }, bucket), clock, 1_000);
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
    await initializeCluster({ session, clock, random: seededRandom(1), wanted: { nodes: 3, durationMs: 15_000, graceMs: 1_000 } });
    const before = bucket.list();
    const { code, answer, complaints } = shown(await examined());
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' });
    const lines = answer.trimEnd().split('\n');
    expect(lines[0]).toBe('The store memory:');
    expect(lines.slice(1, -1).every((line) => /^ {2}ok {5}\S/.test(line))).toBe(true);
    expect(answer).toMatch(/refuses a stale etag\n/);
    expect(answer).toMatch(/ {2}ok {5}latency: \d+\.\d ms/);
    expect(answer).toContain('  ok     cluster: 3 node ids, 0 of them held; duration 15s, grace 1s\n');
    expect(answer).toContain('518,400 writes (PUT) a month');
    expect(lines.at(-1)).toBe('All is well.');
    expect(bucket.list()).toEqual(before);
  });

  it('says that there is no cluster yet, which is no fault, and creates none', async () => {
    const { bucket, examined } = scene();
    const { code, answer } = shown(await examined());
    expect(code).toBe(0);
    expect(answer).toContain('cluster: none yet');
    expect(bucket.list().objects).toEqual([]);
  });

  it('names every damaged lease object, and fails', async () => {
    const { session, bucket, clock, examined } = scene();
    await initializeCluster({ session, clock, random: seededRandom(1), wanted: { nodes: 3, durationMs: 15_000, graceMs: 1_000 } });
    bucket.remove('0.json');
    bucket.replace('2.json', 'garbage', {}, bucket.read('2.json')?.etag ?? '');
    const { code, answer, complaints } = shown(await examined());
    expect(code).toBe(69);
    expect(answer).toMatch(/ {2}FAULT {2}lease objects: node id 0: lease object is absent/);
    expect(answer).toMatch(/ {2}FAULT {2}lease objects: node id 2: lease object is not JSON/);
    expect(complaints).toMatch(/^nodelease: memory:: 2 faults: .*node id 0.*node id 2.*\n$/);
  });

  it('reports settings of the cluster that nobody can read as a fault', async () => {
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
    expect(complaints).toBe('nodelease: memory:: 1 fault: memory: access denied\n');
    expect(requests).toBeLessThanOrEqual(2);
  });

  it('gives JSON in which no field is ever left out', async () => {
    const { session, clock, examined } = scene();
    const none = JSON.parse(shown(await examined(), true).answer) as Diagnosis;
    expect(none).toMatchObject({ store: 'memory:', ok: true, latencyMs: 0, clockOffsetMs: [0, 1], cluster: null, damaged: [] });
    await initializeCluster({ session, clock, random: seededRandom(1), wanted: { nodes: 3, durationMs: 15_000, graceMs: 1_000 } });
    const some = JSON.parse(shown(await examined(), true).answer) as Diagnosis;
    expect(some.cluster).toEqual({ size: 3, durationMs: 15_000, graceMs: 1_000, idWidth: 8, bootstrapped: true });
    expect(some.findings.map(({ id }) => id)).toEqual(
      expect.arrayContaining(['create', 'replace-race', 'latency', 'clock', 'cluster', 'cost']),
    );
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
    [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, 'ok', /^tells no time/],
  ])('off by %d to %d ms is %s', (min, max, status, detail) => {
    expect(clockFinding({ min, max })).toMatchObject({ status, detail: expect.stringMatching(detail) });
  });
});
