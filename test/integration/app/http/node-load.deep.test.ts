import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { killAll } from '../../../support/processes.js';
import { removeFolders } from '../cli/run-support.js';
import { clients, Holder, onFiles } from './http-holder.js';

afterEach(async () => {
  await killAll();
  removeFolders();
});

describe('200 health checks a second and 100 clients that follow the cluster, for a minute', () => {
  it('never make a renewal late by more than 100 ms, and leave nothing behind in memory', async () => {
    const holder = await Holder.start(await onFiles(), 3_000);
    const load = clients('http-load', [holder.url, '/readyz', 200, 100, 60_000]);
    await sleep(15_000);
    const early = await holder.heap();
    await sleep(40_000);
    const late = await holder.heap();
    const { code } = await load.exit;
    expect(code).toBe(0);
    const reported = JSON.parse(load.stdout());
    expect(reported).toMatchObject({
      answered: reported.asked,
      statuses: { 200: reported.asked },
      failures: [],
      failed: 0,
      streamsOpen: 100,
      streamsEnded: 0,
      hellos: 100,
    });
    expect(reported.asked).toBeGreaterThan(11_900);
    expect(holder.latestMs).toBeLessThanOrEqual(100);
    expect(holder.reported('lost')).toEqual([]);
    expect(late - early).toBeLessThan(1_000_000);
  });
});
