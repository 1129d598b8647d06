import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { acquireLease } from '../lease/acquire/acquire-lease.js';
import { staticLease } from '../lease/hold/static-lease.js';
import { encodeCluster } from '../lease/model/cluster-config.js';
import type { Lease } from '../lease/model/lease.js';
import { nativeCodec } from '../lease/model/lease-codec.js';
import { evictHolder } from '../lease/operate/evict.js';
import { readCluster } from '../lease/session/cluster-store.js';
import { StoreSession } from '../lease/session/store-session.js';
import { StoreError } from '../store/lease-store.js';
import { MemoryBucket } from '../store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../store/memory/memory-lease-store.js';
import { cluster16, snowflake } from './id-layout.js';
import { IdsExhaustedError } from './id-time.js';
import { issuedIds, uniqueIds } from './lease-ids.js';
import type { UniqueIdGenerator } from './unique-id-generator.js';

const DURATION = 15_000;
const EPOCH = 1_790_000_000_000;

/** A cluster on a memory store in virtual time, and a network that can be made to fail. */
function cluster(nodes = 1) {
  const clock = new VirtualClock();
  // The store's own, and right.
  const storeClock = {
    now: () => EPOCH + clock.monotonic(),
    monotonic: () => clock.monotonic(),
    sleep: () => Promise.reject(new Error()),
  };
  const direct = new MemoryLeaseStore({ clock }, new MemoryBucket(storeClock, 1));
  const network: { fault: ((call: MemoryCall) => Promise<void>) | undefined; calls: MemoryCall[] } = {
    fault: undefined,
    calls: [],
  };
  const store = direct.connect(async (call, apply) => {
    network.calls.push(call);
    await network.fault?.(call);
    return apply();
  });
  const session = new StoreSession(direct, clock, 1_000);
  let tasks = 0;
  const start = (): Promise<Lease> => {
    tasks += 1;
    const own = { taskId: `task-${tasks}`, random: seededRandom(tasks), clock, store };
    return acquireLease({ ...own, nodes, durationMs: DURATION, graceMs: 1_000 });
  };
  const lease = async (id = 0) => {
    const object = await direct.read(`${id}.json`);
    return nativeCodec.decode(object?.body ?? '', {});
  };
  /** Widens the ids, as an operator does. */
  const widen = async (idWidth: number) => {
    const stored = await readCluster(session);
    if (stored === undefined) throw new Error('no cluster');
    await session.write(
      'cluster.json',
      { body: encodeCluster({ ...stored.config, idWidth }), metadata: {} },
      stored.etag,
    );
  };
  return { clock, storeNow: storeClock.now, direct, network, session, start, lease, widen };
}

const away = () => Promise.reject(new StoreError('away', { fault: 'unreachable', outcome: 'not-applied' }));

function drain(ids: UniqueIdGenerator): bigint[] {
  const all: bigint[] = [];
  try {
    for (;;) all.push(ids.next());
  } catch (error) {
    if (!(error instanceof IdsExhaustedError)) throw error;
  }
  return all;
}

const timesOf = (ids: readonly bigint[]) => [ids[0], ids.at(-1)].map((id) => Number((id ?? 0n) >> 16n));

