import { afterEach, expect, inject, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { openZooKeeper, type ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { sharedData } from '../../../../src/zookeeper/shared-data/shared-data.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll, runProcess } from '../../../support/processes.js';
import { startZooKeeperProcess, type ZooKeeperProcess } from '../../../support/servers/zookeeper-process.js';
import { uniqueChroot } from '../../../support/zookeeper.js';

const SESSION_MS = 2_000;
const ENTRIES = 50;
/**
 * From the connection until the data is back; on a busy machine, as many times what writing it took there.
 */
const BACK = { withinMs: 2_000, writes: 3 };
const backWithin = (writtenMs: number) => Math.max(BACK.withinMs, BACK.writes * writtenMs);

const clients: ZooKeeperClient[] = [];
let server: ZooKeeperProcess | undefined;

afterEach(async () => {
  await killAll();
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await server?.dispose();
  server = undefined;
});

function open(connect: string): ZooKeeperClient {
  const client = openZooKeeper({ connect, sessionTimeoutMs: SESSION_MS, clock, random });
  clients.push(client);
  return client;
}

it('keeps its node, or replaces it once, through a restart of the server; its data is back within 2 s after the connection', async () => {
  for (const outageMs of [0, 3 * SESSION_MS]) {
    server = await startZooKeeperProcess();
    const client = open(server.connect);
    const data = sharedData(client);
    const supervisor = data.supervise();
    const first = await supervisor.whenJoined({ timeoutMs: 20_000 });
    const claims = await data.map('claims', { lifespan: 'ephemeral' });
    const begun = clock.monotonic();
    for (let n = 0; n < ENTRIES; n += 1) await claims.set(n, n);
    const writtenMs = clock.monotonic() - begun;
    await server.kill();
    if (outageMs > 0) await clock.sleep(outageMs);
    let connectedAt = 0;
    client.onState(({ status }) => {
      if (status === 'connected') connectedAt = clock.monotonic();
    });
    await server.start();
    // The server restarts the timeout of a session when it starts.
    await expect.poll(() => connectedAt > 0 && supervisor.state.status, { timeout: 60_000 }).toBe('joined');
    expect(await data.synced({ timeoutMs: 30_000 })).toBe(true);
    expect(clock.monotonic() - connectedAt).toBeLessThan(backWithin(writtenMs));
    const now = await supervisor.whenJoined();
    expect(supervisor.replacements).toBe(now.sessionId === first.sessionId ? 0 : 1);
    const observer = open(server.connect);
    expect(await observer.children('/monastery/root/nodes')).toEqual([now.id]);
    expect((await observer.children(claims.path))?.length).toBe(ENTRIES);
    await data.close();
    await Promise.all(clients.splice(0).map((each) => each.close()));
    await server.dispose();
  }
});

const PAUSED = `
const { sharedData } = await import('nodelease/shared-data');
const { openZooKeeper } = await import('nodelease/zookeeper');
const { systemClock: clock, systemRandom: random } = await import('nodelease');
const client = openZooKeeper({ connect: process.env.CONNECT, sessionTimeoutMs: ${SESSION_MS}, clock, random });
const data = sharedData(client);
let connectedAt = 0;
client.onState(({ status }) => { if (status === 'connected') connectedAt = clock.monotonic(); });
const supervisor = data.supervise({ onState: async ({ status, node }) => {
  console.log(status, node?.id ?? '');
  if (status === 'joined' && supervisor.replacements > 0 && await data.synced()) console.log('back after', clock.monotonic() - connectedAt, 'ms');
} });
const claims = await data.map('claims', { lifespan: 'ephemeral', timeoutMs: 20_000 });
const begun = clock.monotonic();
for (let n = 0; n < ${ENTRIES}; n += 1) await claims.set(n, n);
console.log('ready after', clock.monotonic() - begun, 'ms');
`;

it('is replaced once where the process was paused for longer than its session, and its data is back within 2 s', async () => {
  const connect = `${inject('zookeeper').connect}${uniqueChroot('shared-data')}`;
  const observer = open(connect);
  const seen = await sharedData(observer).map('claims', { lifespan: 'ephemeral', timeoutMs: 20_000 });
  const child = runProcess(process.execPath, ['--input-type=module', '-e', PAUSED], {
    env: { CONNECT: connect },
  });
  const [, writtenMs] = await child.waitForOutput(/ready after (\S+) ms/);
  await expect.poll(() => seen.size).toBe(ENTRIES);
  const stopped = new ProcessHandle(child.pid);
  await stopped.pause();
  await expect.poll(() => seen.size).toBe(0);
  child.kill('SIGCONT');
  const [, ms] = await child.waitForOutput(/back after (\S+) ms/);
  expect(Number(ms)).toBeLessThan(backWithin(Number(writtenMs)));
  await expect.poll(() => seen.size).toBe(ENTRIES);
  expect(child.stdout().match(/replacing/g)).toHaveLength(1);
  expect(await observer.children('/monastery/root/nodes')).toEqual(['node-0000000001']);
});
