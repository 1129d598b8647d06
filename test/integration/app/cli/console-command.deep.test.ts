import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { StatusReport } from '../../../../src/node/wire/status-report.js';
import { type FleetStore, fleetStore, startTask, type Task } from '../../../support/fleet.js';
import { EventClient } from '../../../support/network/event-client.js';
import { FaultProxy } from '../../../support/network/fault-proxy.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients, data } from '../../zookeeper/discovery/discovery-support.js';
import { newFolder, removeFolders } from './run-support.js';

const LISTENS_WITHIN_MS = 30_000;
/** A change is seen after a look a second, on a machine that may be busy. */
const SEEN = { timeout: 30_000 };
const clients: EventClient[] = [];
const ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const each of clients.splice(0)) each.close();
  await killAll();
  for (const end of ends.splice(0).reverse()) await end();
  await closeClients();
  removeFolders();
});

async function urlOf(console: TestProcess): Promise<string> {
  const [, url = ''] = await console.waitForOutput(/^(http:\/\/\S+)$/m, LISTENS_WITHIN_MS);
  return url;
}

async function follow(url: string, headers?: Record<string, string>): Promise<EventClient> {
  const opened = await EventClient.open(url, headers);
  clients.push(opened);
  return opened;
}

describe.each(['file', 's3'] as const)('nodelease console of a %s store', (kind) => {
  let store: FleetStore;
  let console: TestProcess;
  let url: string;

  beforeEach(async () => {
    store = await fleetStore(kind, inject('s3'));
    ends.push(() => store.remove());
    console = runCli(['console', '--http', '127.0.0.1:0', ...store.options], { env: { ...store.env } });
    url = await urlOf(console);
  });

  const hold = async (taskId: string): Promise<Task> => {
    const task = startTask(store, ['--nodes', '3', '--duration', '3s', '--grace', '1s', '--task-id', taskId]);
    await task.started();
    return task;
  };

  it('shows a cluster from before its beginning, losses and take-overs as they happen, and ends with 0', async () => {
    const page = await follow(url);
    await expect.poll(() => [page.hellos, page.head?.cluster], SEEN).toEqual([1, null]);
    const first = await hold('first');
    await expect.poll(() => page.node(0), SEEN).toMatchObject({ state: 'held', taskId: 'first', version: 1 });
    await expect.poll(() => page.history, SEEN).toEqual(['acquired 0']);
    await hold('second');
    await hold('third');
    await expect.poll(() => page.history.sort(), SEEN).toEqual(['acquired 0', 'acquired 1', 'acquired 2']);
    // Renewals are no events, but are seen.
    const { expiresInMs } = page.node(0) ?? {};
    await expect.poll(() => page.node(0)?.expiresInMs, SEEN).not.toBe(expiresInMs);
    first.kill('SIGKILL');
    await expect.poll(() => page.history, SEEN).toContain('overdue 0');
    await hold('heir');
    await expect.poll(() => page.history, SEEN).toContain('taken-over 0');
    expect(page.events.at(-1)).toMatchObject({ taskId: 'heir', previousTaskId: 'first', version: 2 });
    await expect.poll(() => page.node(0), SEEN).toMatchObject({ state: 'held', taskId: 'heir', version: 2 });
    expect(page.store).toMatchObject({ state: 'ok', problem: null });
    // Both on one machine, as far as a server that reports whole seconds can know.
    const [min = Number.NaN, max = Number.NaN] = page.store?.clockOffsetMs ?? [];
    expect([min <= 500, max >= -500, max - min < 5_000]).toEqual([true, true, true]);
    expect(page.hellos).toBe(1);

    const report = (await (await fetch(`${url}/api/leases`)).json()) as StatusReport;
    const status = runCli(['status', '--json', ...store.options], { env: { ...store.env } });
    await status.exit;
    const reported = JSON.parse(status.stdout()) as StatusReport;
    const facts = ({ nodes, ...head }: StatusReport) => ({
      head,
      nodes: nodes.map(({ id, state, version, taskId }) => ({ id, state, version, taskId })),
    });
    expect(facts(report)).toEqual(facts(reported));

    // A client that comes later, or comes back, gets everything.
    const again = await follow(url);
    await expect.poll(() => again.hellos, SEEN).toBe(1);
    expect(again.epoch).toBe(page.epoch);
    expect(again.events).toEqual(page.events);
    expect(again.size).toBe(3);

    console.kill('SIGTERM');
    expect(await console.exit).toEqual({ code: 0, signal: null });
    expect(console.stdout()).toBe(`${url}\n`);
    await Promise.all([page.ended, again.ended]);
  });
});