describe('the ids of a lease', () => {
  it('carry store time, however wrong this host’s clock is, and the node id', async () => {
    const { clock, start, storeNow } = cluster();
    const lease = await start();
    clock.wallOffset += 86_400_000;
    const ids = await uniqueIds(lease);
    const { timeMs, nodeId } = ids.decode(ids.next());
    expect(nodeId).toBe(0);
    expect(storeNow() - timeMs).toBeGreaterThanOrEqual(4_000);
    expect(storeNow() - timeMs).toBeLessThan(4_100);
  });

  it('never carry a time at or past the timestamp of the lease, however many are requested, and continue with its renewal', async () => {
    const { clock, start, lease: stored } = cluster();
    const lease = await start();
    const ids = await uniqueIds(lease, { lagMs: 0, advanceMs: 60_000 });
    const made = drain(ids);
    const held = await stored();
    if (held.kind !== 'held') throw new Error(held.kind);
    expect(timesOf(made)[1]).toBe(held.timestamp - 1);
    expect(() => ids.next()).toThrow(/stamped past the end of the lease/);
    const next = ids.nextAsync();
    await clock.advance(DURATION / 3 + 100);
    expect(Number((await next) >> 16n)).toBe(held.timestamp);
    expect(ids.decode(await next).sequence).toBe(0);
  });

  it('begin after the last id of the previous tenure if that was released, without any wait', async () => {
    const { clock, start, lease: stored, storeNow } = cluster();
    const first = await start();
    const made = drain(await uniqueIds(first));
    await first.release();
    const tombstone = await stored();
    expect(tombstone).toMatchObject({ kind: 'released', stampedUntil: timesOf(made)[1] });
    await clock.advance(1);
    const second = await start();
    const later = (await uniqueIds(second)).next();
    expect(later).toBeGreaterThan(made.at(-1) as bigint);
    expect(Number(later >> 16n)).toBeLessThan(storeNow() + 4_100);
  });

  it('begin after the last one of a run that spanned milliseconds', async () => {
    const { start } = cluster();
    const first = await start();
    const made = new BigUint64Array(1_000);
    (await uniqueIds(first)).fill(made);
    const [begin = 0, end = 0] = timesOf([...made]);
    expect(end - begin).toBe(3);
    await first.release();
    const second = await start();
    expect(second.tenureTime?.after).toBeGreaterThanOrEqual(end);
  });

  it('begin after the floor of the cluster: up to there, other nodes may have made narrower ones', async () => {
    const { start, session, storeNow } = cluster(2);
    const first = await start();
    const stored = await readCluster(session);
    if (stored === undefined) throw new Error('no cluster');
    const idFloor = storeNow() + 20_000;
    await session.write(
      'cluster.json',
      { body: encodeCluster({ ...stored.config, idFloor }), metadata: {} },
      stored.etag,
    );
    const second = await start();
    expect([first, second].map(({ tenureTime }) => tenureTime?.after)).toEqual([0, idFloor]);
    expect(second.tenureTime?.before()).toBeGreaterThan(idFloor);
    await second.release();
    expect((await start()).tenureTime?.after).toBe(idFloor);
  });

  it('begin after those of the last tenure that made ids, although one without ids came in between', async () => {
    const { start, lease: stored } = cluster();
    const first = await start();
    const made = drain(await uniqueIds(first));
    await first.release();
    const idle = await start();
    // As a keeper in a thread records it, when its main thread has made no ids.
    idle.tenureTime?.stamp(0);
    await idle.release();
    expect(await stored()).toMatchObject({ kind: 'released', stampedUntil: timesOf(made)[1] });
  });

  it('count as narrow up to the last id of the previous tenure, if the lease begins wide', async () => {
    const { start, widen, lease: stored } = cluster();
    const first = await start();
    const made = drain(await uniqueIds(first));
    await first.release();
    await widen(9);
    await start();
    expect(await stored()).toMatchObject({ kind: 'held', idWidth: 9, narrowIdsUntil: timesOf(made)[1] });
  });

  it('are not narrower than in the cluster, and no width is published that a fixed layout does not have', async () => {
    const { clock, start, widen, lease: stored } = cluster();
    const lease = await start();
    const ids = await uniqueIds(lease, { layout: cluster16(8) });
    await widen(9);
    await clock.advance(3 * DURATION);
    // A program that calls each time continues as before: its ids hold back the growth, and harm no other
    // node.
    expect(await uniqueIds(lease, { layout: cluster16(8) })).toBe(ids);
    expect(await stored()).toMatchObject({ kind: 'held', idWidth: 8 });
    await lease.release();
    const next = await start();
    await expect(uniqueIds(next, { layout: cluster16(8) })).rejects.toThrow(
      /^layout: expected cluster16\(9\) at least.* got "cluster16\(8\)"$/,
    );
    expect((await uniqueIds(next, { layout: snowflake() })).layout.name).toBe('snowflake');
  });

  it('need not wait for a tenure that made none', async () => {
    const { start, storeNow } = cluster();
    const first = await start();
    await first.release();
    const id = (await uniqueIds(await start())).next();
    expect(Math.abs(Number(id >> 16n) + 4_000 - storeNow())).toBeLessThan(100);
  });

  it('begin at the timestamp of a tenure that was not released, however much of it was used', async () => {
    const { clock, start, lease: stored, network } = cluster();
    const first = await start();
    const made = drain(await uniqueIds(first, { lagMs: 0, advanceMs: 60_000 }));
    const held = await stored();
    network.fault = away;
    await clock.advance(2 * DURATION);
    network.fault = undefined;
    const second = await start();
    if (held.kind !== 'held') throw new Error(held.kind);
    expect(second.tenureTime?.after).toBe(held.timestamp - 1);
    const later = (await uniqueIds(second)).next();
    expect(later).toBeGreaterThan(made.at(-1) as bigint);
  });

  it('begin at the timestamp of a tenure that was ended by force', async () => {
    const { clock, start, session, lease: stored } = cluster();
    const first = await start();
    await uniqueIds(first);
    const held = await stored();
    await evictHolder(session, 0);
    const second = start();
    await clock.advance(DURATION + 2_000);
    if (held.kind !== 'held') throw new Error(held.kind);
    expect((await second).tenureTime?.after).toBe(held.timestamp - 1);
  });

  it('begin a duration from now if the previous tenure did not record a time', async () => {
    const { clock, start, direct, storeNow } = cluster();
    await (await start()).release();
    const object = await direct.read('0.json');
    await direct.replace('0.json', '', { version: '1' }, object?.etag ?? '');
    const lease = await start();
    expect((lease.tenureTime?.after ?? 0) - storeNow() - DURATION).toBeOneOf([0, 1]);
    expect(lease.tenureTime?.before()).toBeGreaterThan(storeNow() + DURATION);
    const ids = await uniqueIds(lease);
    expect(() => ids.next()).toThrow(IdsExhaustedError);
    const id = ids.nextAsync();
    await clock.advance(DURATION);
    expect(Number((await id) >> 16n)).toBeGreaterThan(EPOCH + DURATION);
  });

  it('are counted', async () => {
    const lease = await cluster().start();
    expect([issuedIds(lease), issuedIds({ tenureTime: undefined })]).toEqual([0, 0]);
    const ids = await uniqueIds(lease);
    for (let made = 0; made < 70; made += 1) ids.next();
    ids.fill(new BigUint64Array(100));
    expect(issuedIds(lease)).toBe(170);
  });

  it('are made by one generator, however often it is asked for', async () => {
    const { start } = cluster();
    const lease = await start();
    const [one, two] = await Promise.all([
      uniqueIds(lease),
      uniqueIds({ id: lease.id, tenureTime: lease.tenureTime }),
    ]);
    expect(two).toBe(one);
    await expect(uniqueIds(lease, { layout: snowflake() })).rejects.toThrow(
      /^layout: expected what the lease's generator was made with/,
    );
    await expect(uniqueIds(lease, { lagMs: 1 })).rejects.toThrow(/^lagMs: expected/);
  });

  it('are made by one generator, also where the process has a second copy of this package', async () => {
    const { start } = cluster();
    const lease = await start();
    const generator = await uniqueIds(lease);
    const path = './lease-ids.ts?copy';
    const copy: typeof import('./lease-ids.js') = await import(path);
    expect(copy.uniqueIds).not.toBe(uniqueIds);
    expect(await copy.uniqueIds(lease)).toBe(generator);
  });

  it('end with the lease, and at once with a pause past its deadline', async () => {
    const { clock, start } = cluster();
    const lease = await start();
    const ids = await uniqueIds(lease);
    ids.next();
    clock.freeze(2 * DURATION);
    // The current run is not checked again in the same step. Its ids are unique even so.
    drainQuietly(ids);
    expect(() => ids.next()).toThrow(expect.objectContaining({ code: 'LEASE_LOST', reason: 'paused' }));
    expect(lease.signal.aborted).toBe(true);
    await expect(ids.nextAsync()).rejects.toMatchObject({ code: 'LEASE_LOST' });
    await expect(uniqueIds(lease)).rejects.toMatchObject({ code: 'LEASE_LOST' });
  });

  it('are refused if the process pauses past the deadline while they are prepared', async () => {
    const { clock, network, start } = cluster();
    const lease = await start();
    network.fault = async () => clock.freeze(2 * DURATION);
    await expect(uniqueIds(lease)).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'paused' });
  });

  it('end with the release, also for a caller that waits for one', async () => {
    const { start } = cluster();
    const lease = await start();
    const ids = await uniqueIds(lease);
    drain(ids);
    const waiting = ids.nextAsync();
    const ending = lease.release();
    expect(() => ids.next()).toThrow(expect.objectContaining({ code: 'LEASE_RELEASED' }));
    await expect(waiting).rejects.toMatchObject({ code: 'LEASE_RELEASED', nodeId: 0, version: 1 });
    await ending;
    await expect(uniqueIds(lease)).rejects.toMatchObject({ code: 'LEASE_RELEASED' });
  });

  it('are waited for by any number of callers at once, without a warning of a leak', async () => {
    const { start, clock } = cluster();
    const lease = await start();
    const ids = await uniqueIds(lease);
    drain(ids);
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => void warnings.push(warning);
    process.on('warning', onWarning);
    const giving = new AbortController();
    const waiting = Array.from({ length: 100 }, () => ids.nextAsync(giving.signal));
    const others = Array.from({ length: 1_000 }, () => ids.nextAsync());
    expect(getEventListeners(lease.tenureTime?.signal as AbortSignal, 'abort').length).toBeLessThan(10);
    await clock.advance(20);
    expect(new Set(await Promise.all([...waiting, ...others])).size).toBe(1_100);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
    expect(clock.sleepers).toBeLessThan(5);
  });

  it('are waited for as long as the caller wants, and no listener is left', async () => {
    const { start, clock } = cluster();
    const lease = await start();
    const ids = await uniqueIds(lease);
    drain(ids);
    const giving = new AbortController();
    const signal = lease.tenureTime?.signal as AbortSignal;
    const before = getEventListeners(signal, 'abort').length;
    const waiting = ids.nextAsync(giving.signal);
    giving.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    const next = ids.nextAsync(giving.signal).catch((error: Error) => error.message);
    expect(await next).toBe('enough');
    await clock.advance(200);
    expect(getEventListeners(signal, 'abort').length).toBe(before);
    expect(getEventListeners(giving.signal, 'abort').length).toBe(0);
  });
});

