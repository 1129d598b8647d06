import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FleetStore, newStore, removeStores, statusOf } from '../../../support/fleet.js';
import { killAll, runCli, runProcess } from '../../../support/processes.js';
import { healthUntil, urlOf } from '../cli/ecs-support.js';

const FLOOD = fileURLToPath(new URL('../../../fixtures/programs/http-flood.mjs', import.meta.url));
const DURATION_MS = 3_000;
/**
 * A renewal is due every third of the duration; where it comes no later than that, there has been time for a
 * second attempt.
 */
const LATEST_MS = (DURATION_MS * 2) / 3;
const FLOOD_MS = 8_000;
/**
 * A connection hands over up to 64 KiB of requests at once: some 400,000 of 400 connections are answered before
 * the first one afterwards, by some 10,000 a second.
 */
const BACKLOG_MS = 300_000;

let store: FleetStore;

beforeEach(async () => {
  store = await newStore();
});

afterEach(async () => {
  await killAll();
  await removeStores();
});

/** When an event of the lease has been logged, in milliseconds. */
function timesOf(event: string, log: string): number[] {
  const lines = log
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as { readonly event?: string; readonly time: string });
  return lines.filter((line) => line.event === event).map(({ time }) => Date.parse(time));
}

/** What `nodelease status` says of the only node id. */
const nodeNow = async () => (await statusOf(store)).nodes[0];

describe('a run with HTTP', () => {
  it.each([
    ['requests sent ahead', 40, 2_000],
    ['many connections', 400, 20],
  ])(
    'renews its lease in time and keeps its node id in a flood of %s, and answers afterwards',
    async (_, connections, ahead) => {
      const settings = [
        ...store.options,
        '--nodes',
        '1',
        '--duration',
        `${DURATION_MS}ms`,
        '--grace',
        '500ms',
      ];
      const script = "trap 'exit 0' TERM; echo begun; while :; do sleep 0.05; done";
      const task = runCli([
        'run',
        ...settings,
        '--http',
        '127.0.0.1:0',
        '--log-level',
        'debug',
        '--',
        'sh',
        '-c',
        script,
      ]);
      const url = await urlOf(task);
      await task.waitForOutput(/begun/, 30_000);

      const flood = runProcess(process.execPath, [
        FLOOD,
        url,
        String(connections),
        String(ahead),
        String(FLOOD_MS),
      ]);
      await flood.waitForOutput(/"there"/, 30_000);
      await sleep(FLOOD_MS / 2);
      expect(await nodeNow()).toMatchObject({ state: 'held', version: 1 });
      expect((await flood.exit).code).toBe(0);
      const { sent } = JSON.parse(flood.stdout().trimEnd().split('\n').at(-1) ?? '') as { sent: number };
      expect(sent).toBeGreaterThan(100_000);

      expect((await healthUntil(url, ({ code }) => code === 0, BACKLOG_MS)).facts).toMatchObject({
        state: 'held',
        version: 1,
      });
      expect((await fetch(`${url}/metrics`)).status).toBe(200);
      task.kill('SIGTERM');
      expect((await task.exit).code, task.stderr()).toBe(0);
      expect(await nodeNow()).toMatchObject({ state: 'released', version: 1 });
      const renewals = timesOf('renewed', task.stderr());
      expect(renewals.length).toBeGreaterThan(5);
      const apart = renewals.slice(1).map((time, i) => time - (renewals[i] ?? 0));
      expect(Math.max(...apart)).toBeLessThan(LATEST_MS);
    },
    BACKLOG_MS + 120_000,
  );

  it('loads an SDK that NODE_OPTIONS names once, and not again in the thread that answers', async () => {
    // Written past the streams of either thread.
    const preloaded = 'data:text/javascript,process._rawDebug(`preloaded`)';
    const task = runCli(['run', ...store.options, '--http', '127.0.0.1:0', '--', 'true'], {
      env: { NODE_OPTIONS: `--import ${preloaded}` },
    });
    expect((await task.exit).code, task.stderr()).toBe(0);
    expect(task.stderr().match(/preloaded/g)).toHaveLength(1);
  });
});
