import { beforeEach, describe, expect, it } from 'vitest';
import {
  CAMUNDA_MARKER,
  type CamundaHolder,
  type CamundaObject,
  camundaFree,
  camundaHeld,
  camundaReleased,
  camundaRestore,
} from '../../../../test/support/camunda-objects.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { initializeCluster } from '../../../core/lease/operate/initialize.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import { ClusterFollower } from '../cluster-follower.js';
import { scanPage } from '../cluster-page.js';
import { ClusterReader } from '../cluster-reader.js';
import { expiresInMs } from '../status-report.js';

let clock: VirtualClock;
let bucket: MemoryBucket;
let session: StoreSession;
let calls: MemoryCall[];

beforeEach(() => {
  clock = new VirtualClock();
  // Times as S3 reports them.
  bucket = new MemoryBucket(clock, 1_000);
  calls = [];
  const store = new MemoryLeaseStore({ clock, resolutionMs: 1_000 }, bucket);
  const counted = store.connect(async (call, apply) => {
    calls.push(call);
    return apply();
  });
  session = new StoreSession(counted, clock, 1_000);
});

function put({ key, body, metadata }: CamundaObject): void {
  bucket.remove(key);
  bucket.create(key, body, metadata);
}

/** Writes a lease as a holder does with a duration of 15 s, and a clock that is ahead by that much. */
function hold(
  id: number,
  taskId: string,
  version = 1,
  facts: Partial<CamundaHolder> & { readonly ahead?: number } = {},
): void {
  const { ahead = 0, ...holder } = facts;
  put(camundaHeld({ id, taskId, version, timestamp: clock.now() + 15_000 + ahead, ...holder }));
}

const scan = (reader = new ClusterReader(session, clock)) => reader.scan(new AbortController().signal);

describe('a cluster of Camunda 8', () => {
  it('is shown: holders, versions, known versions, free, released and retired ids, restores, and the duration of the holders', async () => {
    hold(0, 'task-A', 4, { known: { 0: 4, 1: 7 } });
    put(camundaFree(1));
    put(camundaReleased(2, 9));
    put(camundaReleased(3, 3, false));
    put(CAMUNDA_MARKER);
    put(camundaRestore('r1', [0, 1]));
    const { nodes, head } = await scan();
    expect(nodes.map(({ id, state, version, taskId }) => [id, state, version, taskId])).toEqual([
      [0, 'held', 4, 'task-A'],
      [1, 'vacant', 0, undefined],
      [2, 'released', 9, undefined],
      [3, 'retired', 3, undefined],
    ]);
    expect(nodes[0]).toMatchObject({ timestamp: clock.now() + 15_000, knownNodes: { 0: 4, 1: 7 } });
    expect(nodes.map(({ foreign }) => foreign?.camunda?.acquirable)).toEqual([true, true, true, false]);
    expect(head).toMatchObject({
      format: 'camunda',
      cluster: { size: 4, durationMs: 15_000, graceMs: 0, idWidth: null, bootstrapped: true },
      restores: [{ restoreId: 'r1', restoredNodes: [0, 1], problem: null }],
    });
  });

  it('is found by its leases where the marker is missing, held or released ones, and by nothing else', async () => {
    put(camundaFree(0));
    expect((await scan()).head).toEqual({ store: 'memory:' });
    put(camundaReleased(0, 1));
    expect((await scan()).head).toMatchObject({
      format: 'camunda',
      cluster: { bootstrapped: false, durationMs: null },
    });
    hold(0, 'task-A');
    expect((await scan()).head).toMatchObject({
      format: 'camunda',
      cluster: { bootstrapped: false, durationMs: 15_000 },
    });
  });

  it('shows by the store’s time when a lease expires, and compares the holders’ clocks', async () => {
    hold(0, 'right');
    hold(1, 'fast', 1, { ahead: 30_000 });
    hold(2, 'right-too');
    hold(3, 'slow', 1, { ahead: -13_000 });
    put(CAMUNDA_MARKER);
    const reader = new ClusterReader(session, clock);
    const { nodes } = await scan(reader);
    expect(nodes.map(({ foreign }) => foreign?.camunda?.clockOffsetMs)).toEqual([0, 30_000, 0, -13_000]);
    expect(nodes.map(({ foreign }) => foreign?.camunda?.warning ?? null)).toEqual([
      null,
      'its holder’s clock is 30 s ahead of the other holders’, or its lease duration is another one',
      null,
      expect.stringMatching(
        /clock is 13 s behind the other holders’.*: it expires before it is renewed, and another task may take it/,
      ),
    ]);
    // By its own timestamp the slow one has expired: another task may take it. The time that is left agrees
    // with the state.
    await clock.advance(5_000);
    const soon = (await scan(reader)).nodes;
    expect(soon.map(({ state }) => state)).toEqual(['held', 'held', 'held', 'expired']);
    expect(soon.map((node) => Math.round((expiresInMs(node) ?? 0) / 1_000))).toEqual([10, 40, 10, -3]);
    await clock.advance(15_000);
    const late = (await scan(reader)).nodes;
    expect(late.map(({ state }) => state)).toEqual(['expired', 'held', 'expired', 'expired']);
    expect(late.map((node) => Math.round((expiresInMs(node) ?? 0) / 1_000))).toEqual([-5, 25, -5, -18]);
  });

  it('shows what Camunda cannot read as damaged, and a body of another node id with a warning', async () => {
    put({ ...camundaHeld({ id: 0, taskId: 'A', version: 1, timestamp: 5 }), metadata: {} });
    hold(1, 'task-B', 2, { known: {} });
    put({
      ...camundaHeld({ id: 7, taskId: 'C', version: 1, timestamp: clock.now() + 15_000 }),
      key: '2.json',
    });
    put(camundaFree(4));
    put(CAMUNDA_MARKER);
    const { nodes } = await scan();
    expect(nodes.map(({ state }) => state)).toEqual(['unreadable', 'held', 'held', 'absent', 'vacant']);
    expect(nodes[0]?.problem).toBe('lease object has a body and no metadata');
    expect(nodes[2]?.foreign?.camunda?.warning).toBe(
      'its body says node id 7: the holder works as that one, and renews 7.json',
    );
  });

  it('costs two LISTs a scan, one of them for the restores, and a GET for each lease that was written; nothing is written', async () => {
    for (const id of [0, 1, 2]) hold(id, `task-${id}`);
    put(CAMUNDA_MARKER);
    const reader = new ClusterReader(session, clock);
    await scan(reader);
    calls = [];
    await clock.advance(1_000);
    await scan(reader);
    expect(calls.map(({ operation }) => operation)).toEqual(['list', 'list']);
    calls = [];
    hold(1, 'task-1');
    await clock.advance(1_000);
    await scan(reader);
    expect(calls.map((call) => [call.operation, 'key' in call ? call.key : ''])).toEqual([
      ['list', ''],
      ['list', ''],
      ['read', '1.json'],
    ]);
  });

  it('has no node ids if only the marker is left', async () => {
    put(CAMUNDA_MARKER);
    const request = { everything: false, paged: false, limit: 100, telling: false };
    const found = await scanPage(new ClusterReader(session, clock), request, new AbortController().signal);
    expect(found).toMatchObject({ nodes: [], totals: { held: 0, free: 0 }, foreign: { restores: [] } });
  });

  it('reads no object that a LIST does not show, however far the node ids are apart and however many other objects there are', async () => {
    put(camundaFree(0));
    put(camundaFree(3_000));
    put(CAMUNDA_MARKER);
    for (let index = 0; index < 130_000; index += 1) bucket.create(`x${index}`, '', {});
    expect((await scan()).nodes.map(({ state }) => state).filter((state) => state !== 'absent')).toEqual([
      'vacant',
      'vacant',
    ]);
    expect(calls.filter(({ operation }) => operation === 'read')).toHaveLength(2);
  });

  it('notices that an empty object was written again, although all of them have one etag', async () => {
    put(camundaFree(0));
    put(camundaReleased(1, 1));
    put(CAMUNDA_MARKER);
    const reader = new ClusterReader(session, clock);
    const states = async () => (await scan(reader)).nodes.map(({ state, version }) => [state, version]);
    expect(await states()).toEqual([
      ['vacant', 0],
      ['released', 1],
    ]);
    // A tenure between two scans, and scaling down at once.
    put(camundaReleased(1, 2));
    put(camundaReleased(0, 0, false));
    expect(await states()).toEqual([
      ['retired', 0],
      ['released', 2],
    ]);
  });

  it('is replaced by a cluster of nodelease at the same URL, and can replace one', async () => {
    const reader = new ClusterReader(session, clock);
    await initializeCluster({ session, clock, random: seededRandom(1), wanted: { nodes: 2 } });
    expect((await scan(reader)).head).not.toHaveProperty('format');
    for (const { key } of bucket.list().objects) bucket.remove(key);
    hold(0, 'task-A');
    put(CAMUNDA_MARKER);
    expect((await scan(reader)).head).toMatchObject({ format: 'camunda', cluster: { size: 1 } });
    for (const { key } of bucket.list().objects) bucket.remove(key);
    expect((await scan(reader)).head).toEqual({ store: 'memory:' });
    await initializeCluster({ session, clock, random: seededRandom(1), wanted: { nodes: 2 } });
    expect((await scan(reader)).nodes.map(({ state }) => state)).toEqual(['vacant', 'vacant']);
  });
});