describe('nodelease console', () => {
  it('starts while S3 is away, shows that, and finds it and loses it again', async () => {
    const s3 = inject('s3');
    const { hostname, port } = new URL(s3.endpoint);
    const proxy = new FaultProxy();
    ends.push(() => proxy.stop());
    const store = await fleetStore('s3', s3, `http://127.0.0.1:${await proxy.start(hostname, Number(port))}`);
    ends.push(() => store.remove());
    const init = runCli(['init', '--nodes', '3', ...store.options], { env: { ...store.env } });
    expect(await init.exit).toEqual({ code: 0, signal: null });
    proxy.cut();
    const console = runCli(['console', '--http', '127.0.0.1:0', ...store.options], { env: { ...store.env } });
    const url = await urlOf(console);
    const page = await follow(url);
    await expect.poll(() => page.store?.state, SEEN).toBe('failing');
    expect((await fetch(`${url}/api/leases`)).status).toBe(503);
    expect([page.head, page.size]).toEqual([null, 0]);
    proxy.heal();
    await expect
      .poll(() => [page.store?.state, page.size, page.head?.cluster?.size], SEEN)
      .toEqual(['ok', 3, 3]);
    proxy.stall('both');
    await expect.poll(() => [page.store?.state, page.size], SEEN).toEqual(['failing', 3]);
    const leases = await fetch(`${url}/api/leases`);
    expect([leases.status, Number(leases.headers.get('age')) > 0]).toEqual([200, true]);
    proxy.heal();
    await expect.poll(() => page.store?.state, SEEN).toBe('ok');
    const ofStore = () => page.history.filter((kind) => kind.startsWith('store'));
    await expect.poll(ofStore, SEEN).toEqual(['store-failed', 'store-ok', 'store-failed', 'store-ok']);
    expect(page.hellos).toBeLessThanOrEqual(2);
    console.kill('SIGINT');
    expect(await console.exit).toEqual({ code: 0, signal: null });
  });

  it('shows the discovery tree next to the leases, and how far they agree', async () => {
    const connect = `${inject('zookeeper').connect}${uniqueChroot('console')}`;
    const tree = client(connect);
    const store = await fleetStore('file', inject('s3'));
    ends.push(() => store.remove());
    await startTask(store, ['--nodes', '2', '--task-id', 'task-0']).started();
    const console = runCli(['console', '--http', '127.0.0.1:0', ...store.options, '--zookeeper', connect]);
    const page = await follow(await urlOf(console));
    await expect.poll(() => page.tree, SEEN).toMatchObject({ zookeeper: connect, exists: false, nodes: [] });
    await expect
      .poll(() => page.head?.discovery, SEEN)
      .toMatchObject({ state: 'degraded', problem: 'of 1 held node ids 1 missing' });
    await tree.createWithParents('/discovery/nodes/00/08', data(0, 1), 'ephemeral');
    await tree.createWithParents('/discovery/servicetypes/web/0', data(0, 1), 'ephemeral');
    await expect
      .poll(() => page.tree?.services, SEEN)
      .toMatchObject([{ service: 'web', nodes: [{ nodeId: 0, version: 1 }] }]);
    expect(page.tree?.nodes).toMatchObject([{ nodeId: 0, clusterNodeId: 8, taskId: 'task-0' }]);
    await expect
      .poll(() => page.head?.discovery, SEEN)
      .toEqual({ state: 'ok', problem: null, nodes: [{ id: 0, state: 'ok', version: 1 }] });
  });

  it('shows the leases although ZooKeeper is away', async () => {
    const store = await fleetStore('file', inject('s3'));
    ends.push(() => store.remove());
    await startTask(store, ['--nodes', '2', '--task-id', 'task-0']).started();
    const console = runCli([
      'console',
      '--http',
      '127.0.0.1:0',
      ...store.options,
      '--zookeeper',
      '127.0.0.1:1',
    ]);
    const page = await follow(await urlOf(console));
    await expect
      .poll(() => page.head?.discovery, SEEN)
      .toMatchObject({ state: 'degraded', problem: expect.stringContaining('ECONNREFUSED') });
    expect(page.tree).toBeNull();
    expect(page.node(0)).toMatchObject({ state: 'held', taskId: 'task-0' });
    expect(page.store?.state).toBe('ok');
  });

  it('shows node ids that ZooKeeper gives out', async () => {
    const connect = `${inject('zookeeper').connect}${uniqueChroot('console')}`;
    const [host = '', port] = inject('zookeeper').connect.split(':');
    const proxy = new FaultProxy();
    ends.push(() => proxy.stop());
    const through = connect.replace(/^[^/]*/, `127.0.0.1:${await proxy.start(host, Number(port))}`);
    const provider = ['--provider', 'zookeeper', '--zookeeper'];
    const console = runCli(['console', '--http', '127.0.0.1:0', ...provider, through], { cwd: newFolder() });
    const page = await follow(await urlOf(console));
    await expect
      .poll(() => page.head, SEEN)
      .toMatchObject({ store: null, cluster: null, allocation: { zookeeper: through, groups: [] } });
    const task = runCli([
      'run',
      ...provider,
      connect,
      '--task-id',
      'one',
      '--',
      'sh',
      '-c',
      'echo at work; exec sleep 300',
    ]);
    await task.waitForOutput(/at work/);
    await expect.poll(() => [...page.history], SEEN).toHaveLength(1);
    const [{ nodeId, kind } = {}] = page.events;
    expect(kind).toBe('acquired');
    await expect.poll(() => page.node(nodeId ?? -1), SEEN).toMatchObject({ state: 'held', taskId: 'one' });
    await expect.poll(() => page.tree?.nodes, SEEN).toMatchObject([{ nodeId, taskId: 'one' }]);
    await expect.poll(() => page.head?.allocation?.groups, SEEN).toEqual([0]);
    proxy.cut();
    await expect.poll(() => [page.store?.state, page.tree], SEEN).toEqual(['failing', null]);
    proxy.heal();
    await expect.poll(() => page.store?.state, SEEN).toBe('ok');
    task.kill('SIGTERM');
    await task.exit;
    await expect.poll(() => page.node(nodeId ?? -1), SEEN).toBeUndefined();
    await expect.poll(() => page.history.at(-1), SEEN).toBe(`released ${nodeId}`);
  });

  it('shows the cluster to no client without the token in the file', async () => {
    const store = await fleetStore('file', inject('s3'));
    ends.push(() => store.remove());
    const file = join(newFolder(), 'token');
    await writeFile(file, 'a-token-for-the-tests\n');
    const console = runCli([
      'console',
      '--http',
      '127.0.0.1:0',
      '--bearer-token-file',
      file,
      ...store.options,
    ]);
    const url = await urlOf(console);
    for (const path of ['/api/leases', '/api/events'])
      expect((await fetch(`${url}${path}`)).status).toBe(401);
    const page = await follow(url, { authorization: 'Bearer a-token-for-the-tests' });
    await expect.poll(() => page.hellos, SEEN).toBe(1);
  });

  it('does not start with what can never work', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    ends.push(async () => taken.close());
    const port = (taken.address() as AddressInfo).port;
    const folder = newFolder();
    const empty = join(folder, 'empty');
    await writeFile(empty, '');
    for (const [args, complaint] of [
      [
        ['--http', `127.0.0.1:${port}`],
        `nodelease: --http: expected a port that no other program listens on (this one is taken), got "127.0.0.1:${port}" [CONFIG_INVALID]\n`,
      ],
      [['--bearer-token-file', empty], /^nodelease: --bearer-token-file: expected .*\n$/],
      [
        ['--store', 'memory:'],
        /^nodelease: --store: expected a store that others see, too .*, got "memory:" \[CONFIG_INVALID\]\n$/,
      ],
      [['--provider', 'zookeeper'], /^nodelease: --provider: .*--zookeeper.*\n$/],
      [['--endpoint', 'http://127.0.0.1:9'], /^nodelease: --endpoint: .*\n$/],
      [['--allow-writes'], /^nodelease: --allow-writes: expected --zookeeper with it .*\n$/],
      [
        ['--allow-writes', '--zookeeper', '127.0.0.1:9'],
        /^nodelease: --allow-writes: expected --bearer-token-file with it .*\n$/,
      ],
    ] as const) {
      const env = { NODELEASE_STORE: `file:${folder}/leases` };
      const console = runCli(['console', '--http', '127.0.0.1:0', ...args], { cwd: folder, env });
      expect(await console.exit).toEqual({ code: 64, signal: null });
      expect([console.stdout(), console.stderr()]).toEqual([
        '',
        typeof complaint === 'string' ? complaint : expect.stringMatching(complaint),
      ]);
    }
  });
});
