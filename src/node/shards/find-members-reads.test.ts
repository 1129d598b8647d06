import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { encodeCluster, newCluster } from '../../core/lease/model/cluster-config.js';
import { nativeCodec } from '../../core/lease/model/lease-codec.js';
import { type HeldLease, type LeaseState, leaseKey } from '../../core/lease/model/lease-state.js';
import { readExistingCluster } from '../../core/lease/session/cluster-store.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { findMembers, isOver, readLeases } from './find-members.js';
import type { MapMember } from './shard-map.js';

const DURATION = 15_000;
const GRACE = 1_000;
/** From this age on, a lease has probably lost its holder: one and a half renewal periods. */
const OVERDUE = 7_500;
const EVER = Number.POSITIVE_INFINITY;

const held = (version: number, over: Partial<HeldLease> = {}): HeldLease => ({
  ...{ kind: 'held', taskId: 'task', version, timestamp: 1, durationMs: DURATION, knownNodes: {} },
  ...{ nonce: 'aa', renewal: 0, acquiredAt: 0, idWidth: 16, narrowIdsUntil: 0, shards: { epoch: 1 } },
  ...over,
});
const released = (version: number, durationMs = 0): LeaseState => ({
  ...{ kind: 'released', version, timestamp: 1, durationMs, stampedUntil: 5 },
});
const member = (id: number, version = 1): MapMember => ({ id, version, address: undefined });

/** Six members, of which the first one looks. All leases are held and have just been renewed. */
async function scene({ timeStepMs = 0, silent = '' } = {}) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, timeStepMs);
  const reads: string[] = [];
  const intercept = async <Reply>(call: { operation: string; key?: string }, apply: () => Reply) => {
    if (call.operation === 'read') reads.push(call.key ?? '');
    if (silent !== '' && (call.key ?? call.operation) === silent && reads.length > 1)
      await new Promise(() => undefined);
    if (silent === 'list' && call.operation === 'list') await new Promise(() => undefined);
    return apply();
  };
  const session = new StoreSession(new MemoryLeaseStore({ clock, intercept }, bucket), clock, 60_000);
  const record = (durationMs: number) => {
    bucket.remove('cluster.json');
    bucket.create('cluster.json', encodeCluster(newCluster({ nodes: 200, durationMs, graceMs: GRACE })), {});
  };
  record(DURATION);
  const put = (id: number, state: LeaseState) => {
    const { body, metadata } = nativeCodec.encode(state);
    bucket.remove(leaseKey(id));
    bucket.create(leaseKey(id), body, metadata);
  };
  for (let id = 0; id < 6; id += 1) put(id, held(1));
  const known = await readExistingCluster(session);
  const members = Array.from({ length: 6 }, (_, id) => member(id));
  const stop = new AbortController();
  const look = (over: { chance?: number; members?: MapMember[]; me?: MapMember } = {}) => {
    const { chance = 0, ...rest } = over;
    const random = { ...seededRandom(1), next: () => chance };
    const all = rest.members ?? members;
    return findMembers({
      ...{ session, random, known, signal: stop.signal },
      me: all[0] as MapMember,
      ...rest,
      members: all,
    });
  };
  /** Renews all but these. */
  const later = async (ms: number, ...ids: number[]) => {
    await clock.advance(ms);
    for (let id = 0; id < 6; id += 1) if (!ids.includes(id)) put(id, held(1, { renewal: ms }));
  };
  const idsRead = () => reads.filter((key) => key !== 'cluster.json');
  return { clock, bucket, session, reads, idsRead, record, put, known, members, look, later, stop };
}

describe('a tenure is proven over by its lease object (T6)', () => {
  const young = { min: 0, max: 0 };
  const old = { min: DURATION + GRACE + 1, max: EVER };
  it.each<[string, LeaseState, typeof young, boolean]>([
    ['absent', { kind: 'vacant' }, old, false],
    ['of an earlier version', released(4), old, false],
    ['held by a later tenure', held(6), young, true],
    ['held and renewed', held(5), young, false],
    ['held and expired', held(5), old, true],
    ['released', released(5), young, true],
    ['evicted', released(5, DURATION), young, false],
    ['evicted and expired', released(5, DURATION), old, true],
    ['retired', { ...released(5), kind: 'retired', generation: 0 } as LeaseState, young, true],
  ])('that is %s', (_, lease, age, expected) => {
    expect(isOver(member(1, 5), lease, age, GRACE)).toBe(expected);
  });
});

