import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { GUARD_MARGIN_MS } from '../../../../src/app/supervisor/guard.js';
import { systemClock } from '../../../../src/core/base/system.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll } from '../../../support/processes.js';
import { endVictims, family, guarding, guardOf, timersOf, victim } from './guard-support.js';
import { isAlive, newFolder, removeFolders, untilDead } from './run-support.js';

afterEach(async () => {
  endVictims();
  await killAll();
  removeFolders();
});

/** What a machine may be slower than the timer says, in milliseconds, when everything runs at once. */
const SLACK_MS = 200;

describe('the guard', () => {
  it.each([
    ['by the uptime of the machine', {}],
    ['counting by itself where there is no /proc/uptime', { uptime: () => undefined }],
  ])('ends the group just before the deadline, %s', async (_, options) => {
    const { id, begun, ended } = victim();
    await guarding(async (guard) => {
      guard.watch(id);
      guard.extend(begun + 1_400);
      const { signal, tookMs } = await ended;
      expect(signal).toBe('SIGKILL');
      expect(tookMs).toBeGreaterThan(1_400 - GUARD_MARGIN_MS - 50);
      expect(tookMs).toBeLessThan(1_400 - GUARD_MARGIN_MS + SLACK_MS);
    }, options);
  });

  it('goes by the last deadline that it was given, and leaves no sleeping process of the earlier ones', async () => {
    const { id, begun, ended } = victim();
    await guarding(async (guard, pid) => {
      guard.watch(id);
      for (let i = 1; i <= 40; i += 1) {
        guard.extend(systemClock.monotonic() + 1_000);
        await sleep(20);
      }
      // More than all of them but this one.
      guard.extend(systemClock.monotonic() + 2_000);
      const last = systemClock.monotonic() + 2_000;
      expect(await timersOf(pid)).toHaveLength(2);
      const { tookMs } = await ended;
      expect(begun + tookMs).toBeGreaterThan(last - SLACK_MS);
      expect(begun + tookMs).toBeLessThan(last + SLACK_MS);
    });
  });

  it('does not strike late when the supervisor is paused while it works the deadline out', async () => {
    const { id, begun, ended } = victim();
    const pausing = () => {
      const text = readFileSync('/proc/uptime', 'utf8');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
      return text;
    };
    await guarding(
      async (guard) => {
        guard.watch(id);
        guard.extend(begun + 1_000);
        expect((await ended).tookMs).toBeLessThan(1_000);
      },
      { uptime: pausing },
    );
  });

  it('needs no clock that begins where the uptime does', async () => {
    const { id, begun, ended } = victim();
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + 5_000_000 };
    await guarding(
      async (guard) => {
        guard.watch(id);
        guard.extend(begun + 5_001_000);
        const { tookMs } = await ended;
        expect(tookMs).toBeGreaterThan(1_000 - GUARD_MARGIN_MS - 50);
        expect(tookMs).toBeLessThan(1_000 - GUARD_MARGIN_MS + SLACK_MS);
      },
      { clock },
    );
  });

  it.each([0, 1])(
    'ends the group by the deadline also when its timer %i is killed and the supervisor does nothing',
    async (index) => {
      const { id, begun, ended } = victim();
      await guarding(async (guard, pid) => {
        guard.watch(id);
        guard.extend(begun + 3_000);
        process.kill((await timersOf(pid))[index] ?? 0, 'SIGKILL');
        const { tookMs } = await ended;
        expect(tookMs).toBeGreaterThan(3_000 - GUARD_MARGIN_MS - 50);
        expect(tookMs).toBeLessThan(3_000 - GUARD_MARGIN_MS + SLACK_MS);
      });
    },
  );
});

describe('a command whose supervisor', () => {
  /** Some time after a renewal, and before the next one: the guard strikes a few milliseconds before the deadline. */
  async function betweenRenewals(store: string): Promise<void> {
    const lease = () => readFileSync(join(store, '0.json'), 'utf8');
    const before = lease();
    await expect.poll(lease).not.toBe(before);
    await sleep(300);
  }

  it('is paused is ended by the deadline', async () => {
    const store = newFolder();
    const { run, pids } = await family('2s', {}, store);
    await betweenRenewals(store);
    run.kill('SIGSTOP');
    // The last renewal was before the pause, so the deadline is within two seconds of it.
    expect(await untilDead(pids)).toBeLessThan(2_000);
  });

  it('is paused is ended by the deadline also when a timer of its guard was killed before', async () => {
    const store = newFolder();
    const { run, pids } = await family('3s', {}, store);
    await betweenRenewals(store);
    // From then on the guard gets no other deadline, and has these timers.
    await new ProcessHandle(run.pid).pause();
    const paused = performance.now();
    process.kill((await timersOf(guardOf(run)))[0] ?? 0, 'SIGKILL');
    expect(pids.every(isAlive)).toBe(true);
    await untilDead(pids);
    expect(performance.now() - paused).toBeLessThan(3_000);
  });
});
