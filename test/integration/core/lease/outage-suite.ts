import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, it } from 'vitest';
import { type FleetStore, loggedAt, startTask, storeOn, type Task } from '../../../support/fleet.js';
import type { FaultProxy } from '../../../support/network/fault-proxy.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { killAll } from '../../../support/processes.js';
import type { StoreServer } from '../../../support/stores/store-server.js';

const DURATION_MS = 6_000;
const SETTINGS = ['--nodes', '2', '--duration', '6s', '--log-level', 'debug'];
/** What servers answer to a write that they have applied. */
const APPLIED = [200, 201];
/** A command that prints the time for as long as it lives. */
const HEARTBEAT = 'while :; do date +%s%3N; sleep 0.05; done';

/** The last time that the command printed, in milliseconds since the Unix epoch. */
function lastHeartbeat(task: Task): number {
  return Number(/(\d{13})\n[^\d]*$/.exec(task.stdout())?.[1]);
}

/**
 * What a task is promised whose connection to its store fails, with real processes on a real server, each
 * behind a proxy of its own. They wait far more than they compute, so all of them run at the same time.
 */
export function outageSuite(name: string, server: () => StoreServer): void {
  const stores: FleetStore[] = [];
  // After all suites around: it ends every process.
  afterAll(async () => {
    await killAll();
    await stopProxies();
    for (const store of stores) await store.remove();
  });
  describe.concurrent(`a task whose connection to ${name} fails`, () => {
    async function storeBehindProxy(): Promise<{ store: FleetStore; proxy: FaultProxy }> {
      const { proxy, through } = await throughProxy(server().endpoint);
      const store = await storeOn(server(), through);
      stores.push(store);
      return { store, proxy };
    }

    async function startAndRenew(command = HEARTBEAT) {
      const { store, proxy } = await storeBehindProxy();
      const task = startTask(store, SETTINGS, command);
      await task.started();
      await task.waitForOutput(/lease renewed/);
      return { task, store, proxy };
    }

    it.for(['cut', 'stall'] as const)(
      'does not let its command notice a %s that is shorter than the lease',
      async (fault, { expect }) => {
        const { task, proxy } = await startAndRenew();
        if (fault === 'cut') proxy.cut();
        else proxy.stall('both');
        // From one third of the duration on there is something to notice.
        await task.waitForOutput(/renewal failed/);
        proxy.heal();
        const healedAt = Date.now();
        const deadline = loggedAt(task.log(), /lease renewed/, 'last') + DURATION_MS;
        await expect
          .poll(() => task.log().filter(({ at, msg }) => at > healedAt && /lease renewed/.test(msg)).length)
          .toBeGreaterThan(0);
        await expect.poll(() => lastHeartbeat(task)).toBeGreaterThan(deadline);
        expect(task.log().filter(({ msg }) => /is lost/.test(msg))).toEqual([]);
        task.kill('SIGTERM');
        expect((await task.exit).code).toBe(143);
      },
    );

    it.for(['cut', 'stall'] as const)(
      'ends its command before the deadline when a %s lasts longer, and exits with 76',
      async (fault, { expect }) => {
        const { task, proxy } = await startAndRenew();
        if (fault === 'cut') proxy.cut();
        else proxy.stall('to-client');
        expect(await task.exit).toEqual({ code: 76, signal: null });
        const deadline = loggedAt(task.log(), /lease renewed/, 'last') + DURATION_MS;
        expect(lastHeartbeat(task)).toBeLessThan(deadline);
        expect(loggedAt(task.log(), /is lost/)).toBeLessThan(deadline);
        expect(task.stderr()).not.toMatch(/\n\s+at /);
      },
    );

    it('ends a command that ignores SIGTERM before the deadline as well', async ({ expect }) => {
      const { task, proxy } = await startAndRenew(`trap '' TERM; ${HEARTBEAT}`);
      proxy.cut();
      expect((await task.exit).code).toBe(76);
      expect(lastHeartbeat(task)).toBeLessThan(loggedAt(task.log(), /lease renewed/, 'last') + DURATION_MS);
    });

    it('does not mistake the lost reply to a renewal that was applied for a lost lease', async ({
      expect,
    }) => {
      const { task, store, proxy } = await startAndRenew();
      const dropped = await proxy.dropNextReply((head) => server().isWrite(head, '0.json'));
      expect(APPLIED).toContain(dropped.status);
      await sleep(DURATION_MS + 1_000);
      expect(task.log().filter(({ msg }) => /is lost/.test(msg))).toEqual([]);
      expect(JSON.parse((await store.read('0.json')) ?? '')).toMatchObject({ version: 1 });
      task.kill('SIGTERM');
      expect((await task.exit).code).toBe(143);
    });

    it('is not confused by the lost reply to its acquiring write', async ({ expect }) => {
      const { store, proxy } = await storeBehindProxy();
      await startTask(store, SETTINGS, 'true').exit;
      const dropped = proxy.dropNextReply((head) => server().isWrite(head, '0.json'));
      const task = startTask(store, SETTINGS, 'true');
      expect(await task.started()).toEqual({ id: 0, version: 2 });
      expect(APPLIED).toContain((await dropped).status);
      expect((await task.exit).code).toBe(0);
    });
  });
}
