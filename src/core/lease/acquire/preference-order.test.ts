import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { retrying } from '../../base/retry.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { encodeCluster, newCluster } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { type LeaseState, leaseKey, nodeIdOf } from '../model/lease-state.js';
import { stickyMark } from '../model/sticky.js';
import { StoreSession } from '../session/store-session.js';
import type { CandidateScan } from './candidate-scan.js';
import { classify } from './candidates.js';
import { Preference } from './preference.js';
import { ShownDurations } from './shown-durations.js';

const DURATION = 15_000;
const EXPIRES = DURATION + 1_000;
const MINE = stickyMark('mine');

/** What is in the store: vacant, released or held, by the sticky key. */
type Content = 'vacant' | readonly ['released' | 'held', key?: string];

/** A task with a sticky key. The objects of `size` ids are in the store, each 10 ms older than the next one. */
async function scene(contents: readonly Content[], { size = contents.length, preferId = -1 } = {}) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 0);
  const reads: string[] = [];
  const store = new MemoryLeaseStore(
    {
      clock,
      intercept: async (call, apply) => {
        if (call.operation === 'read') reads.push(call.key);
        return apply();
      },
    },
    bucket,
  );
  const session = new StoreSession(store, clock, 1_000);
  const config = newCluster({ nodes: size, durationMs: DURATION, graceMs: 1_000 });
  bucket.create('cluster.json', encodeCluster(config), {});
  for (const [id, content] of contents.entries()) {
    const { body, metadata } = nativeCodec.encode(stateOf(id, content));
    bucket.create(leaseKey(id), body, metadata);
    await clock.advance(10);
  }
  const shown = new ShownDurations(clock);
  const retry = retrying({ clock, random: seededRandom(1), mayPass: () => false });
  const preference = new Preference({ session, retry, sticky: MINE, preferId, shown });
  const scan = (): CandidateScan => {
    const listing = bucket.list();
    const { candidates } = classify(listing.objects, config, shown);
    const cluster = { config, body: '', etag: '', writtenAt: 0, isObserved: false };
    return { cluster, listing, candidates, scannedAt: clock.monotonic() } as unknown as CandidateScan;
  };
  const inOrder = async (isContended = false, more: CandidateScan['candidates'] = []) => {
    const groups = await preference.inOrder([...scan().candidates, ...more], isContended);
    return groups.map((group) => group.map(({ id }) => id));
  };
  return { clock, bucket, reads, preference, scan, inOrder };
}

function stateOf(id: number, content: Content): LeaseState {
  if (content === 'vacant') return { kind: 'vacant' };
  const [kind, key] = content;
  const base = { version: 1, timestamp: 1, sticky: key === undefined ? undefined : stickyMark(key) };
  if (kind === 'released') return { ...base, kind, durationMs: 0, stampedUntil: id };
  return {
    ...{ ...base, kind, taskId: 'other', durationMs: DURATION, knownNodes: {}, nonce: `${id}` },
    ...{ renewal: 0, acquiredAt: 0, idWidth: 16, narrowIdsUntil: 0 },
  };
}