/** The rest of a run. */
function drainQuietly(ids: UniqueIdGenerator): void {
  try {
    for (let n = 0; n < 5_000; n += 1) ids.next();
  } catch {
    // That is what is looked at next.
  }
}

describe('a lease with unique ids', () => {
  it('has the width read after it was acquired: an earlier read may be outdated', async () => {
    const { start, widen, network } = cluster();
    let widened = false;
    network.fault = async (call) => {
      if (widened || call.operation !== 'create' || call.key !== '0.json') return;
      widened = true;
      await widen(9);
    };
    const lease = await start();
    expect(widened).toBe(true);
    expect((await uniqueIds(lease)).layout).toEqual(cluster16(9));
  });

  it('waits for the store as long as it is held, or the caller wants', async () => {
    const { clock, start, network } = cluster();
    const lease = await start();
    const signal = lease.tenureTime?.signal as AbortSignal;
    // The single tasks after the start are over then. The keeper waits for its time to renew.
    await clock.advance(500);
    const listening = getEventListeners(signal, 'abort').length;
    network.fault = away;
    const giving = new AbortController();
    const given = uniqueIds(lease, { signal: giving.signal });
    const patient = uniqueIds(lease);
    patient.catch(() => undefined);
    await clock.advance(2_000);
    giving.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    network.fault = undefined;
    await clock.advance(2_000);
    expect((await patient).layout).toEqual(cluster16(8));
    // Both have stopped waiting. The generator listens.
    expect(getEventListeners(signal, 'abort').length).toBe(listening + 1);
    expect(getEventListeners(giving.signal, 'abort').length).toBe(0);
    await expect(uniqueIds(lease, { signal: AbortSignal.abort(new Error('never begun')) })).rejects.toThrow(
      'never begun',
    );
  });

  it('reports its loss if it is lost before the store has answered', async () => {
    const { clock, start, network } = cluster();
    const lease = await start();
    network.fault = away;
    const ids = uniqueIds(lease);
    ids.catch(() => undefined);
    await clock.advance(DURATION);
    await expect(ids).rejects.toMatchObject({ code: 'LEASE_LOST' });
  });

  it('must have a tenure, and room in the layout', async () => {
    const { start } = cluster(1_020);
    await expect(uniqueIds(staticLease({ id: 3, taskId: 'web-3' }))).rejects.toThrow(
      /^lease: expected a leased node id \(standaloneIds.* got "the fixed node id 3"$/,
    );
    for (const [none, shown] of [
      [undefined, 'undefined'],
      [Promise.resolve(), '[object Promise]'],
    ] as const)
      await expect(uniqueIds(none as never)).rejects.toThrow(
        `lease: expected a leased node id (standaloneIds makes ids for a fixed one, by the wall clock), got ${shown}`,
      );
    const { tenureTime } = await start();
    await expect(uniqueIds({ id: 1_016, tenureTime }, { layout: snowflake() })).rejects.toThrow(
      'node id: expected a node id from 0 to 1015, since layout snowflake has 10 bits for it (8 are reserved), got 1016',
    );
    await expect(uniqueIds({ id: 300, tenureTime }, { layout: cluster16(8) })).rejects.toThrow(
      /^node id: expected a node id from 0 to 247/,
    );
    for (const layout of ['snowflake', null, snowflake]) {
      await expect(uniqueIds({ id: 3, tenureTime }, { layout: layout as never })).rejects.toThrow(
        /^layout: expected what cluster16\(\)/,
      );
    }
    await expect(uniqueIds({ id: 3, tenureTime }, { layout: {} as never })).rejects.toThrow(
      /^layout\.timeBits: expected/,
    );
    const misspelt = { layouts: snowflake() };
    await expect(uniqueIds({ id: 3, tenureTime }, misspelt as object)).rejects.toThrow(
      /^options: expected one of layout, lagMs, advanceMs, signal/,
    );
    expect((await uniqueIds({ id: 1_015, tenureTime }, { layout: snowflake() })).node).toBe(1_023);
  });
});

describe('wider ids', () => {
  it('are made from the next renewal on, and only then does the lease say so', async () => {
    const { clock, start, widen, lease: stored } = cluster();
    const lease = await start();
    const ids = await uniqueIds(lease);
    const last = ids.next();
    await widen(10);
    await clock.advance(4_900);
    expect([ids.layout.nodeBits, await stored()]).toMatchObject([8, { idWidth: 8 }]);
    await clock.advance(200);
    expect([ids.layout.nodeBits, await stored()]).toMatchObject([10, { idWidth: 10, renewal: 2 }]);
    const next = ids.next();
    expect(next).toBeGreaterThan(last);
    expect(Number(next & 1023n)).toBe(8);
    await clock.advance(30_000);
    expect(await stored()).toMatchObject({ idWidth: 10, renewal: 8 });
  });

  it('never share a millisecond with narrow ones of the same node', async () => {
    const { clock, start, widen } = cluster();
    const lease = await start();
    const ids = await uniqueIds(lease);
    const narrow = [ids.next(), ids.next(), ids.next()];
    await widen(10);
    await clock.advance(0);
    lease.tenureTime?.onWidth(() => undefined);
    // Just then, in the middle of a millisecond: store time does not move.
    ids.adopt(cluster16(10));
    const [, lastNarrow = 0] = timesOf(narrow);
    expect(timesOf([ids.next()])[0]).toBe(lastNarrow + 1);
  });

  it('are not published as long as a listener has not adopted them, while the lease is renewed', async () => {
    const { clock, start, widen, lease: stored } = cluster();
    const lease = await start();
    let answer = (): void => undefined;
    const forget = lease.tenureTime?.onWidth(() => new Promise<void>((resolve) => (answer = resolve)));
    await widen(9);
    await clock.advance(60_000);
    expect([lease.tenureTime?.idWidth, lease.isValid(), await stored()]).toMatchObject([
      9,
      true,
      { idWidth: 8, renewal: 12 },
    ]);
    answer();
    await clock.advance(5_000);
    expect(await stored()).toMatchObject({ idWidth: 9 });
    forget?.();
    await widen(10);
    await clock.advance(5_000);
    expect(await stored()).toMatchObject({ idWidth: 10 });
  });

  it('are learned later, at no cost to the lease, where the cluster’s settings cannot be read', async () => {
    const { clock, start, widen, network, lease: stored } = cluster();
    const lease = await start();
    await widen(9);
    network.fault = (call) => (call.operation === 'read' ? new Promise(() => undefined) : Promise.resolve());
    await clock.advance(300_000);
    expect([lease.isValid(), await stored()]).toMatchObject([true, { idWidth: 8, renewal: 60 }]);
    network.fault = undefined;
    await clock.advance(5_000);
    expect(await stored()).toMatchObject({ idWidth: 9 });
  });

  it('are recorded from the first write of a tenure on, if they were known', async () => {
    const { start, lease: stored } = cluster(300);
    const lease = await start();
    expect(await stored(lease.id)).toMatchObject({ idWidth: 9 });
    await settled();
  });
});
