import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { changeReport } from '../../../../src/app/discovery/discovery-watch.js';
import type { DiscoveryReport } from '../../../../src/node/wire/cluster-snapshot.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { runInProcess } from '../../../support/in-process.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients, data, restrict } from '../discovery/discovery-support.js';

let connect: string;
let chroot: string;
let tree: ZooKeeperClient;

beforeEach(() => {
  chroot = uniqueChroot('discovery');
  connect = `${inject('zookeeper').connect}${chroot}`;
  tree = client(connect);
});

afterEach(async () => {
  await killAll();
  await stopProxies();
  await closeClients();
});

const call = (...args: string[]) => runInProcess(['discovery', ...args]);
const list = (...args: string[]) => call('ls', '--zookeeper', connect, ...args);

async function announceThree(): Promise<void> {
  const orders = { service: 'orders', address: '10.0.0.1', port: 8080 };
  await tree.createWithParents('/discovery/nodes/00/08', data(0, 3, orders), 'ephemeral');
  await tree.createWithParents('/discovery/nodes/00/0A', data(2, 1), 'ephemeral');
  await tree.createWithParents('/discovery/nodes/01/00', data(248, 7), 'ephemeral');
  await tree.createWithParents('/discovery/servicetypes/orders/0', data(0, 3, orders), 'ephemeral');
  await tree.createWithParents('/discovery/endpoints/pay/_/orders:0', data(0, 3), 'ephemeral');
}

