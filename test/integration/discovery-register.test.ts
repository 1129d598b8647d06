import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { acquire } from '../../src/acquire.js';
import { newInstance } from '../../src/discovery/services/new-instance.js';
import { jsonPayload } from '../../src/discovery/services/payload-codec.js';
import { ServiceDirectory } from '../../src/discovery/services/service-directory.js';
import { systemClock, systemRandom } from '../../src/system.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { type FleetStore, fleetStore, loggedAt, startTask, type Task } from '../support/fleet.js';
import { killAll, runCli, type TestProcess } from '../support/processes.js';
import { TreeReader } from '../support/tree-reader.js';
import { expireSession, uniqueChroot } from '../support/zookeeper.js';
import { freePorts } from '../support/zookeeper-process.js';
import { restrict } from './discovery-support.js';

/** Long enough for a machine that has much else to do. */
const SOON_MS = 20_000;
const SESSION_MS = 2_000;
const WORKER = fileURLToPath(new URL('../fixtures/programs/worker.mjs', import.meta.url));
const NODE = '/discovery/nodes/00/08';
const SERVICE = '/discovery/servicetypes/orders/0';

let connect: string;
let store: FleetStore;
let reader: TreeReader;
let directory: ServiceDirectory<unknown>;
const proxies: FaultProxy[] = [];

beforeEach(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  store = await fleetStore('file', inject('s3'));
  reader = new TreeReader(connect);
  directory = new ServiceDirectory({ zookeeper: reader.zookeeper, clock: systemClock, payload: jsonPayload });
});
afterEach(async () => {
  await killAll();
  await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
  await reader.close();
  await store.remove();
});

const LEASE = ['--nodes', '3', '--duration', '4s', '--log-level', 'debug', '--zookeeper-session-timeout', `${SESSION_MS}ms`];

function start(taskId: string, options: readonly string[] = [], script?: string): Task {
  return startTask(store, [...LEASE, '--task-id', taskId, '--zookeeper', connect, ...options], script);
}

/** The ids of the instances of the service. */
async function ids(): Promise<string[]> {
  return (await directory.instances('orders')).map(({ id }) => id);
}

async function untilIds(expected: readonly string[], ms = SOON_MS): Promise<void> {
  await expect.poll(ids, { timeout: ms, interval: 20 }).toEqual(expected);
}

function resolve(...args: string[]): TestProcess {
  return runCli(['discovery', 'resolve', ...args, '--zookeeper', connect]);
}

async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}

/** A task whose command is the worker; it says `up` when it can have signals. */
async function startWorker(kind: 'http' | 'tcp' | 'none', port: number, options: readonly string[]): Promise<Task> {
  const paths = [SERVICE, '/discovery/endpoints/pay/visa/orders:0', '/services/orders/task', NODE];
  const task = start('task', options, `exec "${process.execPath}" "${WORKER}" ${kind} ${port} "${connect}" ${paths.join(' ')}`);
  await task.waitForOutput(/^up$/m, SOON_MS);
  return task;
}

