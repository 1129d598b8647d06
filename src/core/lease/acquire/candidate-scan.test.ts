import { describe, expect, it } from 'vitest';
import { inPages } from '../../../../test/support/in-pages.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { retrying } from '../../base/retry.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { type ClusterConfig, encodeCluster, newCluster } from '../model/cluster-config.js';
import type { LeaseEvent } from '../model/lease.js';
import { nativeCodec } from '../model/lease-codec.js';
import { type HeldLease, type LeaseState, leaseKey } from '../model/lease-state.js';
import { readExistingCluster } from '../session/cluster-store.js';
import { StoreSession } from '../session/store-session.js';
import { CandidateScanner } from './candidate-scan.js';
import { CandidateChoice } from './candidates.js';
import { PartialListing } from './partial-listing.js';
import { ShownDurations } from './shown-durations.js';

const DURATION = 15_000;
const EXPIRES = DURATION + 1_000;
const PAGE = 4;
const FREE: LeaseState = { kind: 'released', version: 1, timestamp: 5, durationMs: 0, stampedUntil: 5 };
const HELD: HeldLease = {
  ...{ kind: 'held', taskId: 'other', version: 7, timestamp: 1, durationMs: DURATION, knownNodes: {} },
  ...{ nonce: '00', renewal: 0, acquiredAt: 0, idWidth: 16, narrowIdsUntil: 0 },
};

interface Scenery {
  readonly size?: number;
  /** Number of keys in a page. @default 1000 */
  readonly page?: number;
  readonly config?: Partial<ClusterConfig>;
  readonly seed?: number;
}

/** The scans of one task, of leases that are held. All but the settings are ten seconds old. */
async function scene({ size = 10, page = 1_000, config = {}, seed = 1 }: Scenery = {}) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 0);
  const events: LeaseEvent[] = [];
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
  const session = new StoreSession(inPages(store, page), clock, 1_000);
  const random = seededRandom(seed);
  const put = (id: number, state: LeaseState) => {
    const { body, metadata } = nativeCodec.encode(state);
    const etag = bucket.read(leaseKey(id))?.etag;
    if (etag === undefined) bucket.create(leaseKey(id), body, metadata);
    else bucket.replace(leaseKey(id), body, metadata, etag);
  };
  const record = (change: Partial<ClusterConfig> = {}) => {
    bucket.remove('cluster.json');
    const base = newCluster({ nodes: size, durationMs: DURATION, graceMs: 1_000 });
    bucket.create('cluster.json', encodeCluster({ ...base, bootstrapped: true, ...config, ...change }), {});
  };
  for (let id = 0; id < size; id += 1) put(id, { ...HELD, nonce: `${id}` });
  await clock.advance(10_000);
  record();
  const cluster = await readExistingCluster(session);
  const choice = new CandidateChoice(random);
  const context = { session, clock, random, taskId: 't', until: 0, shown: new ShownDurations(clock) };
  const scanner = new CandidateScanner(
    {
      ...context,
      emit: (event) => events.push(event),
      retry: retrying({ clock, random, mayPass: () => false }),
    },
    choice,
  );
  const rowOf = (id: number) => bucket.list().objects.find(({ key }) => key === leaseKey(id));
  const candidateOf = (id: number) => ({ id, key: leaseKey(id), row: rowOf(id) });
  const all = (waited = false) => scanner.again(cluster, { pages: 'all' }, waited);
  const first = (listing = new PartialListing(undefined)) => scanner.first(cluster, listing);
  reads.length = 0;
  return { clock, bucket, events, reads, put, record, cluster, scanner, candidateOf, choice, all, first };
}

