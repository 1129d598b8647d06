import { describe, expect, it } from 'vitest';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { StoreError } from '../../store/lease-store.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { type ClusterConfig, decodeCluster, encodeCluster, newCluster } from '../model/cluster-config.js';
import type { LeaseEvent } from '../model/lease.js';
import { StoreSession } from '../session/store-session.js';
import { type EnsureClusterOptions, ensureCluster } from './ensure-cluster.js';

// One task on a remote store whose settings another task is to make, or has made and not probed.

const WANTED = { nodes: 2, durationMs: 15_000 };
const SILENT = new Promise<never>(() => undefined);

/** What a request meets before it arrives, by its name and how often there was such a request. */
type Network = (request: string, nth: number, body: string) => unknown;

function scene(network: Network = () => undefined) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const asked: string[] = [];
  const events: LeaseEvent[] = [];
  let takenOver: number | undefined;
  const kept = () => decodeCluster(bucket.read('cluster.json')?.body ?? '{}');
  const met = async (call: MemoryCall) => {
    const request = 'key' in call ? `${call.operation} ${call.key}` : call.operation;
    asked.push(request);
    if (request.includes('probe-')) takenOver ??= kept().proofsTakenOver ?? 0;
    await clock.sleep(5);
    return network(request, asked.filter((each) => each === request).length, 'body' in call ? call.body : '');
  };
  class Store extends MemoryLeaseStore {
    override async create(key: string, body: string, metadata: Readonly<Record<string, string>>) {
      if ((await met({ operation: 'create', key, body })) === 'refused')
        return { status: 'conflict' } as const;
      return super.create(key, body, metadata);
    }
    override async replace(
      key: string,
      body: string,
      metadata: Readonly<Record<string, string>>,
      etag: string,
    ) {
      const what = await met({ operation: 'replace', key, body, etag });
      return what === 'refused'
        ? ({ status: 'conflict' } as const)
        : super.replace(key, body, metadata, etag);
    }
    override async read(key: string) {
      await met({ operation: 'read', key });
      return super.read(key);
    }
    override async list() {
      await met({ operation: 'list' });
      return super.list();
    }
  }
  const store = new Store({ clock, remote: true }, bucket);
  /** As another task does it. */
  const record = (change: Partial<ClusterConfig>) => {
    const { body, etag } = bucket.read('cluster.json') ?? {};
    if (body === undefined || etag === undefined)
      bucket.create('cluster.json', encodeCluster({ ...newCluster(WANTED), proven: false, ...change }), {});
    else bucket.replace('cluster.json', encodeCluster({ ...decodeCluster(body), ...change }), {}, etag);
  };
  const start = (over: Partial<EnsureClusterOptions> = {}) => {
    const session = new StoreSession(store, clock, 60_000);
    const emit = (event: LeaseEvent) => void events.push(event);
    return ensureCluster({ session, clock, random: seededRandom(1), wanted: WANTED, emit, ...over });
  };
  const ensure = (over?: Partial<EnsureClusterOptions>) => inVirtualTime(clock, start(over));
  const probes = () => asked.filter((request) => request.includes('probe-')).length;
  return { clock, events, record, start, ensure, probes, kept, takenOver: () => takenOver };
}

const failed = (fault: StoreError['fault']) => new StoreError('no', { fault, outcome: 'not-applied' });
const fails = (fault: StoreError['fault']) => {
  throw failed(fault);
};

describe('settings that do not exist', () => {
  it.each([0, 1, 4])('are created after %i refusals, and the store is probed', async (refusals) => {
    const it = scene((request, nth) => request === 'create cluster.json' && nth <= refusals && 'refused');
    const { created, raced, cluster } = await it.ensure({ listing: [] });
    expect([created, raced, cluster.config.proven]).toEqual([true, refusals > 0, true]);
    expect(it.probes()).toBeGreaterThan(100);
  });

  it('are created without a probe where the store has been probed', async () => {
    const it = scene();
    await it.ensure({ wanted: { ...WANTED, probed: true } });
    expect([it.kept().proven, it.probes()]).toEqual([true, 0]);
  });
});