describe('a command that nodelease runs', () => {
  it('is registered for Curator’s readers before it begins, with its node id and version, and resolved', async () => {
    const task = start('one', [
      '--service',
      'orders',
      '--port',
      '8080',
      '--address',
      '10.0.0.7',
      '--payload',
      '{"weight":5}',
      '--zookeeper-required',
    ]);
    await task.started();
    expect(await directory.instances('orders')).toMatchObject([
      {
        name: 'orders',
        id: 'one',
        address: '10.0.0.7',
        port: 8080,
        payload: { weight: 5, nodeId: 0, version: 1 },
        serviceType: 'DYNAMIC',
        enabled: true,
      },
    ]);
    expect(await directory.names()).toEqual(['orders']);
    const url = resolve('orders');
    expect([(await url.exit).code, url.stdout(), url.stderr()]).toEqual([0, 'http://10.0.0.7:8080\n', '']);
    const json = resolve('orders', '--json', '--strategy', 'weighted');
    expect((await json.exit).code).toBe(0);
    expect(JSON.parse(json.stdout())).toMatchObject({ id: 'one', payload: { nodeId: 0, version: 1 }, url: 'http://10.0.0.7:8080' });
    // Nothing went wrong.
    expect(task.log().filter(({ fields }) => Number(fields.level) > 30)).toEqual([]);
  });

  it('is found under an address of this host, below another root, and as Spring writes it', async () => {
    const options = [
      '--service',
      'orders',
      '--port',
      '80',
      '--service-base-path',
      '/apps',
      '--payload-type',
      'spring',
      '--payload',
      '{"zone":"a"}',
    ];
    await start('one', options).started();
    const elsewhere = new ServiceDirectory({ zookeeper: reader.zookeeper, clock: systemClock, basePath: '/apps', payload: jsonPayload });
    await expect.poll(async () => (await elsewhere.instances('orders')).length, { timeout: SOON_MS }).toBe(1);
    const [instance] = await elsewhere.instances('orders');
    expect(instance?.payload).toEqual({
      '@class': 'org.springframework.cloud.zookeeper.discovery.ZookeeperInstance',
      ...{ id: 'one', name: 'orders', metadata: { zone: 'a', nodeId: '0', version: '1' } },
    });
    expect(instance?.address).toMatch(/^[\d.]+$|:/);
    expect(await directory.names()).toEqual([]);
    const url = resolve('orders', '--service-base-path', '/apps');
    await url.exit;
    expect(url.stdout()).toBe(`http://${instance?.address?.includes(':') ? `[${instance.address}]` : instance?.address}:80\n`);
  });

  it('is registered with a fixed node id, and with one from ZooKeeper alone', async () => {
    const common = ['--zookeeper', connect, '--zookeeper-session-timeout', `${SESSION_MS}ms`, '--service', 'orders', '--port', '80'];
    const fixed = runCli(['run', '--node-id', '5', '--task-id', 'fixed', ...common, '--', 'sleep', '300']);
    await untilIds(['fixed']);
    expect(await directory.instance('orders', 'fixed')).toMatchObject({ payload: { nodeId: 5, version: 1 } });
    const allocated = runCli(['run', '--provider', 'zookeeper', '--task-id', 'given', ...common, '--', 'sleep', '300']);
    await untilIds(['fixed', 'given']);
    expect(await directory.instance('orders', 'given')).toMatchObject({ payload: { nodeId: 0, version: expect.any(Number) } });
    for (const task of [fixed, allocated]) {
      task.kill('SIGTERM');
      expect((await task.exit).code).toBe(143);
    }
    expect(await ids()).toEqual([]);
  });

  it('offers endpoints, with and without keys, that are resolved', async () => {
    const task = start('one', ['--service', 'orders', '--address', '::1', '--port', '80', '--endpoint', 'pay:visa', '--endpoint', 'pay']);
    await task.started();
    await reader.until('/discovery/endpoints/pay/_/orders:0', (seen) => seen?.version === 1, SOON_MS);
    await reader.until('/discovery/endpoints/pay/visa/orders:0', (seen) => seen?.version === 1, SOON_MS);
    for (const name of ['pay', 'pay:visa']) {
      const url = resolve(name, '--kind', 'endpoint');
      await url.exit;
      expect(url.stdout()).toBe('http://[::1]:80\n');
    }
    const nobody = resolve('pay:amex', '--kind', 'endpoint');
    expect([(await nobody.exit).code, nobody.stdout()]).toEqual([1, '']);
    expect(nobody.stderr()).toMatch(/^nodelease: no instance of pay can be picked \(none is known\)\n$/);
  });

  it('is out of the tree, but for its node id, before it is told to stop', async () => {
    const task = await startWorker('none', 0, ['--service', 'orders', '--port', '80', '--endpoint', 'pay:visa']);
    await untilIds(['task']);
    await reader.until('/discovery/endpoints/pay/visa/orders:0', (seen) => seen !== undefined, SOON_MS);
    task.kill('SIGTERM');
    await task.waitForOutput(/^told, with (.*) there$/m, SOON_MS);
    expect(/^told, with (.*) there$/m.exec(task.stdout())?.[1]).toBe(JSON.stringify([NODE]));
    expect((await task.exit).code).toBe(0);
    expect(await reader.at(NODE)).toBeUndefined();
  });

  it('is not kept from a signal by a ZooKeeper that does not answer, and a second one does not wait at all', async () => {
    const [host = '', port] = inject('zookeeper').connect.split(':');
    const proxy = new FaultProxy();
    proxies.push(proxy);
    const through = connect.replace(/^[^/]*/, `127.0.0.1:${await proxy.start(host, Number(port))}`);
    const script = `trap 'date +"%s%3N told"; exit 0' TERM; while :; do sleep 0.02; done`;
    const options = ['--zookeeper', through, '--zookeeper-session-timeout', '60s', '--service', 'orders', '--port', '80'];
    for (const signals of [1, 2]) {
      const task = start(`task${signals}`, options, script);
      await task.started();
      await expect.poll(ids, { timeout: SOON_MS }).toContain(`task${signals}`);
      proxy.stall('both');
      const at = Date.now();
      for (let each = 0; each < signals; each += 1) {
        task.kill('SIGTERM');
        // Two that wait for one process are delivered as one.
        await new Promise((done) => setTimeout(done, 100));
      }
      const [, told] = await task.waitForOutput(/^(\d{13}) told$/m, SOON_MS);
      const took = Number(told) - at;
      if (signals === 1) expect(took).toBeGreaterThan(900);
      else expect(took).toBeLessThan(900);
      expect((await task.exit).code).toBe(0);
      proxy.heal();
    }
  });

  it('is out at once when it ends by itself, also while it leaves something behind', async () => {
    const leftover = `sh -c 'trap "" TERM; while :; do sleep 1; done' & echo started; exit 3`;
    const task = start('task', ['--service', 'orders', '--port', '80', '--zookeeper-required'], leftover);
    await task.waitForOutput(/left processes behind/, SOON_MS);
    await untilIds([], 5_000);
    // They have ten seconds, and the lease is held as long.
    expect(await reader.at(NODE)).toBeDefined();
    await task.waitForOutput(/service is taken out/, SOON_MS);
  });
});