it('an object that is absent or damaged proves nothing', async () => {
  const { bucket, session } = await scene();
  bucket.remove('1.json');
  bucket.create('1.json', 'damaged', {});
  const [damaged, absent] = await readLeases(session, [1, 99]);
  expect(damaged).toMatchObject({ id: 1, lease: { kind: 'vacant' } });
  expect(absent).toMatchObject({ id: 99, lease: { kind: 'vacant' }, age: { min: 0, max: 0 } });
});

describe('a member that looks reads the leases', () => {
  it.each([
    [0, ['1.json']],
    [0.5, ['3.json', '4.json']],
    [0.99, ['5.json']],
  ])('of two members that chance draws, but not its own: %d', async (chance, expected) => {
    const { look, idsRead } = await scene();
    expect(await look({ chance })).toMatchObject({ members: { length: 6 }, dueMs: EVER });
    expect(idsRead()).toEqual(expected);
  });

  it.each([
    [0, OVERDUE, []],
    [0, OVERDUE + 1, ['3.json']],
    [1_000, OVERDUE - 500, []],
    [1_000, OVERDUE + 1_000, ['3.json']],
  ])('that are overdue, on a store with times in %i ms: after %i ms', async (timeStepMs, ms, expected) => {
    const { look, later, idsRead } = await scene({ timeStepMs });
    await later(ms, 3);
    await look();
    expect(idsRead()).toEqual(['1.json', ...expected]);
  });

  it('that are released, gone, or of its own id in an earlier tenure', async () => {
    const { look, put, bucket, members, idsRead } = await scene();
    put(0, held(2));
    put(3, released(1));
    bucket.remove('4.json');
    const [, ...others] = members;
    const now = await look({ members: [member(0, 2), ...others, member(0, 1)], chance: 0 });
    expect(idsRead().sort()).toEqual(['0.json', '1.json', '3.json', '4.json']);
    expect(now.members.map(({ id, version }) => [id, version])).toEqual([
      [0, 2],
      [1, 1],
      [2, 1],
      [4, 1],
      [5, 1],
    ]);
  });

  it('of no task that is not in the map', async () => {
    const { look, put, idsRead } = await scene();
    put(7, held(1));
    expect((await look()).members).toHaveLength(6);
    expect(idsRead()).toEqual(['1.json']);
  });
});

describe('a task that joins', () => {
  it('takes in all that take part, and itself', async () => {
    const { look, put, members, idsRead } = await scene();
    put(7, held(4, { address: 'seven:80' }));
    put(8, held(1, { shards: undefined }));
    put(9, released(1));
    const me = member(6, 3);
    const found = await look({ me, chance: 0.99 });
    expect(found.members).toEqual([...members, me, { id: 7, version: 4, address: 'seven:80' }]);
    expect(idsRead().sort()).toEqual(['0.json', '5.json', '7.json', '8.json']);
  });

  it('reads a hundred leases at most', async () => {
    const { look, put, idsRead } = await scene();
    for (let id = 10; id < 150; id += 1) put(id, held(1));
    await look({ me: member(6) });
    expect(idsRead()).toHaveLength(100);
  });
});

describe('when to look again', () => {
  it('is known from an overdue lease, and not from one that is renewed or evicted', async () => {
    const { look, put, later, bucket } = await scene();
    put(4, released(1, DURATION));
    await later(OVERDUE, 1, 4);
    expect((await look()).dueMs).toBe(EVER);
    const { min } = bucket.read('1.json')?.age ?? expect.unreachable();
    expect(min).toBe(OVERDUE);
    await later(500, 1, 4);
    expect((await look()).dueMs).toBe(DURATION + GRACE - OVERDUE - 500 + 1);
  });
});

describe('the settings that a look returns', () => {
  it('are those that it knows, unless the listing shows other ones', async () => {
    const { bucket, look, record, known, reads } = await scene();
    reads.length = 0;
    expect((await look()).cluster).toBe(known);
    record(30_000);
    expect((await look()).cluster.config.durationMs).toBe(30_000);
    expect(reads.filter((key) => key === 'cluster.json')).toHaveLength(1);
    bucket.remove('cluster.json');
    expect((await look()).cluster).toBe(known);
  });
});

describe('a look ends at once with the tenure', () => {
  it.each(['list', '1.json', 'cluster.json'])('while the store does not answer with %s', async (silent) => {
    const { clock, look, record, reads, stop } = await scene({ silent });
    if (silent === 'cluster.json') record(30_000);
    if (silent === 'cluster.json') reads.push('');
    const ended = look().catch(() => 'ended');
    await clock.advance(100);
    stop.abort(new Error('lost'));
    await clock.advance(0);
    expect(await Promise.race([ended, 'nothing yet'])).toBe('ended');
  });
});