describe('a probe that another task has not finished', () => {
  it.each([
    [undefined, 1],
    [2, 3],
  ])('is taken over, which the settings count: %s → %i', async (proofsTakenOver, expected) => {
    const it = scene();
    it.record(proofsTakenOver === undefined ? {} : { proofsTakenOver });
    await it.ensure();
    expect([it.kept().proven, it.takenOver()]).toEqual([true, expected]);
    expect(it.probes()).toBeGreaterThan(100);
  });

  it('is left to a task that takes it over at the same time', async () => {
    const it = scene((request, nth) => {
      if (request === 'replace cluster.json' && nth === 1) it.record({ proofsTakenOver: 1 });
      if (request === 'read cluster.json' && it.clock.monotonic() > 6_000) it.record({ proven: true });
    });
    it.record({});
    await it.ensure();
    expect([it.probes(), it.kept().proven]).toEqual([0, true]);
  });

  it.each<[string, () => unknown, number]>([
    ['refuses the change although there was none', () => 'refused', 0],
    ['denies the change', () => fails('denied'), 0],
    ['is too busy for the change at first', () => fails('unavailable'), 1],
  ])('is taken over where the store %s', async (_, meets, takenOver) => {
    const it = scene((request, nth) => request === 'replace cluster.json' && nth === 1 && meets());
    it.record({});
    await it.ensure();
    expect(it.probes()).toBeGreaterThan(100);
    expect([it.kept().proven, it.takenOver()]).toEqual([true, takenOver]);
  });

  it('is not repeated where it has found a fault meanwhile', async () => {
    const it = scene((request, nth) => {
      if (request === 'read cluster.json' && nth === 2) it.record({ proofFailed: 'it forgets' });
    });
    it.record({});
    await expect(it.ensure()).rejects.toThrow('as an earlier probe has found: it forgets');
    expect(it.probes()).toBe(0);
  });
});

describe('the record of a passed probe', () => {
  const isRecord = (request: string, nth: number, body: string) =>
    request === 'replace cluster.json' && nth === 2 && !body.includes('"proven":false');

  it('is written after a change of another task', async () => {
    const it = scene((...request) => isRecord(...request) && it.record({ name: 'other' }));
    it.record({});
    const { cluster } = await it.ensure();
    expect([cluster.config.proven, cluster.config.name]).toEqual([true, 'other']);
  });

  it.each([
    [false, 'as an earlier probe has found: it forgets'],
    [true, undefined],
  ])(
    'is not written after the fault that another task has found, unless it was thorough: %s',
    async (thorough, text) => {
      const it = scene((...request) => isRecord(...request) && it.record({ proofFailed: 'it forgets' }));
      it.record({});
      const ensured = it.ensure({ thorough });
      if (text === undefined) expect((await ensured).cluster.config.proven).toBe(true);
      else await expect(ensured).rejects.toThrow(text);
    },
  );
});

describe('a probe', () => {
  it.each([true, false])(
    'goes on after a failure of the store, which a listener gets: %s',
    async (listens) => {
      let hasFailed = false;
      const it = scene((request) => {
        if (hasFailed || !request.startsWith('read probe-')) return;
        hasFailed = true;
        fails('unavailable');
      });
      await it.ensure({ listing: [], ...(!listens && { emit: undefined }) });
      expect(it.kept().proven).toBe(true);
      const reports = it.events.filter(({ type }) => type === 'store-failed');
      expect(reports).toEqual(
        listens ? [{ type: 'store-failed', error: failed('unavailable'), sleepMs: expect.any(Number) }] : [],
      );
    },
  );
});

describe('a task whose signal aborts', () => {
  it.each<[string, Partial<ClusterConfig> | undefined, Network]>([
    ['the settings', {}, (request) => request === 'read cluster.json'],
    ['a listing', undefined, (request) => request === 'list'],
    ['a new name', { proven: true }, (request) => request === 'replace cluster.json'],
    ['the change that takes a probe over', {}, (request) => request === 'replace cluster.json'],
    [
      'the settings after such a change',
      {},
      (request, nth) =>
        request === 'replace cluster.json'
          ? 'refused'
          : request === 'read cluster.json' && nth === 8 && 'silent',
    ],
  ])('stops at once while the store does not answer with %s', async (_, settings, network) => {
    let isSilent = false;
    const it = scene((...request) => {
      const what = network(...request);
      if (what === 'refused' || !what) return what;
      isSilent = true;
      return SILENT;
    });
    if (settings !== undefined) it.record(settings);
    const stop = new AbortController();
    const wanted = { ...WANTED, ...(settings?.proven && { clusterName: 'mine' }) };
    const ended = it.start({ signal: stop.signal, wanted }).catch((error) => error.message);
    while (!isSilent) await it.clock.advance(100);
    stop.abort(new Error('enough'));
    await it.clock.advance(0);
    expect(await Promise.race([ended, 'nothing yet'])).toMatch(/enough$|given up$/);
  });
});