describe('the entries of a command whose supervisor is gone', () => {
  it('go at once with a lost lease', async () => {
    const task = start('task', ['--service', 'orders', '--port', '80', '--zookeeper-session-timeout', '60s']);
    await untilIds(['task']);
    expect((await runCli(['release', '0', '--force', ...store.options]).exit).code).toBe(0);
    await task.waitForOutput(/is lost/, SOON_MS);
    await untilIds([], 5_000);
    expect((await task.exit).code).toBe(76);
  });

  it('go with the session when it was killed', async () => {
    const task = start('task', ['--service', 'orders', '--port', '80']);
    await untilIds(['task']);
    process.kill(task.pid, 'SIGKILL');
    await untilIds([]);
  });

  it('are registered again in a new session', async () => {
    await start('task', ['--service', 'orders', '--port', '80']).started();
    await untilIds(['task']);
    const sessionId = (await reader.zookeeper.read('/services/orders/task'))?.stat.owner ?? '';
    await expireSession({ connect: inject('zookeeper').connect, sessionId });
    await expect
      .poll(async () => (await reader.zookeeper.read('/services/orders/task'))?.stat.owner ?? sessionId, { timeout: SOON_MS })
      .not.toBe(sessionId);
  });
});

describe('a command with a health check', () => {
  it.each(['http', 'tcp'] as const)('is announced when it answers, out while it does not, and in again: %s', async (kind) => {
    const port = await freePort();
    const target = kind === 'http' ? `http://127.0.0.1:${port}/health` : `tcp:${port}`;
    const service = ['--service', 'orders', '--port', String(port), '--endpoint', 'pay:visa'];
    const task = await startWorker(kind, port, [...service, '--check', target, '--check-interval', '100ms', '--check-threshold', '3']);
    await task.waitForOutput(/not announced until .* answers/, SOON_MS);
    await reader.until(NODE, (seen) => seen !== undefined, SOON_MS);
    expect([await ids(), await reader.at(SERVICE)]).toEqual([[], undefined]);

    task.kill('SIGUSR2');
    await untilIds(['task']);
    await reader.until(SERVICE, (seen) => seen !== undefined, SOON_MS);
    await reader.until('/discovery/endpoints/pay/visa/orders:0', (seen) => seen !== undefined, SOON_MS);

    task.kill('SIGUSR1');
    await untilIds([]);
    await reader.until(SERVICE, (seen) => seen === undefined, SOON_MS);
    await task.waitForOutput(/failed 3 times in a row: the service is taken out/, SOON_MS);
    expect(await reader.at(NODE)).toBeDefined();

    task.kill('SIGUSR2');
    await untilIds(['task']);
    // The renewals went on, and the log tells of changes alone.
    expect(task.log().filter(({ msg }) => /is lost/.test(msg))).toEqual([]);
    expect(
      task
        .log()
        .filter(({ fields }) => 'healthy' in fields)
        .map(({ fields }) => fields.healthy),
    ).toEqual([true, false, true]);

    task.kill('SIGTERM');
    await task.waitForOutput(new RegExp(`told, with \\["${NODE}"\\] there`), SOON_MS);
    expect((await task.exit).code).toBe(0);
    expect(await ids()).toEqual([]);
  });

  it('is never announced when it does not answer, and works all the same', async () => {
    const [port] = await freePorts(1);
    const task = start('task', ['--service', 'orders', '--port', '80', '--check', `tcp:127.0.0.1:${port}`, '--check-interval', '100ms']);
    await task.started();
    await task.waitForOutput(/lease renewed/, SOON_MS);
    await task.waitForOutput(/lease renewed.*\n(.*\n)*.*lease renewed/, SOON_MS);
    expect(await ids()).toEqual([]);
    task.kill('SIGTERM');
    expect((await task.exit).code).toBe(143);
  });

  it('does not come back once it is being stopped, however it answers then', async () => {
    const port = await freePort();
    // Unwell for a while, and well again: of whoever is asked still, that would be a reason to announce it.
    const program = `let status = 200; const { createServer } = require('node:http');
      createServer((_, response) => response.writeHead(status).end()).listen(${port});
      process.on('SIGTERM', () => { status = 503; setTimeout(() => { status = 200; console.log('well again'); }, 500); });`;
    const check = ['--check', `http://127.0.0.1:${port}/`, '--check-interval', '100ms', '--check-threshold', '1'];
    const service = ['--service', 'orders', '--port', String(port)];
    const task = start('task', [...service, ...check], `exec "${process.execPath}" -e "${program.replaceAll('\n', ' ')}"`);
    await untilIds(['task']);
    task.kill('SIGTERM');
    await task.waitForOutput(/well again/, SOON_MS);
    const renewals = () => task.log().filter(({ msg }) => /lease renewed/.test(msg)).length;
    const before = renewals();
    await expect.poll(renewals, { timeout: SOON_MS }).toBeGreaterThan(before);
    expect(await ids()).toEqual([]);
    expect(task.log().filter(({ fields }) => 'healthy' in fields)).toHaveLength(1);
  });
});