describe('a first scan', () => {
  it('reports an absent object where the settings are older than the listing', async () => {
    const { clock, bucket, first, scanner, events } = await scene();
    await clock.advance(1);
    for (const id of [7, 3]) bucket.remove(leaseKey(id));
    const { candidates, isConclusive } = await first();
    expect([candidates, isConclusive]).toEqual([[], true]);
    expect(events.map((event) => event.type === 'damaged' && event.key)).toEqual(['3.json', '7.json']);
    scanner.reportDamage('1.json', 'is damaged');
    expect(scanner.damaged).toEqual(['1.json', '3.json', '7.json']);
  });

  it.each([
    [49, false],
    [50, false],
    [51, true],
  ])(
    'of two pages, 50 ms apart, shows ids as damaged where the settings were %i ms old then: %s',
    async (age, shows) => {
      const { clock, bucket, first, scanner } = await scene({ size: 6, page: PAGE });
      await clock.advance(age - 50);
      bucket.remove('5.json');
      const listing = new PartialListing(undefined);
      const fetch = listing.fetchNext.bind(listing);
      listing.fetchNext = async (...args) => {
        if (listing.pages > 0) await clock.advance(50);
        return fetch(...args);
      };
      const { isConclusive } = await first(listing);
      expect([scanner.damaged, isConclusive]).toEqual([shows ? ['5.json'] : [], shows]);
    },
  );
});

describe('a further scan', () => {
  it('of one page shows what is there, and says nothing of the rest', async () => {
    const { bucket, put, cluster, scanner } = await scene({ size: 10, page: PAGE });
    put(1, FREE);
    put(9, FREE);
    bucket.remove('4.json');
    const scan = await scanner.again(cluster, { pages: 'one', after: '2.json' }, false);
    expect(scan.listing.objects.map(({ key }) => key)).toEqual(['3.json', '5.json', '6.json', '7.json']);
    expect([scan.candidates, scan.isConclusive, scanner.damaged]).toEqual([[], true, []]);
  });

  it('of one page finds ids before the bootstrap that have no object yet', async () => {
    const { bucket, cluster, scanner } = await scene({ page: PAGE, config: { bootstrapped: false } });
    bucket.remove('4.json');
    bucket.remove('8.json');
    const scan = await scanner.again(cluster, { pages: 'one', after: '2.json' }, false);
    expect(scan.candidates.map(({ id }) => id)).toEqual([4]);
  });

  it('of all pages ends where it shows enough', async () => {
    const { put, choice, all } = await scene({ page: PAGE });
    choice.presumeContention();
    put(1, FREE);
    const { listing, isConclusive } = await all();
    expect([listing.complete, isConclusive]).toEqual([false, false]);
  });

  it('of one page begins at the page of a complete listing that chance says, and not of another one', async () => {
    const begins = new Set<string | undefined>();
    for (let seed = 1; seed <= 30; seed += 1) {
      const { put, cluster, choice, scanner, all } = await scene({ page: PAGE, seed });
      await all();
      put(0, FREE);
      choice.presumeContention();
      expect((await all()).listing.complete).toBe(false);
      const { listing } = await scanner.again(cluster, { pages: 'one' }, false);
      begins.add(listing.pageStarts[0]);
    }
    expect([...begins].sort()).toEqual(['3.json', '7.json', undefined]);
  });

  it('does not report what is absent in a listing that is older than the settings', async () => {
    const { bucket, record, all, scanner } = await scene({ size: 4 });
    bucket.remove('3.json');
    record({ peak: 5 });
    const { isConclusive, cluster } = await all();
    expect([cluster.config.peak, isConclusive, scanner.damaged]).toEqual([5, false, ['3.json']]);
    record({ size: 5, peak: 6 });
    expect([(await all(true)).isConclusive, scanner.damaged]).toEqual([false, ['3.json']]);
  });
});

