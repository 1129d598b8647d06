import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { evict, type FleetStore, newStore, removeStores } from '../../support/fleet.js';
import { stopProxies, throughProxy } from '../../support/network/proxies.js';
import { ProcessHandle } from '../../support/process-handle.js';
import { killAll, runCli, type TestProcess } from '../../support/processes.js';
import { uniqueChroot } from '../../support/zookeeper.js';
import { healthUntil, urlOf } from './ecs-support.js';
import { newFolder, removeFolders } from './run-support.js';

const SETTINGS = ['--nodes', '1', '--duration', '3s', '--grace', '500ms', '--http', '127.0.0.1:0'];

afterEach(async () => {
  await killAll();
  await stopProxies();
  await removeStores();
  removeFolders();
});

async function s3Proxy() {
  const { proxy, through } = await throughProxy(inject('s3').endpoint);
  return { proxy, store: await newStore('s3', through) };
}

/** The options of a service that is announced through a proxy. */
async function announced() {
  const { proxy, through } = await throughProxy(`${inject('zookeeper').connect}${uniqueChroot('serve')}`);
  const options = ['--zookeeper', through, '--service', 'orders', '--address', '127.0.0.1', '--port', '80'];
  return { proxy, options };
}

const serve = (store: FleetStore, ...options: string[]) => runCli(['serve', ...store.options, ...SETTINGS, ...options], { env: store.env });

/** Clients that hold up a server that waits for them: one that follows the events, and one in the middle of a request. */
async function hangOn(url: string): Promise<void> {
  const { body } = await fetch(`${url}/api/events`);
  void body
    ?.getReader()
    .read()
    .catch(() => undefined);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.write('GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n', () => resolve()));
}

async function exitOf(run: TestProcess): Promise<number | null> {
  return (await run.exit).code;
}

describe('a sidecar whose lease is lost', () => {
  it.each(['evicted', 'out of reach'])('ends in time whatever its clients and ZooKeeper do: %s', async (how) => {
    const { proxy: network, store } = await s3Proxy();
    const { proxy: zookeeper, options } = await announced();
    const file = join(newFolder(), 'ready.json');
    const sidecar = serve(store, ...options, '--wait-file', file);
    const url = await urlOf(sidecar);
    await healthUntil(url, ({ code, facts }) => code === 0 && (facts.discovery as { state: string }).state === 'ok');
    await hangOn(url);
    zookeeper.stall('both');
    if (how === 'evicted') await evict(store);
    else network.stall('both');
    await sidecar.waitForOutput(/"event":"lost"/, 30_000);
    const lost = performance.now();
    expect(await exitOf(sidecar), sidecar.stderr()).toBe(76);
    // Waiting for each of them would take more than 2 seconds.
    expect(performance.now() - lost).toBeLessThan(2_000);
    expect(existsSync(file)).toBe(false);
  });

  it('says 76 for a signal that comes after its deadline: that must not pass for an end in order', async () => {
    const store = await newStore('file');
    const sidecar = serve(store);
    await healthUntil(await urlOf(sidecar), ({ code }) => code === 0);
    await new ProcessHandle(sidecar.pid).pause();
    await sleep(3_500);
    sidecar.kill('SIGTERM');
    sidecar.kill('SIGCONT');
    expect(await exitOf(sidecar), sidecar.stderr()).toBe(76);
    expect(sidecar.stderr()).not.toContain('lease released');
  });
});

