import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { readFleet } from '../../../../src/zookeeper/configuration/fleet.js';
import { configPublisher } from '../../../../src/zookeeper/configuration/index.js';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { isAlive, newFolder, removeFolders, untilDead } from '../../app/cli/run-support.js';
import { client, closeClients } from '../discovery/discovery-support.js';

let connect: string;
let store: string;

beforeEach(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('run-config')}`;
  await client(connect).ensurePath('/');
  store = `file:${newFolder()}`;
});
afterEach(async () => {
  await Promise.all([killAll(), closeClients()]);
  removeFolders();
});

/** No server is there. */
const AWAY = '127.0.0.1:9';

function run(script: string, ...options: string[]): TestProcess {
  return runIn(connect, script, ...options);
}

function runIn(servers: string, script: string, ...options: string[]): TestProcess {
  const all = [
    '--store',
    store,
    '--zookeeper',
    servers,
    '--config',
    'shop,prod',
    '--config-spread',
    '0s',
    ...options,
  ];
  return runCli(['run', ...all, '--', 'sh', '-c', script]);
}

/** Publishes for `shop,prod`, or for all applications. */
async function publish(
  properties: Readonly<Record<string, string | null>>,
  at: { readonly shared?: true; readonly nodes?: string } = {},
) {
  const name = at.shared ? { app: 'application' } : { app: 'shop', profile: 'prod' };
  const publisher = configPublisher(client(connect), { ...name, nodes: at.nodes, author: 'test' });
  return publisher.publish(Object.entries(properties).map(([key, value]) => ({ key, new: value })));
}

const seen = async () => (await readFleet(client(connect), '/config', {}, 'shop,prod'))[0]?.nodes;

/** Says what it has, and ends at SIGTERM after a moment. */
const SERVER =
  'trap "echo stopped $$; exit 0" TERM; echo "started $$ $NODE_ID_VERSION $GREETING"; while :; do sleep 0.05; done';

describe('nodelease run --config', () => {
  it('gives the command the properties of its contexts as variables; the command line wins, and then the most specific context', async () => {
    await publish({ 'db.pool-size': '8', greeting: 'grüß "dich"\nzwei' });
    await publish({ greeting: 'less specific', shared: 'yes', own: 'no' }, { shared: true });
    const script = 'printf "%s|%s|%s|%s|%s" "$DB_POOL_SIZE" "$GREETING" "$SHARED" "$OWN" "$NODE_ID"';
    const run1 = run(script, '--env', 'OWN=mine');
    expect(await run1.exit).toEqual({ code: 0, signal: null });
    expect(run1.stdout()).toBe('8|grüß "dich"\nzwei|yes|mine|0');
  });

  it('has its properties below another root on request', async () => {
    const publisher = configPublisher(client(connect), {
      app: 'shop',
      profile: 'prod',
      root: '/settings',
      author: 'test',
    });
    await publisher.publish([{ key: 'greeting', new: 'elsewhere' }]);
    const run1 = run('echo "$GREETING"; sleep 600', '--config-root', '/settings');
    await run1.waitForOutput(/elsewhere/);
    await expect
      .poll(async () => (await readFleet(client(connect), '/settings', {})).map(({ nodes }) => nodes.length))
      .toEqual([1]);
  });

  it('gives a node the overrides of its id', async () => {
    await publish({ greeting: 'all' });
    await publish({ greeting: 'canary' }, { nodes: '0-1' });
    const fixed = [0, 1, 2].map((id) =>
      runCli([
        'run',
        '--node-id',
        `${id}`,
        '--zookeeper',
        connect,
        '--config',
        'shop,prod',
        '--',
        'printenv',
        'GREETING',
      ]),
    );
    await Promise.all(fixed.map(({ exit }) => exit));
    expect(fixed.map((each) => each.stdout())).toEqual(['canary\n', 'canary\n', 'all\n']);
  });

  it('starts no command, and gives the node id back, where two properties would be the same variable', async () => {
    await publish({ 'db.pool-size': '1', 'db.pool.size': 'hunter2' });
    const refused = run('echo never');
    expect(await refused.exit).toEqual({ code: 64, signal: null });
    expect(refused.stdout()).toBe('');
    const complaint = refused
      .stderr()
      .split('\n')
      .find((line) => line.startsWith('nodelease: '));
    expect(complaint).toContain(
      'db.pool.size: expected another variable than db.pool-size has, got "DB_POOL_SIZE"',
    );
    expect(refused.stderr()).not.toContain('hunter2');
    expect(JSON.parse(readFileSync(join(store.slice('file:'.length), '0.json'), 'utf8'))).not.toHaveProperty(
      'taskId',
    );
  });
});

describe('when the configuration changes', () => {
  it('the command is started again with it on request: one at a time, under the same lease, and others can see which revision runs', async () => {
    await publish({ greeting: 'one' });
    // The session would outlive the wait for its end: what is gone was taken out.
    const server = run(SERVER, '--on-config-change', 'restart', '--zookeeper-session-timeout', '40s');
    const [, first = '', version] = await server.waitForOutput(/started (\d+) (\d+) one/);
    await expect.poll(seen).toMatchObject([{ nodeId: 0, revisions: { 'shop,prod': 1 } }]);
    await publish({ greeting: 'two' });
    const [, second = ''] = await server.waitForOutput(
      new RegExp(`stopped ${first}\\nstarted (\\d+) ${version} two\\n`),
    );
    await expect.poll(seen).toMatchObject([{ nodeId: 0, revisions: { 'shop,prod': 2 } }]);
    await publish({ greeting: null });
    await server.waitForOutput(new RegExp(`stopped ${second}\\nstarted \\d+ ${version} \\n`));
    server.kill('SIGTERM');
    expect(await server.exit).toEqual({ code: 0, signal: null });
    expect(server.stdout().match(/started/g)).toHaveLength(3);
    expect(server.stderr()).toMatch(/lease released/);
    await expect.poll(seen).toEqual([]);
  });

  it('it learns, when it is started again, that its data directory has earlier files', async () => {
    await publish({ greeting: 'one' });
    const script =
      'trap "exit 0" TERM; echo "$GREETING, restored: $NODE_DATA_RESTORED"; while :; do sleep 0.05; done';
    const server = run(script, '--on-config-change', 'restart', '--data-dir', newFolder());
    await server.waitForOutput(/one, restored: false/);
    await publish({ greeting: 'two' });
    expect((await server.waitForOutput(/two, restored: (\w+)/))[1]).toBe('true');
  });

  it('it is not started again where no variable has changed, and runs the new revision all the same', async () => {
    await publish({ greeting: 'one' });
    await publish({ other: 'x' }, { shared: true });
    await publish({ other: 'mine' });
    const server = run(SERVER, '--on-config-change', 'restart');
    await server.waitForOutput(/started/);
    await publish({ other: 'y' }, { shared: true });
    await expect.poll(seen).toMatchObject([{ revisions: { 'shop,prod': 2, application: 2 } }]);
    expect(server.stdout()).not.toContain('stopped');
  });

  it('it gets a signal on request, once the copy of the configuration is written', async () => {
    const copy = join(newFolder(), 'shop.json');
    await publish({ greeting: 'one' });
    const script = `trap 'grep -o "\\"value\\":\\"[a-z]*\\"" ${copy}' HUP; echo begun; while :; do sleep 0.05; done`;
    const server = run(script, '--on-config-change', 'signal:SIGHUP', '--config-snapshot', copy);
    await server.waitForOutput(/begun/);
    await publish({ greeting: 'two' });
    await server.waitForOutput(/"value":"two"/);
    await expect.poll(seen).toMatchObject([{ revisions: { 'shop,prod': 2 } }]);
  });

  it('it keeps what it has by default, the log says so, and others can see that it is behind', async () => {
    await publish({ greeting: 'one' });
    const server = run(SERVER);
    await server.waitForOutput(/started/);
    await expect.poll(seen).toMatchObject([{ revisions: { 'shop,prod': 1 } }]);
    await publish({ greeting: 'hunter2' });
    await server.waitForOutput(
      /"variables":\["GREETING"\].*the command keeps what it has \(--on-config-change ignore\)/,
    );
    const status = await runInProcess([
      'config',
      'status',
      '--app',
      'shop',
      '--profile',
      'prod',
      '--zookeeper',
      connect,
      '--json',
    ]);
    expect(JSON.parse(status.answer)).toMatchObject({
      revisions: { 'shop,prod': 2 },
      nodes: [{ nodeId: 0, revisions: { 'shop,prod': 1 }, behind: ['shop,prod'] }],
    });
    expect(server.stdout()).not.toContain('stopped');
    expect(server.stderr()).not.toContain('hunter2');
  });

  it('it keeps what it has where that cannot be made variables, and is started again once it can', async () => {
    await publish({ greeting: 'one' });
    const server = run(SERVER, '--on-config-change', 'restart');
    await server.waitForOutput(/started/);
    await publish({ greeting: 'two', Greeting: 'clash' });
    await server.waitForOutput(/the command keeps its configuration, for the new one cannot be used/);
    expect(server.stdout()).not.toContain('stopped');
    await publish({ Greeting: null });
    await server.waitForOutput(/started \d+ \d+ two/);
  });

  it('a command that has been started again is guarded as the first one was: it ends with a nodelease that is killed', async () => {
    await publish({ greeting: 'one' });
    const server = run(
      'trap "exit 0" TERM; trap "" HUP; echo "started $$ $GREETING"; while :; do sleep 0.05; done',
      '--on-config-change',
      'restart',
    );
    await server.waitForOutput(/started \d+ one/);
    await publish({ greeting: 'two' });
    const [, pid = ''] = await server.waitForOutput(/started (\d+) two/);
    server.kill('SIGKILL');
    await untilDead([Number(pid)], 30_000);
  });

  it('a command that is being stopped for that is killed at once where its lease is taken away, and stays ended (rule 7)', async () => {
    await publish({ greeting: 'one' });
    const script = 'trap "echo asked" TERM; echo "started $$"; while :; do sleep 0.05; done';
    // A renewal each second, by which the loss is noticed.
    const stubborn = run(script, '--on-config-change', 'restart', '--duration', '3s');
    const [, pid = ''] = await stubborn.waitForOutput(/started (\d+)/);
    await publish({ greeting: 'two' });
    await stubborn.waitForOutput(/asked/);
    await runInProcess(['release', '0', '--force', '--store', store]);
    expect((await stubborn.exit).code).toBe(76);
    expect(isAlive(Number(pid))).toBe(false);
    expect(stubborn.stdout().match(/started/g)).toHaveLength(1);
  });

  it('a command that ends by itself ends the run, and none that is asked to stop is started again', async () => {
    await publish({ greeting: 'one' });
    const server = run(
      'echo started; while [ ! -e "$0" ]; do sleep 0.05; done; exit 5'.replace('$0', `${store.slice(5)}/end`),
      '--on-config-change',
      'restart',
    );
    await server.waitForOutput(/started/);
    writeFileSync(`${store.slice(5)}/end`, '');
    expect((await server.exit).code).toBe(5);

    // Ends at the second SIGTERM: the first one is for the restart, the second one that of nodelease.
    const twice =
      "n=0; trap 'n=$((n+1)); echo asked $n; [ $n = 1 ] || exit 3' TERM; echo started; while :; do sleep 0.05; done";
    const slow = run(twice, '--on-config-change', 'restart');
    await slow.waitForOutput(/started/);
    await publish({ greeting: 'two' });
    await slow.waitForOutput(/asked 1/);
    slow.kill('SIGTERM');
    expect((await slow.exit).code).toBe(3);
    expect(slow.stdout()).toBe('started\nasked 1\nasked 2\n');
  });
});

describe('without ZooKeeper at the start', () => {
  it('the copy is used, and the log says so; with --config-required, or without a copy, no command is started', async () => {
    const copy = join(newFolder(), 'shop.json');
    await publish({ greeting: 'kept' });
    const first = run('echo "$GREETING"', '--config-snapshot', copy);
    expect((await first.exit).code).toBe(0);
    // Each gives up after some seconds.
    const away = runIn(AWAY, 'echo "$GREETING"', '--config-snapshot', copy);
    const required = runIn(AWAY, 'echo "$GREETING"', '--config-snapshot', copy, '--config-required');
    const nothing = runIn(AWAY, 'echo never');
    expect((await away.exit).code).toBe(0);
    expect(away.stdout()).toBe('kept\n');
    expect(away.stderr()).toMatch(
      /"revisions":\{"shop,prod":1.*the configuration is the copy of 20.*could not be read: /,
    );
    for (const refused of [required, nothing]) {
      expect(await refused.exit).toEqual({ code: 69, signal: null });
      expect(refused.stdout()).toBe('');
      expect(refused.stderr()).toMatch(/lease released/);
    }
    expect(required.stderr()).toMatch(/"level":60.*the configuration could not be read/);
  });
});
