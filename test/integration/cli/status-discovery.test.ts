import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { StatusReport } from '../../../src/monitor/status-report.js';
import type { ZooKeeperClient } from '../../../src/zookeeper/zookeeper-client.js';
import { type FleetStore, fleetStore, initCluster, startTask } from '../../support/fleet.js';
import { killAll, runCli } from '../../support/processes.js';
import { startZooKeeperProcess } from '../../support/servers/zookeeper-process.js';
import { uniqueChroot } from '../../support/zookeeper.js';
import { client, closeClients, data, restrict } from '../discovery/discovery-support.js';

let store: FleetStore;
let connect: string;
let chroot: string;
let tree: ZooKeeperClient;

beforeEach(async () => {
  chroot = uniqueChroot('status');
  connect = `${inject('zookeeper').connect}${chroot}`;
  tree = client(connect);
  store = await fleetStore('file', inject('s3'));
});

afterEach(async () => {
  await killAll();
  await closeClients();
  await store.remove();
});

/** Tasks that hold the node ids 0, 1, … and announce nothing by themselves. */
async function hold(count: number): Promise<void> {
  await initCluster(store, '--nodes', '5');
  for (let id = 0; id < count; id += 1) {
    await startTask(store, ['--task-id', `task-${id}`]).started();
  }
}

async function status(zookeeper: string | undefined, ...args: string[]) {
  const begun = performance.now();
  const command = runCli(['status', ...store.options, ...(zookeeper === undefined ? [] : ['--zookeeper', zookeeper]), ...args]);
  const { code } = await command.exit;
  return { code, answer: command.stdout(), complaints: command.stderr(), tookMs: performance.now() - begun };
}

const sound = { code: 0, complaints: '' };

describe('nodelease status with --zookeeper', () => {
  it('shows how the tree shows each id that is held', async () => {
    await hold(4);
    await tree.createWithParents('/discovery/nodes/00/08', data(0, 1), 'ephemeral');
    await tree.createWithParents('/discovery/nodes/00/09', data(1, 7), 'ephemeral');
    await tree.createWithParents('/discovery/nodes/00/0B', 'garbage', 'ephemeral');
    const { answer, ...end } = await status(connect);
    expect(end).toMatchObject(sound);
    expect(answer).toMatch(/^ID .* EXPIRES IN {2}DISCOVERY +PROBLEM\n/);
    expect(answer).toMatch(
      /\n 0 {2}held .*s {2}ok\n 1 {2}held .*s {2}version 7\n 2 {2}held .*s {2}missing\n 3 {2}held .*s {2}unreadable\n 4 {2}/,
    );
    expect(answer).toMatch(/\ndiscovery: degraded \(of 4 held node ids 1 missing, 1 shown with another version, 1 unreadable\)\n$/);
    const { answer: json } = await status(connect, '--json');
    expect((JSON.parse(json) as StatusReport).discovery).toEqual({
      state: 'degraded',
      problem: 'of 4 held node ids 1 missing, 1 shown with another version, 1 unreadable',
      nodes: [
        { id: 0, state: 'ok', version: 1 },
        { id: 1, state: 'other-version', version: 7 },
        { id: 2, state: 'missing', version: null },
        { id: 3, state: 'unreadable', version: null },
      ],
    });
  });

  it('says that discovery is ok when tree and leases agree', async () => {
    await hold(1);
    await tree.createWithParents('/discovery/nodes/00/08', data(0, 1), 'ephemeral');
    const { answer, ...end } = await status(connect);
    expect(end).toMatchObject(sound);
    expect(answer).toMatch(/\ndiscovery: ok\n$/);
    const { answer: json } = await status(connect, '--json');
    expect((JSON.parse(json) as StatusReport).discovery).toMatchObject({ state: 'ok', problem: null });
  });

  it('says nothing of discovery without it', async () => {
    await hold(1);
    expect((await status(undefined)).answer).not.toMatch(/discovery/i);
    expect((JSON.parse((await status(undefined, '--json')).answer) as StatusReport).discovery).toBeNull();
  });

  it('shows an id whose znode may not be read as unreadable', async () => {
    await hold(1);
    await tree.createWithParents('/discovery/nodes/00/08', data(0, 1), 'ephemeral');
    await restrict(inject('zookeeper').connect, `${chroot}/discovery/nodes/00/08`, ['write']);
    const { answer, ...end } = await status(connect);
    expect(end).toMatchObject(sound);
    expect(answer).toMatch(/s {2}unreadable\n/);
  });

  it('does not fail, and takes little more than two seconds, when ZooKeeper gives no answer', async () => {
    await hold(1);
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const paused = await startZooKeeperProcess();
    paused.pause();
    const servers: [string, RegExp][] = [
      ['127.0.0.1:1', /ECONNREFUSED/],
      ['no-such-host.invalid:2181', /getaddrinfo/],
      [`127.0.0.1:${(silent.address() as AddressInfo).port}`, /timeout/],
      [paused.connect, /timeout/],
    ];
    const { tookMs: ownMs } = await status(undefined);
    for (const [server, why] of servers) {
      const { answer, tookMs, ...end } = await status(server);
      expect([server, end]).toEqual([server, sound]);
      expect(answer).toMatch(/\n 0 {2}held .*s {2}\?\n/);
      expect(answer).toMatch(new RegExp(`\ndiscovery: degraded \\(.*${why.source}.*\\)\n$`));
      expect([server, tookMs < 3_000 + 3 * ownMs]).toEqual([server, true]);
    }
    const { answer: json } = await status('127.0.0.1:1', '--json');
    expect((JSON.parse(json) as StatusReport).discovery).toMatchObject({
      state: 'degraded',
      problem: expect.stringContaining('ECONNREFUSED'),
      nodes: [{ id: 0, state: 'unknown', version: null }],
    });
    silent.close();
    await paused.dispose();
  });

  it('goes on with --watch while ZooKeeper goes and comes back', async () => {
    const server = await startZooKeeperProcess();
    const other = client(server.connect);
    await other.createWithParents('/discovery/nodes/00/08', data(0, 1), 'persistent');
    await hold(1);
    const watch = runCli(['status', '--watch', ...store.options, '--zookeeper', server.connect]);
    await watch.waitForOutput(/\ndiscovery: ok\n/);
    await server.kill();
    await watch.waitForOutput(/s {2}\?\n(.*\n)*discovery: degraded/);
    await server.start();
    const before = watch.stdout().length;
    await expect.poll(() => watch.stdout().slice(before), { timeout: 15_000 }).toMatch(/s {2}ok\n(.*\n)*discovery: ok\n/);
    watch.kill('SIGTERM');
    expect(await watch.exit).toEqual({ code: 0, signal: null });
    expect(watch.stderr()).toBe('');
    await server.dispose();
  });
});
