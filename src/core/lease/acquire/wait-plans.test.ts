import { describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import type { LeaseStore, ObjectChange } from '../../store/lease-store.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { nativeCodec } from '../model/lease-codec.js';
import { StoreSession } from '../session/store-session.js';
import { type FruitlessScan, type ScanPlan, WaitForFreeId } from './wait-for-free-id.js';

// What a wait resolves to, and when. Chance is in the middle: each pause is as long as it is on average.

const DURATION = 15_000;
const EVER = Number.POSITIVE_INFINITY;
const HELD = nativeCodec.tombstoneMaxBytes + 1;
const ONE: ScanPlan = { pages: 'one', after: undefined };
const ALL: ScanPlan = { pages: 'all' };

type Scan = Omit<Partial<FruitlessScan>, 'expiryAt'> & {
  /** From the scan on. */
  readonly expiryMs?: number;
};

/** A task that waits on a store that suggests a second. */
function scene({ until = EVER, changed }: { until?: number; changed?: LeaseStore['changed'] } = {}) {
  const clock = new VirtualClock();
  const store = Object.assign(new MemoryLeaseStore({ clock }), { changed, pollMs: 1_000 });
  const wait = new WaitForFreeId({
    ...{ session: new StoreSession(store, clock, 1_000), clock, emit: () => undefined, until },
    random: { next: () => 0.5, hex: () => '' },
  });
  /** The plan, and after how long. `during` happens a second after the scan. */
  const next = async ({ expiryMs = EVER, ...scan }: Scan = {}, during?: () => void) => {
    const scannedAt = clock.monotonic();
    const base = { durationMs: DURATION, scannedAt, complete: true, expiryAfter: undefined };
    const waiting = wait.next({ ...base, expiryAt: scannedAt + expiryMs, ...scan });
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    const ended = waiting.then((plan) => [plan, clock.monotonic() - scannedAt] as const);
    ended.then(end, end);
    if (during !== undefined) await clock.advance(1_000);
    during?.();
    for (await settled(); !isOver; ) await clock.advance(5);
    return ended;
  };
  return { clock, wait, next };
}

describe('the scan after a wait', () => {
  it.each<[string, Scan, number, ScanPlan, number]>([
    ['is of one page', {}, EVER, ONE, 1_000],
    [
      'is of the page of the lease that can be found expired',
      { expiryMs: 400, expiryAfter: '3.jso' },
      EVER,
      { pages: 'one', after: '3.jso' },
      900,
    ],
    [
      'comes sooner after that with short leases',
      { expiryMs: 400, expiryAfter: '3.jso', durationMs: 3_000 },
      EVER,
      { pages: 'one', after: '3.jso' },
      550,
    ],
    ['is of any page before that', { expiryMs: 900, expiryAfter: '3.jso' }, EVER, ONE, 1_000],
    ['is of all pages when the time is up', {}, 700, ALL, 700],
    ['is of all pages where no scan was', { complete: false }, EVER, ALL, 200],
  ])('%s', async (_, scan, until, plan, ms) => {
    expect(await scene({ until }).next(scan)).toEqual([plan, ms]);
  });

  it('is of all pages once in a duration', async () => {
    const { next } = scene();
    const plans = [await next()];
    for (let count = 0; count < 5; count += 1) plans.push(await next({ complete: false }));
    expect(plans).toEqual([
      ...[
        [ONE, 1_000],
        [ONE, 1_500],
        [ONE, 2_250],
        [ONE, 3_375],
        [ONE, 5_000],
      ],
      [ALL, DURATION - 13_125],
    ]);
  });

  it('is known to come after a wait', async () => {
    const { wait, next } = scene();
    expect(wait.hasBegun).toBe(false);
    await next();
    expect(wait.hasBegun).toBe(true);
  });

  it('does not come where the clock fails', async () => {
    const { clock, next } = scene({ changed: () => new Promise(() => undefined) });
    await next();
    clock.sleep = () => Promise.reject(new Error('no clock'));
    await expect(next()).rejects.toThrow('no clock');
  });
});

describe('on a store that reports changes, the scan after a wait', () => {
  /** The watches that were begun: each one can be made to fail, and to report a change. */
  function watching() {
    const watches: { fail: () => void; note: (change: Partial<ObjectChange>) => unknown }[] = [];
    const changed: LeaseStore['changed'] = (_, heed) =>
      new Promise((_resolve, reject) => {
        const note = (change: Partial<ObjectChange>) => heed?.(change as ObjectChange);
        watches.push({ fail: () => reject(new Error('over')), note });
      });
    const it = scene({ changed });
    const note = (change: Partial<ObjectChange>) => watches.at(-1)?.note(change);
    return { ...it, watches, note, fail: () => watches.at(-1)?.fail() };
  }

  it('comes at once where the watch has just begun, and then after a third of a duration', async () => {
    const { next } = watching();
    expect([await next(), await next(), await next()]).toEqual([
      [ALL, 0],
      [ONE, 5_000],
      [ONE, 5_000],
    ]);
  });

  const released = { key: '1.json', size: 0 };
  it.each<[string, Partial<ObjectChange>[], boolean]>([
    ['an id was released', [released], true],
    ['an id was evicted', [{ key: '1.json', size: HELD - 1 }], true],
    ['an id was changed in a way that is not known', [{ key: '1.json' }], true],
    ['the settings were changed', [{ key: 'cluster.json', size: 500 }], true],
    ['a lease was renewed', [{ key: '1.json', size: HELD }], false],
    ['a released id was taken', [released, { key: '1.json', size: HELD }], false],
    ['one of two was taken', [released, { key: '2.json', size: 0 }, { key: '1.json', size: HELD }], true],
    ['another object was written', [{ key: 'notes.json', size: 9 }], false],
  ])('comes soon or not where %s', async (_, changes, isSoon) => {
    const { next, note } = watching();
    await next();
    const replies: unknown[] = [];
    const during = () => void replies.push(...changes.map(note));
    expect(await next({}, during)).toEqual([ONE, isSoon ? 1_035 : 5_000]);
    // The watch goes on.
    expect(replies).toEqual(changes.map(() => false));
  });

  it('comes the later after news, the more scans were in vain', async () => {
    const { next, note } = watching();
    const during = () => void note(released);
    await next();
    await next();
    const delays: number[] = [];
    for (let count = 0; count < 5; count += 1) delays.push((await next({}, during))[1] - 1_000);
    expect(delays).toEqual([35, 70, 140, 200, 200]);
    expect(await next()).toEqual([ONE, 5_000]);
  });

  it('comes as often as without reports until a watch has lasted for a wait', async () => {
    const { next, fail, watches } = watching();
    await next();
    const waits = [await next({}, fail), await next(), await next()];
    expect(waits.map(([, ms]) => ms)).toEqual([1_000, 1_500, 5_000]);
    expect(watches).toHaveLength(2);
  });
});
