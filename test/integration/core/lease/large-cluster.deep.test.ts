import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { StatusReport } from '../../../../src/node/wire/status-report.js';
import { type FleetStore, fleetStore, startTask } from '../../../support/fleet.js';
import { EventClient } from '../../../support/network/event-client.js';
import { killAll, runCli } from '../../../support/processes.js';

/** More than a page of a LIST, by as little as shows. */
const SIZE = 1_050;
const SEEN = { timeout: 90_000 };

describe('a cluster whose LIST takes several pages, on a real S3 server', () => {
  let store: FleetStore;

  beforeAll(async () => {
    store = await fleetStore('s3', inject('s3'));
    const init = runCli(['init', '--nodes', String(SIZE), ...store.options], { env: store.env });
    expect(await init.exit).toEqual({ code: 0, signal: null });
    expect(init.stdout()).toContain(`${SIZE} lease objects written`);
  });

  afterAll(async () => {
    await killAll();
    await store.remove();
  });

  async function status(...args: string[]): Promise<StatusReport> {
    const command = runCli(['status', '--json', ...store.options, ...args], { env: store.env });
    expect(await command.exit).toEqual({ code: 0, signal: null });
    return JSON.parse(command.stdout()) as StatusReport;
  }

  it('is created as a whole, and seen as a whole by status', async () => {
    expect(await store.keys()).toHaveLength(SIZE + 1);
    const report = await status();
    expect(report.totals).toMatchObject({ hints: true, held: 0, free: SIZE, neverHeld: SIZE, damaged: 0 });
    expect([report.nodes.length, report.page]).toEqual([100, { from: 0, limit: 100, next: 100 }]);
    const last = await status('--from', String(SIZE - 10));
    expect([last.nodes.map(({ id }) => id), last.page?.next]).toEqual([
      Array.from({ length: 10 }, (_, index) => SIZE - 10 + index),
      null,
    ]);
  });

  it('gives out its ids, and shows on whatever page of the LIST they are who holds them', async () => {
    const console = runCli(['console', '--http', '127.0.0.1:0', ...store.options], { env: store.env });
    const [, url = ''] = await console.waitForOutput(/^(http:\/\/\S+)$/m, 60_000);
    const page = await EventClient.open(url);
    const tasks = Array.from({ length: 3 }, (_, index) => startTask(store, ['--task-id', `task-${index}`]));
    const ids = (await Promise.all(tasks.map((task) => task.started()))).map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    const report = await status('--held');
    expect(report.nodes.map(({ id }) => id)).toEqual([...ids].sort((a, b) => a - b));
    for (const id of ids)
      await expect.poll(() => page.node(id), SEEN).toMatchObject({ state: 'held', version: 1 });
    await expect.poll(() => page.node(SIZE - 1), SEEN).toMatchObject({ state: 'vacant' });
    const paged = (await (await fetch(`${url}/api/leases?from=990&limit=1000`)).json()) as StatusReport;
    expect([paged.nodes.length, paged.page?.next]).toEqual([SIZE - 990, null]);
    expect((await fetch(`${url}/api/leases?from=-1`)).status).toBe(400);
    page.close();
  });
});
