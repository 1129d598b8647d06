import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { newStore, removeStores } from '../../../support/fleet.js';
import { EventClient } from '../../../support/network/event-client.js';
import { stopProxies } from '../../../support/network/proxies.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { followStates, waitFileAt } from './ecs-support.js';
import { newFolder, removeFolders } from './run-support.js';
import { announced, announcedAt, readyAt, serve } from './serve-support.js';

afterEach(async () => {
  await killAll();
  await stopProxies();
  await removeStores();
  removeFolders();
});

const exitOf = async (run: TestProcess) => (await run.exit).code;

describe('a sidecar whose lease is lost', () => {
  it('says 76 for a signal that comes after its deadline: that must not pass for an end in order', async () => {
    const store = await newStore('file');
    const sidecar = serve(store, '--duration', '3s');
    await readyAt(sidecar);
    await new ProcessHandle(sidecar.pid).pause();
    await sleep(3_100);
    sidecar.kill('SIGTERM');
    sidecar.kill('SIGCONT');
    expect(await exitOf(sidecar), sidecar.stderr()).toBe(76);
    expect(sidecar.stderr()).not.toContain('lease released');
  });
});

describe('a sidecar that is asked to end', () => {
  it('takes no work and says that its lease goes from the first moment on, however slowly it is taken out of ZooKeeper', async () => {
    const store = await newStore('file');
    const { proxy: zookeeper, options } = await announced();
    const sidecar = serve(store, ...options);
    const url = await announcedAt(sidecar);
    const page = await EventClient.open(url);
    const lease = followStates(url, '/lease');
    await lease.saw('200 held');
    zookeeper.stall('both');
    sidecar.kill('SIGTERM');
    expect(await exitOf(sidecar), sidecar.stderr()).toBe(0);
    expect(sidecar.stderr()).toMatch(/not known to be out yet[\s\S]*SIGTERM: ending/);
    expect((await lease.all).slice(0, 2)).toEqual(['200 held', '503 stopping']);
    await page.ended;
    expect(page.instances).toContainEqual(expect.objectContaining({ state: 'stopping', live: true }));
    const states = page.instances.map((instance) => (instance as { state: string }).state);
    expect(states.slice(states.indexOf('stopping'))).not.toContain('held');
  });

  it('ends in order at SIGHUP, SIGUSR1 and SIGUSR2, too', async () => {
    const ends = Object.entries({ SIGHUP: 129, SIGUSR1: 138, SIGUSR2: 140 }).map(async ([signal, code]) => {
      const sidecar = serve(await newStore('file'));
      await readyAt(sidecar);
      sidecar.kill(signal as NodeJS.Signals);
      expect(await exitOf(sidecar), sidecar.stderr()).toBe(code);
      expect(sidecar.stderr()).toContain('lease released');
    });
    await Promise.all(ends);
  });
});

describe('the wait file of a sidecar', () => {
  it('is refused before a node id is acquired in the place of something else', async () => {
    const store = await newStore('file');
    const folder = newFolder();
    writeFileSync(join(folder, 'precious'), 'kept');
    const sidecar = serve(store, '--wait-file', `${folder}/precious`);
    expect(await exitOf(sidecar)).toBe(64);
    expect(sidecar.stderr()).toMatch(
      /^nodelease: --wait-file: expected the path of a file in a folder that this user may write to .*something else is there, and left alone[^\n]*\n$/,
    );
    expect([sidecar.stdout(), readdirSync(folder), readFileSync(join(folder, 'precious'), 'utf8')]).toEqual([
      '',
      ['precious'],
      'kept',
    ]);
    expect(await store.keys()).toEqual([]);
  });

  it('stays that of the sidecar which has the port, where a second one is started with the same settings', async () => {
    const store = await newStore('file');
    const file = join(newFolder(), 'ready.json');
    const first = serve(store, '--wait-file', file);
    const url = await readyAt(first);
    await waitFileAt(file);
    const text = readFileSync(file, 'utf8');
    const second = runCli(['serve', ...store.options, '--wait-file', file, '--http', new URL(url).host]);
    expect(await exitOf(second)).toBe(64);
    expect(readFileSync(file, 'utf8')).toBe(text);
  });

  it('is there at the next event where it could not be written at first', async () => {
    const store = await newStore('file');
    const holder = runCli([
      'run',
      ...store.options,
      '--nodes',
      '1',
      '--',
      'sh',
      '-c',
      'echo held; exec sleep 300',
    ]);
    await holder.waitForOutput(/held/);
    const file = join(newFolder(), 'ready.json');
    const sidecar = serve(store, '--duration', '6s', '--wait-file', file);
    await sidecar.waitForOutput(/no node id is free/);
    mkdirSync(file);
    holder.kill('SIGTERM');
    await sidecar.waitForOutput(/could not be written/);
    rmdirSync(file);
    expect(await waitFileAt(file)).toMatchObject({ state: 'held', nodeId: 0 });
  });
});