describe('a lease of the library', () => {
  it('registers what it is told to, takes it out and puts it back, and leaves nothing behind, persistent instances either', async () => {
    const zookeeper = { connect, service: 'orders', address: 'host', port: 80, payload: { weight: 5 }, required: true };
    const lease = await acquire({ store: 'memory:', taskId: 'me', onLost: 'signal', zookeeper });
    try {
      const { discovery } = lease;
      // It was required to be there.
      expect(await directory.instance('orders', 'me')).toMatchObject({ payload: { weight: 5, nodeId: 0, version: 1 } });
      const more = newInstance<unknown>(
        { name: 'more', id: 'static', address: 'host', serviceType: 'STATIC' },
        { clock: systemClock, random: systemRandom },
      );
      await discovery?.services.register(more);
      expect(await directory.names()).toEqual(['more', 'orders']);

      expect(await discovery?.withdrawService(SOON_MS)).toBe(true);
      expect([await ids(), await reader.at(SERVICE)]).toEqual([[], undefined]);
      expect(await reader.at(NODE)).toBeDefined();
      discovery?.announceService();
      await discovery?.synced(SOON_MS);
      expect([await ids(), await reader.at(SERVICE)]).toMatchObject([['me'], { nodeId: 0 }]);
      expect(discovery?.state).toEqual({ status: 'synced' });
    } finally {
      await lease.release();
    }
    expect([await ids(), await directory.instances('more')]).toEqual([[], []]);
    lease.discovery?.announceService();
    expect(lease.discovery?.state).toEqual({ status: 'closed' });
  });

  it('fails where it is required to be announced, and cannot be registered', async () => {
    await reader.zookeeper.createWithParents('/services/orders', '', 'persistent');
    await restrict(connect, '/services/orders', ['read']);
    const task = start('task', ['--service', 'orders', '--port', '80', '--zookeeper-required']);
    expect((await task.exit).code).toBe(69);
    expect(task.log().at(-1)?.msg).toMatch(/not in the discovery tree after \d+ ms: .*\/services\/orders\/task/);
    expect(task.stdout()).toBe('');
    // Where it is not, it is a trouble that the log tells.
    const other = start('other', ['--service', 'orders', '--port', '80']);
    await other.started();
    await other.waitForOutput(/discovery: degraded: .*\/services\/orders\/other/, SOON_MS);
  });

  it('is out of everything when its node id from ZooKeeper alone is taken away, though its session goes on until the work has ended', async () => {
    const zookeeper = { connect, service: 'orders', address: 'host', port: 80, sessionTimeoutMs: 30_000 };
    const lease = await acquire({ provider: 'zookeeper', taskId: 'task', onLost: 'signal', zookeeper });
    try {
      await untilIds(['task']);
      expect((await runCli(['release', '0', '--force', '--provider', 'zookeeper', '--zookeeper', connect]).exit).code).toBe(0);
      await untilIds([]);
      await reader.until(SERVICE, (seen) => seen === undefined, SOON_MS);
      expect(lease.signal.aborted).toBe(true);
      expect(lease.discovery?.zookeeper.state.status).toBe('connected');
    } finally {
      await lease.release();
    }
  });
});