describe('the settings are read again by a task', () => {
  it.each<[string, boolean, { waited?: boolean; free?: boolean; changed?: boolean; after?: string }]>([
    ['that has waited, where they have changed', true, { waited: true, free: true, changed: true }],
    ['that finds no id, where they have changed', true, { changed: true }],
    ['that has not waited and finds an id', false, { free: true, changed: true }],
    ['where they have not changed', false, { waited: true, free: true }],
    ['that has waited and does not see them', true, { waited: true, free: true, after: '0.json' }],
    ['that has not waited and does not see them', false, { free: true, after: '0.json' }],
    ['that does not see them and finds no id', false, { waited: true, after: '0.json' }],
  ])('%s: %s', async (_, reads, { waited = false, free = false, changed = false, after }) => {
    const them = await scene({ page: after === undefined ? 1_000 : PAGE });
    if (free) them.put(2, FREE);
    if (changed) them.record({ peak: 20 });
    await them.scanner.again(
      them.cluster,
      after === undefined ? { pages: 'all' } : { pages: 'one', after },
      waited,
    );
    expect(them.reads).toEqual(reads ? ['cluster.json'] : []);
  });

  it.each([
    [1_000, []],
    [1_001, ['cluster.json']],
  ])('that finds an id without an object %i ms after it has read them: %j', async (ageMs, expected) => {
    const { clock, bucket, all, reads } = await scene({ config: { bootstrapped: false } });
    bucket.remove('3.json');
    await clock.advance(ageMs);
    await all();
    expect(reads).toEqual(expected);
  });
});

describe('a candidate that is not free', () => {
  const isFound = async ({ all }: Awaited<ReturnType<typeof scene>>) => (await all()).candidates.length === 1;

  it('is no candidate until the time that its object says', async () => {
    const it = await scene();
    it.put(3, FREE);
    expect(await isFound(it)).toBe(true);
    it.scanner.dismiss(it.candidateOf(3), it.clock.monotonic() + 100);
    await it.clock.advance(99);
    expect(await isFound(it)).toBe(false);
    await it.clock.advance(1);
    expect(await isFound(it)).toBe(true);
  });

  it.each([
    [{ generation: 1 }, true],
    [{ peak: 20 }, false],
  ])('is one again where the settings have another generation: %j', async (change, expected) => {
    const it = await scene();
    it.put(3, FREE);
    it.scanner.dismiss(it.candidateOf(3), Number.POSITIVE_INFINITY);
    it.record(change);
    expect(await isFound(it)).toBe(expected);
  });
});

describe('the first expiry', () => {
  it.each([
    ['that of the leases, of one page', [], {}, EXPIRES + 1, undefined],
    ['that of the leases, of several pages', [], { page: PAGE }, EXPIRES + 1, '0.jso'],
    [
      'that of an id that is not free for less time',
      [
        [5, 12_000],
        [6, 11_000],
        [7, 13_000],
      ],
      { page: PAGE },
      11_000,
      '6.jso',
    ],
    ['not that of an id that is not free for longer', [[5, 99_000]], { page: PAGE }, EXPIRES + 1, '0.jso'],
    ['not one that is over', [[5, 9_000]], { page: PAGE }, EXPIRES + 1, '0.jso'],
  ] as const)('is %s', async (_, dismissed, scenery, at, after) => {
    const { all, scanner, candidateOf } = await scene(scenery);
    const scan = await all();
    for (const [id, until] of dismissed) scanner.dismiss(candidateOf(id), until);
    expect(scanner.firstExpiry(scan)).toEqual({ expiryAt: at, expiryAfter: after });
  });

  it('is none where no lease is held', async () => {
    const { all, put, scanner } = await scene({ size: 6, page: PAGE });
    for (let id = 0; id < 6; id += 1) put(id, FREE);
    const scan = await all();
    expect(scanner.firstExpiry(scan)).toEqual({ expiryAt: Number.POSITIVE_INFINITY, expiryAfter: undefined });
  });

  it('is not that of an id that another task has taken meanwhile', async () => {
    const { clock, all, put, scanner, candidateOf } = await scene();
    put(5, FREE);
    scanner.dismiss(candidateOf(5), 11_000);
    put(5, HELD);
    await clock.advance(100);
    expect(scanner.firstExpiry(await all()).expiryAt).toBe(EXPIRES + 1);
  });
});
