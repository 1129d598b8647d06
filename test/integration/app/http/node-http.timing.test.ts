import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { killAll } from '../../../support/processes.js';
import { removeFolders } from '../cli/run-support.js';
import { clients, Holder, onS3 } from './http-holder.js';

afterEach(async () => {
  await killAll();
  removeFolders();
});

describe('the node of a process, on MinIO', () => {
  it('renews its lease in time, and answers health checks, while 10,000 clients idle, 500 dribble, and others send 1 MB of headers', async () => {
    const holder = await Holder.start(await onS3(), 3_000);
    const crowd = clients('http-crowd', [holder.url, 10_000, 500, 4, 8_000]);
    await crowd.waitForOutput(/"there"/, 60_000);
    const statuses: number[] = [];
    let isOver = false;
    void crowd.exit.then(() => {
      isOver = true;
    });
    while (!isOver) {
      statuses.push(await holder.readyz());
      await sleep(100);
    }
    const { opened, refused } = JSON.parse((await crowd.waitForOutput(/\{"type":"over".*\}/))[0]);
    expect(opened).toBeGreaterThan(10_500);
    expect(Object.keys(refused)).toEqual(['431']);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(holder.reported('lost')).toEqual([]);
    // A third of the lease's duration is what others may take of this machine meanwhile.
    expect(holder.latestMs).toBeLessThan(1_000);
  });
});