describe('what cannot be announced', () => {
  it.each([
    [['--service', 'a/b'], /--service: expected a name without "\/"/],
    [['--service', ''], /--service: expected a name/],
    [['--service', 'x'.repeat(300)], /--service: expected at most 255 bytes, not 300/],
    [['--service', 'orders', '--port', '0'], /--port: expected a whole number from 1 to 65535, got "0"/],
    [['--service', 'orders', '--port', '65536'], /--port: expected a whole number from 1 to 65535, got "65536"/],
    [['--service', 'orders', '--address', ''], /--address: expected a host name or an IP address/],
    [['--service', 'orders', '--address', 'a b'], /--address: expected a host name or an IP address/],
    [['--service', 'orders', '--address', 'http://host'], /--address: expected a host name or an IP address/],
    [['--service', 'orders', '--payload', '{weight:5}'], /--payload: expected a JSON object such as/],
    [['--service', 'orders', '--payload', '[1]'], /--payload: expected a JSON object .*array/],
    [['--service', 'orders', '--task-id', 'a/b'], /--task-id: expected a name without "\/"/],
    [['--service', 'orders', '--endpoint', 'localhost:9000'], /--endpoint: expected an http or https URL/],
    [['--service', 'orders', '--check', '8080'], /--check: expected http:\/\/HOST:PORT/],
    [['--payload', '{}'], /--payload: expected --service beside it/],
  ])('is refused with 64 and one line, and nothing is written: %j', async (options, message) => {
    const task = runCli(['run', ...store.options, '--zookeeper', connect, ...options, '--', 'true']);
    expect((await task.exit).code).toBe(64);
    expect(task.stderr()).toMatch(message);
    expect(task.stderr().trim().split('\n')).toHaveLength(1);
    expect(await reader.zookeeper.children('/')).toBeUndefined();
    expect(await store.keys()).toEqual([]);
  });

  it('says in the log what it came to when there is no address to check', async () => {
    const task = start('task', ['--service', 'orders', '--port', '80', '--check', 'tcp:1', '--check-interval', '100ms']);
    await task.started();
    await task.waitForOutput(/not announced until tcp:localhost:1 answers: .*ECONNREFUSED/, SOON_MS);
    expect(loggedAt(task.log(), /not announced until/)).toBeGreaterThan(0);
  });
});
