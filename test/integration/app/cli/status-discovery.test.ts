import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { StatusReport } from '../../../../src/node/wire/status-report.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { type FleetStore, newStore, removeStores } from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { killAll, runCli } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients, data, restrict } from '../../zookeeper/discovery/discovery-support.js';

let store: FleetStore;
let connect: string;
let chroot: string;
let tree: ZooKeeperClient;

beforeEach(async () => {
  chroot = uniqueChroot('status');
  connect = `${inject('zookeeper').connect}${chroot}`;
  tree = client(connect);
  store = await newStore('file');
});

afterEach(async () => {
  await killAll();
  await stopProxies();
  await closeClients();
  await removeStores();
});

/** Leases of the node ids 0, 1, … of five, whose tasks announce nothing by themselves. */
async function hold(count: number): Promise<void> {
  expect(await runInProcess(['init', '--nodes', '5', ...store.options])).toMatchObject({ code: 0 });
  for (let id = 0; id < count; id += 1) {
    const lease = {
      taskId: `task-${id}`,
      version: 1,
      timestamp: Date.now() + 3_600_000,
      durationMs: 3_600_000,
      knownNodesMapping: {},
    };
    await store.spoil(`${id}.json`, JSON.stringify(lease));
  }
}

const status = (zookeeper: string | undefined, ...args: string[]) =>
  runInProcess([
    'status',
    ...store.options,
    ...(zookeeper === undefined ? [] : ['--zookeeper', zookeeper]),
    ...args,
  ]);

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
      /\n 0 {2}held .* {2}ok\n 1 {2}held .* {2}version 7\n 2 {2}held .* {2}missing\n 3 {2}held .* {2}unreadable\n 4 {2}/,
    );
    expect(answer).toMatch(
      /\ndiscovery: degraded \(of 4 held node ids 1 missing, 1 shown with another version, 1 unreadable\)\n$/,
    );
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
    expect(answer).toMatch(/ {2}unreadable\n/);
  });

  it('goes on with --watch while ZooKeeper goes and comes back', async () => {
    await hold(1);
    await tree.createWithParents('/discovery/nodes/00/08', data(0, 1), 'persistent');
    const { proxy, through } = await throughProxy(connect);
    const watch = runCli(['status', '--watch', ...store.options, '--zookeeper', through]);
    await watch.waitForOutput(/\ndiscovery: ok\n/);
    proxy.cut();
    await watch.waitForOutput(/ {2}\?\n(.*\n)*discovery: degraded/);
    proxy.heal();
    await watch.waitForOutput(/discovery: degraded(.*\n)*.* {2}ok\n(.*\n)*discovery: ok\n/);
    watch.kill('SIGTERM');
    expect(await watch.exit).toEqual({ code: 0, signal: null });
    expect(watch.stderr()).toBe('');
  });
});
