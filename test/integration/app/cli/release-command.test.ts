import { afterEach, describe, expect, it } from 'vitest';
import { newStore, removeStores, startTask } from '../../../support/fleet.js';
import { killAll, runCli } from '../../../support/processes.js';

afterEach(async () => {
  await killAll();
  await removeStores();
});

describe('nodelease release ID --force', () => {
  it('ends the holder with 76 and gives the id away no sooner than its lease would have ended, at a version above', async () => {
    const store = await newStore('file');
    const options = ['--nodes', '1', '--duration', '12s'];
    const holder = startTask(store, [...options, '--task-id', 'holder']);
    await holder.started();
    const waiting = startTask(store, options);
    await waiting.waitForOutput(/no node id is free/);
    const asked = performance.now();
    const release = runCli(['release', '0', '--force', ...store.options], { env: store.env });
    expect((await release.exit).code).toBe(0);
    expect(release.stdout()).toMatch(
      /^node id 0 is taken away from task holder: its version is 2 now\n.* in 13s at the latest\n$/,
    );
    expect((await holder.exit).code).toBe(76);
    expect(await waiting.started()).toEqual({ id: 0, version: 3 });
    expect(performance.now() - asked).toBeGreaterThan(12_000);
    waiting.kill('SIGTERM');
    await waiting.exit;
  });
});
