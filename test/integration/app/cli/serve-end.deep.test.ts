import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { newStore, removeStores } from '../../../support/fleet.js';
import { EventClient } from '../../../support/network/event-client.js';
import { stopProxies } from '../../../support/network/proxies.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll } from '../../../support/processes.js';
import { announced, announcedAt, serve } from './serve-support.js';

afterEach(async () => {
  await killAll();
  await stopProxies();
  await removeStores();
});

describe('a sidecar that is asked to end', () => {
  it('says 76 where its deadline passes before it has ended: that must not pass for an end in order', async () => {
    const store = await newStore('file');
    const { proxy: zookeeper, options } = await announced();
    const sidecar = serve(store, '--duration', '3s', ...options);
    const url = await announcedAt(sidecar);
    const page = await EventClient.open(url);
    // Later, it would wait for ZooKeeper.
    await expect.poll(() => page.hellos).toBe(1);
    zookeeper.stall('both');
    sidecar.kill('SIGTERM');
    // It has not been taken out for a second then.
    await expect.poll(() => page.instances).toContainEqual(expect.objectContaining({ state: 'stopping' }));
    await new ProcessHandle(sidecar.pid).pause();
    await sleep(3_500);
    zookeeper.heal({ deliverHeld: true });
    sidecar.kill('SIGCONT');
    expect((await sidecar.exit).code, sidecar.stderr()).toBe(76);
    expect(sidecar.stderr()).not.toMatch(/SIGTERM: ending|lease released/);
  });

  it('says 76 where its deadline passes on the way to its release', async () => {
    const { proxy: zookeeper, options } = await announced();
    const sidecar = serve(await newStore('file'), '--duration', '3s', ...options);
    await announcedAt(sidecar);
    zookeeper.stall('both');
    sidecar.kill('SIGTERM');
    await sidecar.waitForOutput(/SIGTERM: ending/);
    // It leaves the tree first, for a second and a half.
    await new ProcessHandle(sidecar.pid).pause();
    await sleep(3_500);
    zookeeper.heal({ deliverHeld: true });
    sidecar.kill('SIGCONT');
    expect((await sidecar.exit).code, sidecar.stderr()).toBe(76);
    expect(sidecar.stderr()).not.toContain('lease released');
  });
});
