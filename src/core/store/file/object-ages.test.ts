import { beforeEach, describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { systemClock, systemRandom } from '../../base/system.js';
import { ObjectAges, openBootClock } from './object-ages.js';

let clock: VirtualClock;
let ages: ObjectAges;

beforeEach(() => {
  clock = new VirtualClock();
  ages = new ObjectAges({ id: 'this boot', resolutionMs: 10, now: () => clock.monotonic() }, clock);
});

describe('the age of an object', () => {
  it('is known to within the step of the clock from a stamp of this boot', async () => {
    const stamp = ages.stamp();
    await clock.advance(5000);
    expect(ages.of('0.json', 'e', stamp, clock.monotonic())).toEqual({ min: 4990, max: 5010 });
  });

  it('is never negative', () => {
    expect(ages.of('0.json', 'e', { clock: 'this boot', ms: 25 }, clock.monotonic())).toEqual({
      min: 0,
      max: 10,
    });
  });

  it.each([
    ['written in another boot', { clock: 'another boot', ms: 1 }],
    ['made by hand', undefined],
  ])('is at least the time for which one that was %s has been seen unchanged', async (_, stamp) => {
    await clock.advance(1_000_000);
    expect(ages.of('0.json', 'e', stamp, clock.monotonic())).toEqual({
      min: 0,
      max: Number.POSITIVE_INFINITY,
    });
    await clock.advance(7000);
    expect(ages.of('0.json', 'e', stamp, clock.monotonic())).toEqual({
      min: 7000,
      max: Number.POSITIVE_INFINITY,
    });
    expect(ages.of('0.json', 'other', stamp, clock.monotonic()).min).toBe(0);
    expect(ages.of('1.json', 'e', stamp, clock.monotonic()).min).toBe(0);
  });

  it('starts again when a state is seen again after another one', async () => {
    for (const etag of ['e', 'other', 'e']) {
      expect(ages.of('0.json', etag, undefined, clock.monotonic()).min).toBe(0);
      await clock.advance(1000);
    }
  });

  it('counts up to the moment before the object was looked at, however long that took', async () => {
    ages.of('0.json', 'e', undefined, clock.monotonic());
    await clock.advance(1000);
    const lookedAt = clock.monotonic();
    await clock.advance(5000);
    expect(ages.of('0.json', 'e', undefined, lookedAt).min).toBe(1000);
  });
});

const files: Readonly<Record<string, string>> = {
  '/proc/sys/kernel/random/boot_id': 'e33da336-65fb-44ed-93b2-932117c30779\n',
  '/proc/uptime': '100.00 1.00',
};

function openWith(changes: { uptime?: number; seed?: number; hidden?: string; namespace?: string } = {}) {
  return openBootClock({
    clock: new VirtualClock(),
    random: seededRandom(changes.seed ?? 1),
    uptime: () => changes.uptime ?? 100,
    readText: (path) => (path === changes.hidden ? undefined : files[path]),
    readLink: () => changes.namespace ?? 'time:[4026531834]',
  });
}

describe('the boot clock', () => {
  it('has the same id in every process of one boot and time namespace', () => {
    expect(openWith({ seed: 1 }).id).toBe(openWith({ seed: 2 }).id);
  });

  it('has another id in another time namespace, which may shift the uptime', () => {
    expect(openWith({ namespace: 'time:[4026532001]' }).id).not.toBe(openWith().id);
  });

  it.each(['/proc/sys/kernel/random/boot_id', '/proc/uptime'])(
    'has a separate id in each process where %s cannot be read',
    (hidden) => {
      expect(openWith({ hidden, seed: 1 }).id).not.toBe(openWith({ hidden, seed: 2 }).id);
    },
  );

  it('has a separate id where the uptime is not the kernel’s but shorter', async () => {
    const clock = new VirtualClock();
    await clock.advance(100_100);
    const openShort = (seed: number) =>
      openBootClock({
        clock,
        random: seededRandom(seed),
        uptime: () => 100,
        readText: (path) => files[path],
      });
    expect(openShort(1).id).not.toBe(openShort(2).id);
  });

  it('has whole seconds where the precise uptime cannot be read', () => {
    expect(openWith().resolutionMs).toBe(10);
    expect(openWith({ hidden: '/proc/uptime' }).resolutionMs).toBe(1000);
  });

  it('gives the uptime in milliseconds', () => {
    expect(openWith({ uptime: 2146.46 }).now()).toBe(2_146_460);
  });

  it('is shared by all who open it on this machine', () => {
    const open = () => openBootClock({ clock: systemClock, random: systemRandom });
    expect(open().id).toBe(open().id);
    expect(open().id).not.toMatch(/^process/);
  });
});