describe('nodelease discovery ls', () => {
  it('shows nodes, services and endpoints', async () => {
    await announceThree();
    const session = (await tree.whenConnected()).sessionId;
    const command = runCli(['discovery', 'ls', '--zookeeper', connect]);
    expect((await command.exit).code).toBe(0);
    expect(command.stderr()).toBe('');
    expect(command.stdout().split('\n')).toEqual([
      'NODE ID  ZNODE  VERSION  TASK      SERVICE  ADDRESS        SESSION           PROBLEM',
      `      0  00/08        3  task-0    orders   10.0.0.1:8080  ${session}`,
      `      2  00/0A        1  task-2                            ${session}`,
      `    248  01/00        7  task-248                          ${session}`,
      '',
      'SERVICE  NODE ID  VERSION  TASK    ADDRESS        SESSION           PROBLEM',
      `orders         0        3  task-0  10.0.0.1:8080  ${session}`,
      '',
      'ENDPOINT  KEY  REF       VERSION  TASK    ADDRESS  SESSION           PROBLEM',
      `pay       _    orders:0        3  task-0           ${session}`,
      '',
      `3 nodes, 1 service, 1 endpoint at /discovery of ${connect}`,
      '',
    ]);
  });

  it('gives the same as one line of JSON', async () => {
    await announceThree();
    const { code, answer } = await list('--json');
    expect(code).toBe(0);
    expect(answer.trimEnd().split('\n')).toHaveLength(1);
    const report = JSON.parse(answer) as DiscoveryReport;
    expect(report).toMatchObject({ zookeeper: connect, path: '/discovery', exists: true, foreign: [] });
    expect(
      report.nodes.map(({ nodeId, clusterNodeId, version }) => [nodeId, clusterNodeId, version]),
    ).toEqual([
      [0, 8, 3],
      [2, 10, 1],
      [248, 256, 7],
    ]);
    expect(report.services).toMatchObject([
      { service: 'orders', nodes: [{ nodeId: 0, address: '10.0.0.1', port: 8080 }] },
    ]);
    expect(report.endpoints).toMatchObject([
      { endpoint: 'pay', keys: [{ key: '_', refs: [{ ref: 'orders:0', nodeId: 0 }] }] },
    ]);
  });

  it('shows only what is below a path', async () => {
    await announceThree();
    expect((await list('/discovery/nodes/01')).answer).toMatch(
      /^NODE ID .*\n +248 .*\n\n1 node, 0 services, 0 endpoints at \/discovery\/nodes\/01 of/,
    );
    expect((await list('endpoints')).answer).toMatch(
      /^ENDPOINT .*\npay .*\n\n0 nodes, 0 services, 1 endpoint at \/discovery\/endpoints of/,
    );
    expect((await list('/discovery/nodes/00/08')).answer).toMatch(/^NODE ID .*\n +0 .*\n\n1 node,/);
    for (const path of [
      '/discovery/nodes/02',
      '/discovery/nodes/00/FF',
      '/discovery/nodes/x',
      '/discovery/probe',
    ]) {
      expect(await list(path)).toMatchObject({
        code: 0,
        answer: `There is nothing at ${path} of ${connect}.\n`,
        complaints: '',
      });
    }
  });

  it('says in one line that the tree is empty, or not there yet, which is no failure', async () => {
    const empty = {
      code: 0,
      answer: `The discovery tree at ${connect} is empty: no task announces anything there.\n`,
      complaints: '',
    };
    expect(await list()).toMatchObject(empty);
    await tree.ensurePath('/discovery/nodes/00');
    await tree.ensurePath('/discovery/servicetypes');
    expect(await list()).toMatchObject(empty);
  });

  it('shows what strangers left there, and does not fail for it', async () => {
    await tree.createWithParents('/discovery/nodes/00/08', 'who\x1b[2Jknows', 'persistent');
    await tree.createWithParents('/discovery/nodes/00/09', data(5, 1), 'ephemeral');
    await tree.createWithParents('/discovery/nodes/lock', '', 'persistent');
    await tree.createWithParents('/discovery/endpoints/none', '', 'persistent');
    const { code, answer, complaints } = await list();
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' });
    expect(answer).toMatch(/\n {6}0 {2}00\/08 +- +none +unreadable: who\ufffd\[2Jknows\n/);
    expect(answer).toMatch(/\n {6}1 {2}00\/09 .* its data names node id 5\n/);
    expect(answer).toMatch(/\nnone +-\n/);
    expect(answer).toMatch(/FOREIGN ZNODE\n\/discovery\/nodes\/lock\n/);
    expect(answer).toMatch(/\n2 nodes, 0 services, 1 endpoint, 2 problems, 1 foreign znode at/);
  });

  it('leaves out what nodelease keeps for itself', async () => {
    await tree.createWithParents('/discovery/stamps/00/08', '{"timestamp":1}', 'persistent');
    expect(await list()).toMatchObject({
      code: 0,
      answer: expect.stringContaining('is empty: no task announces anything there.'),
      complaints: '',
    });
    expect((await list('/discovery/stamps')).answer).toMatch(
      /^No task announces anything at \/discovery\/stamps: nodelease keeps it/,
    );
    expect((await list('/discovery/stamps/none')).answer).toMatch(
      /^There is nothing at \/discovery\/stamps\/none of /,
    );
  });

  it('reads 2,000 nodes', async () => {
    await tree.ensurePath('/discovery/nodes');
    await Promise.all(
      ['00', '01', '02', '03', '04', '05', '06', '07'].map((group) =>
        tree.ensurePath(`/discovery/nodes/${group}`),
      ),
    );
    const ids = Array.from({ length: 2_000 }, (_, id) => id);
    const path = (id: number) =>
      `/discovery/nodes/${((id + 8) >> 8).toString(16).padStart(2, '0')}/${((id + 8) & 255).toString(16).padStart(2, '0').toUpperCase()}`;
    await Promise.all(ids.map((id) => tree.create(path(id), data(id, 1), 'ephemeral')));
    const { code, answer } = await list('--json');
    expect(code).toBe(0);
    expect((JSON.parse(answer) as DiscoveryReport).nodes.map(({ nodeId }) => nodeId)).toEqual(ids);
  });
});

describe('nodelease discovery with the wrong credentials', () => {
  it.each(['ls', 'watch'])(
    '%s ends with 69 and the path of a folder that may not be read',
    async (command) => {
      await announceThree();
      await restrict(inject('zookeeper').connect, `${chroot}/discovery/nodes/00`, ['write', 'admin']);
      const { code, complaints } = await call(
        command,
        '--zookeeper',
        connect,
        '--zookeeper-auth',
        'digest:me:wrong',
      );
      expect(code).toBe(69);
      expect(complaints).toMatch(/^nodelease: .*\/discovery\/nodes\/00.*no-auth.*\n$/);
    },
  );

  it('ls shows the rest where a single node may not be read, and ends with 69 all the same', async () => {
    await announceThree();
    await restrict(inject('zookeeper').connect, `${chroot}/discovery/nodes/00/0A`, ['write', 'admin']);
    const { code, answer, complaints } = await list();
    expect(code).toBe(69);
    expect(answer).toMatch(/\n {6}0 {2}00\/08 +3 /);
    expect(answer).toMatch(/\n {6}2 {2}00\/0A .*may not be read: no-auth\n/);
    expect(complaints).toBe(
      'nodelease: /discovery/nodes/00/0A: no-auth: these credentials may not read the data\n',
    );
  });
});

describe('nodelease discovery called wrongly', () => {
  it.each<[string, string[], RegExp]>([
    ['without a command', [], /no command given: see nodelease discovery --help/],
    ['with an unknown command', ['walk'], /unknown command 'walk'/],
    ['ls without --zookeeper', ['ls'], /no ZooKeeper given: expected --zookeeper HOST:PORT/],
    ['watch without --zookeeper', ['watch'], /no ZooKeeper given: expected --zookeeper HOST:PORT/],
    [
      'with a malformed connect string',
      ['ls', '--zookeeper', 'zk:x'],
      /--zookeeper: expected HOST:PORT.*"x" is no port.*, got "zk:x"/,
    ],
    [
      'with malformed credentials',
      ['ls', '--zookeeper', 'zk', '--zookeeper-auth', 'me:pw'],
      /--zookeeper-auth: expected digest:USER:PASSWORD/,
    ],
    [
      'with a path outside of the tree',
      ['ls', '/app', '--zookeeper', 'zk'],
      /path: expected \/discovery or a path below it, .*, got "\/app"/,
    ],
    ['with two paths', ['ls', 'nodes', 'endpoints', '--zookeeper', 'zk'], /too many arguments/],
    ['with a setting of a store', ['ls', '--store', 'memory:'], /unknown option '--store'/],
  ])('%s answers with one line and exit code 64', async (_, args, line) => {
    const { code, answer, complaints } = await call(...args);
    expect(complaints).toMatch(new RegExp(`^nodelease: .*${line.source}.*\n$`));
    expect({ code, answer }).toEqual({ code: 64, answer: '' });
  });

  it('names what there is in its help', async () => {
    const { code, answer } = await call('--help');
    expect(code).toBe(0);
    expect(answer).toMatch(/\n {2}ls .*\n {2}watch /);
    expect((await call('ls', '--help')).answer).toMatch(
      /--json.*NODELEASE_ZOOKEEPER\b.*NODELEASE_ZOOKEEPER_AUTH/s,
    );
  });
});

describe('nodelease discovery without an answer', () => {
  let silent: Server;
  beforeEach(async () => {
    silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
  });
  afterEach(() => silent.close());

  // All of them wait for the same five seconds.
  it('ends with 69 soon, and one line that says why', async () => {
    const servers: [string, RegExp][] = [
      ['no-such-host.invalid:2181', /getaddrinfo (ENOTFOUND|EAI_AGAIN) no-such-host\.invalid/],
      ['127.0.0.1:1', /connect ECONNREFUSED 127\.0\.0\.1:1/],
      [`127.0.0.1:${(silent.address() as AddressInfo).port}`, /timeout/],
    ];
    const commands = [['ls'], ['watch'], ['services'], ['resolve', 'orders']];
    await Promise.all(
      commands.flatMap((command) =>
        servers.map(async ([server, why]) => {
          const begun = performance.now();
          const { code, answer, complaints } = await call(...command, '--zookeeper', server);
          expect(complaints).toMatch(new RegExp(`^nodelease: .*${why.source}.*\n$`));
          expect({ code, answer }).toEqual({ code: 69, answer: '' });
          // Five seconds, on a machine that has much else to do.
          expect(performance.now() - begun).toBeLessThan(20_000);
        }),
      ),
    );
  });

  it('can be interrupted while it connects', async () => {
    for (const [command, expected] of [
      ['ls', 130],
      ['watch', 0],
    ] as const) {
      const process = runCli([
        'discovery',
        command,
        '--zookeeper',
        `127.0.0.1:${(silent.address() as AddressInfo).port}`,
      ]);
      await once(silent, 'connection');
      process.kill('SIGINT');
      expect(await process.exit).toEqual({ code: expected, signal: null });
      expect(process.stderr()).toBe('');
    }
  });
});

/** What a watch has reported so far, as one finds it by adding up its lines. */
function added(watch: TestProcess): Map<string, number | null> {
  const known = new Map<string, number | null>();
  for (const line of watch.stdout().split('\n').slice(0, -1)) {
    const report = JSON.parse(line) as ReturnType<typeof changeReport> | { readonly kind: 'connection' };
    if (report.kind === 'connection') continue;
    // Each line fits to those before it.
    expect([line, report.change === 'left' || report.change === 'changed']).toEqual([
      line,
      known.has(report.path),
    ]);
    if (report.change === 'left') known.delete(report.path);
    else known.set(report.path, report.version);
  }
  return known;
}

describe('nodelease discovery watch', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'shows what is there, and every change, until %s',
    async (signal) => {
      await tree.createWithParents('/discovery/nodes/00/08', data(0, 3), 'ephemeral');
      const watch = runCli(['discovery', 'watch', '--zookeeper', connect]);
      await watch.waitForOutput(
        /node 0 \(00\/08\) is there: version 3, task task-0, session \w{16}\n.* 1 announcement at .*watching\n/,
      );
      await tree.createWithParents('/discovery/nodes/00/09', data(1, 1), 'ephemeral');
      await watch.waitForOutput(/ node 1 \(00\/09\) joined: version 1, task task-1,/);
      await tree.setData('/discovery/nodes/00/08', data(0, 3, { address: 'there', port: 80 }));
      await watch.waitForOutput(
        / node 0 \(00\/08\) changed: version 3, task task-0, address none → there:80,/,
      );
      await tree.createWithParents('/discovery/endpoints/pay/_/1', data(1, 1), 'ephemeral');
      await watch.waitForOutput(/ endpoint pay key _ of 1 joined: version 1, task task-1,/);
      await tree.createWithParents('/discovery/servicetypes/orders/1', 'x', 'ephemeral');
      await watch.waitForOutput(/ service orders of node 1 joined: .*unreadable: x\n/);
      await tree.remove('/discovery/nodes/00/09');
      await watch.waitForOutput(/ node 1 \(00\/09\) left: version 1,/);
      watch.kill(signal);
      expect(await watch.exit).toEqual({ code: 0, signal: null });
      expect(watch.stderr()).toBe('');
      expect(
        watch
          .stdout()
          .trimEnd()
          .split('\n')
          .every((line) => /^\d{4}-\d\d-\d\dT[\d:.]{12}Z {2}\S/.test(line)),
      ).toBe(true);
    },
  );

  it('begins with a tree that is not there yet', async () => {
    const watch = runCli(['discovery', 'watch', '--zookeeper', connect]);
    await watch.waitForOutput(/no task announces anything at .*watching\n/);
    await announceThree();
    await watch.waitForOutput(/endpoint pay key _ of orders:0 joined/);
    await expect.poll(() => watch.stdout().match(/ joined: /g)?.length).toBe(5);
  });

  it('says that the connection is lost and restored, and shows what changed meanwhile', async () => {
    const { proxy, through } = await throughProxy(connect);
    await announceThree();
    const watch = runCli(['discovery', 'watch', '--json', '--zookeeper', through]);
    await watch.waitForOutput(/"change":"watching"/);
    proxy.cut();
    await watch.waitForOutput(/"change":"lost","kind":"connection"/);
    await tree.remove('/discovery/nodes/01/00');
    await tree.remove('/discovery/nodes/00/08');
    await tree.create('/discovery/nodes/00/08', data(0, 4), 'ephemeral');
    await tree.create('/discovery/nodes/00/0B', data(3, 1), 'ephemeral');
    proxy.heal();
    await watch.waitForOutput(/"change":"restored"/);
    await watch.waitForOutput(/"change":"joined".*nodes\/00\/0B/);
    await watch.waitForOutput(/"change":"left".*nodes\/01\/00/);
    await watch.waitForOutput(/"change":"changed".*nodes\/00\/08/);
    expect(Object.fromEntries(added(watch))).toEqual({
      '/discovery/nodes/00/08': 4,
      '/discovery/nodes/00/0A': 1,
      '/discovery/nodes/00/0B': 1,
      '/discovery/servicetypes/orders/0': 3,
      '/discovery/endpoints/pay/_/orders:0': 3,
    });
  });

  it('goes on in a new session when its own expires', async () => {
    await announceThree();
    const watch = runCli(['discovery', 'watch', '--json', '--zookeeper', connect]);
    const [, sessionId = ''] = await watch.waitForOutput(/"change":"watching".*"sessionId":"(\w+)"/);
    await expireSession({ connect: inject('zookeeper').connect, sessionId });
    await watch.waitForOutput(/"change":"expired"/);
    await watch.waitForOutput(/"change":"restored"/);
    await tree.create('/discovery/nodes/00/0B', data(3, 1), 'ephemeral');
    await watch.waitForOutput(/"change":"joined".*nodes\/00\/0B/);
    expect(watch.stderr()).toBe('');
  });

  it('adds up to the tree after many changes and broken connections', async () => {
    const { proxy, through } = await throughProxy(connect);
    const watch = runCli(['discovery', 'watch', '--json', '--zookeeper', through]);
    await watch.waitForOutput(/"change":"watching"/);
    const paths = [
      'nodes/00/08',
      'nodes/00/09',
      'nodes/01/00',
      'servicetypes/a/1',
      'servicetypes/b/1',
      'endpoints/e/_/a:1',
      'endpoints/e/k/a:1',
    ];
    let chance = 1;
    for (let step = 0; step < 400; step += 1) {
      chance = (chance * 48_271) % 2_147_483_647;
      const path = `/discovery/${paths[chance % paths.length]}`;
      // Folders go, too, as containers do.
      if (chance % 3 === 0) {
        await tree.remove(path);
        await tree.remove(path.slice(0, path.lastIndexOf('/'))).catch(() => undefined);
      } else if ((await tree.read(path)) === undefined)
        await tree.createWithParents(path, data(1, step), 'ephemeral');
      else await tree.setData(path, data(1, step));
      if (step % 100 === 50) proxy.reset();
    }
    await tree.createWithParents('/discovery/servicetypes/last/1', data(1, 999), 'ephemeral');
    await watch.waitForOutput(/servicetypes\/last\/1/);
    const report = JSON.parse((await list('--json')).answer) as DiscoveryReport;
    const refs = report.endpoints.flatMap(({ keys }) => keys.flatMap((key) => key.refs));
    const entries = [...report.nodes, ...report.services.flatMap(({ nodes }) => nodes), ...refs];
    const wanted = Object.fromEntries(entries.map(({ path, version }) => [path, version]));
    await expect.poll(() => Object.fromEntries(added(watch))).toEqual(wanted);
    expect(watch.stderr()).toBe('');
  });
});