describe('a sidecar that is told to end', () => {
  it('says 76 where its deadline passes before it has ended: that must not pass for an end in order', async () => {
    const store = await newStore('file');
    const { proxy: zookeeper, options } = await announced();
    const sidecar = serve(store, ...options);
    const url = await urlOf(sidecar);
    await healthUntil(url, ({ code, facts }) => code === 0 && (facts.discovery as { state: string }).state === 'ok');
    zookeeper.stall('both');
    sidecar.kill('SIGTERM');
    while ((await fetch(`${url}/readyz`)).status === 200) await sleep(10);
    await new ProcessHandle(sidecar.pid).pause();
    await sleep(3_500);
    zookeeper.heal({ deliverHeld: true });
    sidecar.kill('SIGCONT');
    expect(await exitOf(sidecar), sidecar.stderr()).toBe(76);
    expect(sidecar.stderr()).not.toMatch(/SIGTERM: ending|lease released/);
  });

  it('takes no work and says that its lease goes from the first moment on, however slowly it is taken out of ZooKeeper', async () => {
    const store = await newStore('file');
    const { proxy: zookeeper, options } = await announced();
    const sidecar = serve(store, '--duration', '60s', ...options);
    const url = await urlOf(sidecar);
    await healthUntil(url, ({ code, facts }) => code === 0 && (facts.discovery as { state: string }).state === 'ok');
    zookeeper.stall('both');
    sidecar.kill('SIGTERM');
    while ((await fetch(`${url}/readyz`)).status === 200) await sleep(10);
    // Said once it has been taken out.
    expect(sidecar.stderr()).not.toContain('SIGTERM: ending');
    const lease = await fetch(`${url}/lease`);
    expect([lease.status, await lease.json()]).toMatchObject([503, { state: 'stopping', live: true, validForMs: null }]);
    expect(await exitOf(sidecar), sidecar.stderr()).toBe(0);
  });

  it.each([
    ['SIGHUP', 129],
    ['SIGUSR1', 138],
    ['SIGUSR2', 140],
  ] as const)('ends in order at %s, too', async (signal, code) => {
    const sidecar = serve(await newStore('file'));
    await healthUntil(await urlOf(sidecar), (answer) => answer.code === 0);
    sidecar.kill(signal);
    expect(await exitOf(sidecar), sidecar.stderr()).toBe(code);
    expect(sidecar.stderr()).toContain('lease released');
  });
});

describe('the wait file of a sidecar', () => {
  it.each([
    ['in a folder that is not there', 'newfolder/ready', /ENOENT/],
    ['with a slash at its end', 'newfile/', /ENOENT/],
    ['in the place of something else', 'precious', /something else is there, and left alone/],
  ])('is refused before a node id is acquired: %s', async (_, name, expected) => {
    const store = await newStore('file');
    const folder = newFolder();
    writeFileSync(join(folder, 'precious'), 'kept');
    const sidecar = serve(store, '--wait-file', `${folder}/${name}`);
    expect(await exitOf(sidecar)).toBe(64);
    expect(sidecar.stderr()).toMatch(
      /^nodelease: --wait-file: expected the path of a file in a folder that this user may write to [^\n]*\n$/,
    );
    expect(sidecar.stderr()).toMatch(expected);
    expect([sidecar.stdout(), readdirSync(folder), readFileSync(join(folder, 'precious'), 'utf8')]).toEqual(['', ['precious'], 'kept']);
  });

  it('stays that of the sidecar which has the port, where a second one is started with the same settings', async () => {
    const store = await newStore('file');
    const file = join(newFolder(), 'ready.json');
    const first = serve(store, '--wait-file', file);
    const url = await urlOf(first);
    await healthUntil(url, ({ code }) => code === 0);
    await expect.poll(() => existsSync(file), { timeout: 30_000 }).toBe(true);
    const text = readFileSync(file, 'utf8');
    const second = runCli(['serve', ...store.options, '--wait-file', file, '--http', new URL(url).host]);
    expect(await exitOf(second)).toBe(64);
    expect(readFileSync(file, 'utf8')).toBe(text);
  });

  it('is there at the next event where it could not be written at first', async () => {
    const store = await newStore('file');
    const holder = runCli(['run', ...store.options, '--nodes', '1', '--', 'sh', '-c', 'echo held; exec sleep 300']);
    await holder.waitForOutput(/held/, 30_000);
    const file = join(newFolder(), 'ready.json');
    const sidecar = serve(store, '--wait-file', file);
    await sidecar.waitForOutput(/no node id is free/, 30_000);
    mkdirSync(file);
    holder.kill('SIGTERM');
    await sidecar.waitForOutput(/could not be written/, 30_000);
    rmdirSync(file);
    await expect.poll(() => existsSync(file), { timeout: 30_000 }).toBe(true);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ state: 'held', nodeId: 0 });
  });
});
