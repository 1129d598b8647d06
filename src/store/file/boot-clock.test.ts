import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { systemClock, systemRandom } from '../../base/system.js';
import { openBootClock } from './boot-clock.js';

const files: Readonly<Record<string, string>> = {
  '/proc/sys/kernel/random/boot_id': 'e33da336-65fb-44ed-93b2-932117c30779\n',
  '/proc/uptime': '100.00 1.00',
};

function open(changes: { uptime?: number; seed?: number; hidden?: string; namespace?: string } = {}) {
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
    expect(open({ seed: 1 }).id).toBe(open({ seed: 2 }).id);
  });

  it('has another id in another time namespace, which may shift the uptime', () => {
    expect(open({ namespace: 'time:[4026532001]' }).id).not.toBe(open().id);
  });

  it.each(['/proc/sys/kernel/random/boot_id', '/proc/uptime'])('has an id of its own in each process where %s cannot be read', (hidden) => {
    expect(open({ hidden, seed: 1 }).id).not.toBe(open({ hidden, seed: 2 }).id);
  });

  it('has an id of its own where the uptime is not the kernel’s but shorter', async () => {
    const clock = new VirtualClock();
    await clock.advance(100_100);
    const openWith = (seed: number) =>
      openBootClock({ clock, random: seededRandom(seed), uptime: () => 100, readText: (path) => files[path] });
    expect(openWith(1).id).not.toBe(openWith(2).id);
  });

  it('tells whole seconds where the precise uptime cannot be read', () => {
    expect(open().resolutionMs).toBe(10);
    expect(open({ hidden: '/proc/uptime' }).resolutionMs).toBe(1000);
  });

  it('gives the uptime in milliseconds', () => {
    expect(open({ uptime: 2146.46 }).now()).toBe(2_146_460);
  });

  it('is shared by all who open it on this machine', () => {
    const open = () => openBootClock({ clock: systemClock, random: systemRandom });
    expect(open().id).toBe(open().id);
    expect(open().id).not.toMatch(/^process/);
  });
});