describe('the order of the candidates', () => {
  const contents: Content[] = [
    ...([['released', 'other'], ['released', 'mine'], ['released'], 'vacant'] as const),
    ...([
      ['released', 'mine'],
      ['released', 'another'],
      ['released', 'mine'],
      ['held', 'mine'],
    ] as const),
  ];

  it('is: the preferred id, the own ones, the last one first, those without a key, and others, the longest free first', async () => {
    const { inOrder, reads } = await scene(contents, { preferId: 4 });
    const absent = { id: 9, key: '9.json', row: undefined };
    expect(await inOrder(false, [absent])).toEqual([[4], [6], [1], [2, 3, 9], [0, 5]]);
    expect(reads.sort()).toEqual(['0.json', '1.json', '2.json', '5.json', '6.json']);
    reads.length = 0;
    expect(await inOrder()).toEqual([[4], [6], [1], [2, 3], [0, 5]]);
    expect(reads).toEqual([]);
  });

  it('is that of the listing after the preferred id, without a read, where tasks compete', async () => {
    const { inOrder, reads } = await scene(contents, { preferId: 4 });
    expect(await inOrder(true)).toEqual([[4], [0, 1, 2, 3, 5, 6]]);
    expect(reads).toEqual([]);
  });

  it.each([
    [64, 64],
    [65, 0],
  ])('is by the keys of at most 64 ids: of %i it reads %i', async (count, expected) => {
    const { inOrder, reads } = await scene(
      Array.from({ length: count }, () => ['released', 'mine'] as const),
    );
    expect(await inOrder()).toHaveLength(expected === 0 ? 2 : 1 + expected + 2);
    expect(reads).toHaveLength(expected);
  });

  it('counts an object that is deleted meanwhile as one without a key', async () => {
    const { bucket, inOrder, preference, scan } = await scene([
      ['released', 'other'],
      ['released', 'mine'],
    ]);
    const { candidates } = scan();
    bucket.remove('0.json');
    const groups = await preference.inOrder([...candidates], false);
    expect(groups.map((group) => group.map(({ id }) => id))).toEqual([[], [1], [0], []]);
    expect(await inOrder()).toEqual([[], [1], [], []]);
  });
});

describe('the former id of a task', () => {
  it('is the last one that has its key, where that is held', async () => {
    const { preference, scan, reads } = await scene(
      [
        ['held', 'mine'],
        ['held', 'mine'],
        ['held', 'other'],
        'vacant',
        ['released', 'other'],
        ['held', 'mine'],
      ],
      { size: 5 },
    );
    expect((await preference.former(scan()))?.id).toBe(1);
    expect(reads.sort()).toEqual(['0.json', '1.json', '2.json', '4.json']);
  });

  it('is none where the last one that has its key is free', async () => {
    const { preference, scan } = await scene([
      ['held', 'mine'],
      ['released', 'mine'],
    ]);
    expect(await preference.former(scan())).toBeUndefined();
  });

  it.each([
    [64, 64 + 1],
    [65, 1],
  ])(
    'is found without the free ids where there are many: of %i and one that is held it reads %i',
    async (free, count) => {
      const { preference, scan, reads } = await scene([
        ['held', 'mine'],
        ...Array.from({ length: free }, () => ['released', 'other'] as const),
      ]);
      expect((await preference.former(scan()))?.id).toBe(0);
      expect(reads).toHaveLength(count);
    },
  );

  it('is one of the 64 that were written first, of many that are held', async () => {
    const { preference, scan, reads } = await scene(
      Array.from({ length: 70 }, () => ['held', 'mine'] as const),
    );
    expect((await preference.former(scan()))?.id).toBe(63);
    expect(reads.map(nodeIdOf).sort((a = 0, b = 0) => a - b)).toEqual(
      Array.from({ length: 64 }, (_, id) => id),
    );
  });

  it('can be found expired when its age is above the limit, and not once it is written or gone', async () => {
    const { clock, bucket, preference, scan } = await scene([['held', 'mine']]);
    const former = (await preference.former(scan())) ?? expect.unreachable();
    await clock.advance(5_000);
    expect(preference.expiryOf(former, scan())).toBe(EXPIRES + 1);
    await clock.advance(EXPIRES - 5_010);
    expect(preference.expiryOf(former, scan())).toBe(EXPIRES + 1);
    await clock.advance(1);
    expect(preference.expiryOf(former, scan())).toBeUndefined();
    bucket.remove('0.json');
    expect(preference.expiryOf(former, scan())).toBeUndefined();
  });

  it('is none whose object is as small as a tombstone', async () => {
    const { preference, scan } = await scene([['held', 'mine']]);
    const { listing, ...rest } = scan();
    const objects = listing.objects.map((row) => ({ ...row, size: nativeCodec.tombstoneMaxBytes }));
    expect(await preference.former({ ...rest, listing: { ...listing, objects } as never })).toBeUndefined();
  });
});