describe('the console of a cluster of Camunda 8', () => {
  const eventsOf = async (...steps: (() => void)[]) => {
    const follower = new ClusterFollower({ clock, random: seededRandom(2), session });
    put(CAMUNDA_MARKER);
    const end = follower.follow(() => undefined);
    for (const step of steps) {
      step();
      await clock.advance(2_000);
    }
    end();
    await follower.close();
    return follower.current().events.map(({ kind, text }) => [kind, text]);
  };

  it('reports releases and take-overs as for any other, and no repeated version', async () => {
    const events = await eventsOf(
      () => hold(0, 'task-A'),
      () => put(camundaReleased(0, 1)),
      () => hold(0, 'task-B', 2),
      () => hold(0, 'task-B', 2),
    );
    expect(events.map(([kind]) => kind)).toEqual(['released', 'acquired']);
  });

  it('reports a version that is used again after its release, or by another task at once, and one that went back', async () => {
    const harm = 'what was written under it can no longer be distinguished';
    expect(
      await eventsOf(
        () => hold(0, 'task-A'),
        () => put(camundaReleased(0, 1)),
        () => hold(0, 'task-B'),
      ),
    ).toContainEqual([
      'version-repeated',
      `version 1 of node id 0 is used again by task-B, after its use by task-A: ${harm}`,
    ]);
    expect(
      await eventsOf(
        () => hold(1, 'task-A', 3),
        () => hold(1, 'task-B', 3),
        () => bucket.remove('1.json'),
        () => put(camundaFree(1)),
      ),
    ).toEqual(
      expect.arrayContaining([
        [
          'version-repeated',
          `version 3 of node id 1 is used again by task-B, after its use by task-A: ${harm}`,
        ],
        ['version-repeated', `the version of node id 1 has gone back from 3 to 0: ${harm}`],
      ]),
    );
  });
});
