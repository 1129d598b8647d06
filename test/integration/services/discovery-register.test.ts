import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../src/base/system.js';
import type { Discovery } from '../../../src/discovery/discovery.js';
import { acquire, type ZooKeeperOptions } from '../../../src/runtime/acquire.js';
import type { ManagedLease } from '../../../src/runtime/managed-lease.js';
import { jsonPayload } from '../../../src/services/payload-codec.js';
import { ServiceDirectory } from '../../../src/services/service-directory.js';
import { buildUri } from '../../../src/services/uri-spec.js';
import { type FleetStore, fleetStore, loggedAt, startTask, type Task } from '../../support/fleet.js';
import { stopProxies, throughProxy } from '../../support/network/proxies.js';
import { killAll, runCli, type TestProcess } from '../../support/processes.js';
import { freePort } from '../../support/servers/free-ports.js';
import { TreeReader } from '../../support/tree-reader.js';
import { expireSession, uniqueChroot } from '../../support/zookeeper.js';
import { restrict } from '../discovery/discovery-support.js';

/** Long enough for a machine that has much else to do. */
const SOON_MS = 20_000;
/** Where it is the end of a session that is waited for. */
const SHORT_SESSION = ['--zookeeper-session-timeout', '2s'];
const WORKER = fileURLToPath(new URL('../../fixtures/programs/worker.mjs', import.meta.url));
const NODE = '/discovery/nodes/00/08';
const SERVICE = '/discovery/servicetypes/orders/0';

let connect: string;
let store: FleetStore;
let reader: TreeReader;
let directory: ServiceDirectory<unknown>;
const leases: ManagedLease[] = [];

beforeEach(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  store = await fleetStore('file', inject('s3'));
  reader = new TreeReader(connect);
  directory = new ServiceDirectory({ zookeeper: reader.zookeeper, clock: systemClock, payload: jsonPayload });
});
afterEach(async () => {
  await killAll();
  await Promise.all(leases.splice(0).map((lease) => lease.release()));
  await stopProxies();
  await reader.close();
  await store.remove();
});

const LEASE = ['--nodes', '3', '--duration', '6s', '--log-level', 'debug'];

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
    // Nothing went wrong; a renewal that is tried again on a busy machine is no matter here.
    expect(task.log().filter(({ fields }) => Number(fields.level) > 30 && fields.event !== 'renewal-failed')).toEqual([]);
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
    expect(instance?.uriSpec && buildUri(instance.uriSpec, instance)).toMatch(/^http:\/\/.*:80$/);
    expect(instance?.address).toMatch(/^[\d.]+$|:/);
    expect(await directory.names()).toEqual([]);
    const url = resolve('orders', '--service-base-path', '/apps');
    await url.exit;
    expect(url.stdout()).toBe(`http://${instance?.address?.includes(':') ? `[${instance.address}]` : instance?.address}:80\n`);
  });

  it('has the URL of its uriSpec', async () => {
    await start('one', ['--service', 'orders', '--address', '10.0.0.7', '--port', '80', '--uri-spec', 'https://{address}/shop']).started();
    await untilIds(['one']);
    const url = resolve('orders');
    await url.exit;
    expect(url.stdout()).toBe('https://10.0.0.7/shop\n');
  });

  it('is registered with a fixed node id, and with one from ZooKeeper alone', async () => {
    const common = ['--zookeeper', connect, '--service', 'orders', '--port', '80'];
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
    const none = resolve('pay:amex', '--kind', 'endpoint');
    expect([(await none.exit).code, none.stdout()]).toEqual([1, '']);
    expect(none.stderr()).toMatch(/^nodelease: no instance of pay can be picked \(none is known\)\n$/);
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

  describe('while ZooKeeper does not answer', () => {
    /** A task that cannot be taken out, and is sent these signals at once. Its end, when it was told, and whether that was waited for in vain. */
    async function told(taskId: string, signals: readonly NodeJS.Signals[]): Promise<{ afterMs: number; inVain: boolean }> {
      const { proxy, through } = await throughProxy(connect);
      const script = `trap 'date +"%s%3N told"; exit 0' TERM INT; while :; do sleep 0.02; done`;
      const options = ['--zookeeper', through, '--zookeeper-session-timeout', '60s', '--service', 'orders', '--port', '80'];
      const task = start(taskId, options, script);
      await task.started();
      await expect.poll(ids, { timeout: SOON_MS }).toContain(taskId);
      proxy.stall('both');
      const at = Date.now();
      for (const signal of signals) task.kill(signal);
      const [, told] = await task.waitForOutput(/^(\d{13}) told$/m, SOON_MS);
      expect((await task.exit).code).toBe(0);
      return { afterMs: Number(told) - at, inVain: /not known to be out yet/.test(task.stderr()) };
    }

    it('is told of a signal after a second', async () => {
      const { afterMs, inVain } = await told('task', ['SIGTERM']);
      expect([afterMs > 900, inVain]).toEqual([true, true]);
    });

    it('is told at once with a second signal', async () => {
      // A machine that has much else to do may take a second for it once in a while.
      const trials: unknown[] = [];
      while (trials.length < 5) {
        const trial = await told(`task${trials.length}`, ['SIGTERM', 'SIGINT']);
        if (!trial.inVain) return;
        trials.push(trial);
      }
      expect(trials).toEqual([]);
    });
  });

  it('is out at once when it ends by itself, also while it leaves something behind', async () => {
    // Ignored from before it is left behind: it has no moment in which SIGTERM ends it.
    const leftover = `trap "" TERM; sh -c 'while :; do sleep 1; done' & echo started; exit 3`;
    const task = start('task', ['--service', 'orders', '--port', '80', '--zookeeper-required'], leftover);
    await task.waitForOutput(/left processes behind/, SOON_MS);
    await untilIds([], 5_000);
    // They have ten seconds, and the lease is held as long.
    expect(await reader.at(NODE)).toBeDefined();
    await task.waitForOutput(/service is taken out/, SOON_MS);
  });

  it('is out too when it could not be started after all, and the log says so', async () => {
    // Only the system finds out that it cannot be executed: without a shell on the path it is started itself.
    const folder = await mkdtemp(join(tmpdir(), 'nodelease-broken-'));
    await writeFile(join(folder, 'broken'), '#!/no/such/interpreter\n', { mode: 0o755 });
    const zookeeper = ['--provider', 'zookeeper', '--zookeeper', connect, '--zookeeper-required'];
    const task = runCli(['run', ...zookeeper, '--service', 'orders', '--port', '80', '--', join(folder, 'broken')], {
      env: { PATH: folder },
    });
    expect([126, 127]).toContain((await task.exit).code);
    expect(task.stderr()).toMatch(/broken could not be started/);
    expect(task.stderr()).toMatch(/the service is taken out/);
    expect(await ids()).toEqual([]);
    await rm(folder, { recursive: true, force: true });
  });
});

describe('the entries of a command whose supervisor is gone', () => {
  it('go at once with a lost lease', async () => {
    const task = start('task', ['--service', 'orders', '--port', '80', '--zookeeper-session-timeout', '60s']);
    await untilIds(['task']);
    expect((await runCli(['release', '0', '--force', ...store.options]).exit).code).toBe(0);
    await task.waitForOutput(/is lost/, SOON_MS);
    await untilIds([]);
    expect((await task.exit).code).toBe(76);
  });

  it('go with the session when it was killed', async () => {
    const task = start('task', ['--service', 'orders', '--port', '80', ...SHORT_SESSION]);
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
    const port = await freePort();
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
    // Unwell for a while, and well again: of an instance that is still asked, that would be a reason to announce it.
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
  const announcement = { service: 'orders', address: 'host', port: 80 };

  async function hold(
    zookeeper: Omit<ZooKeeperOptions, 'connect'> = {},
    through = connect,
  ): Promise<ManagedLease & { discovery: Discovery }> {
    const announced = { connect: through, ...announcement, ...zookeeper };
    const lease = await acquire({ store: 'memory:', taskId: 'me', onLost: 'signal', zookeeper: announced });
    leases.push(lease);
    return lease as ManagedLease & { discovery: Discovery };
  }

  it('registers what it is told to, takes it out and puts it back, and leaves nothing behind', async () => {
    const lease = await hold({ payload: { weight: 5 }, required: true });
    const { discovery } = lease;
    // It was required to be there.
    expect(await directory.instance('orders', 'me')).toMatchObject({ payload: { weight: 5, nodeId: 0, version: 1 } });
    const { services } = discovery;
    await services.register(services.newInstance({ name: 'more', address: 'host', serviceType: 'DYNAMIC_SEQUENTIAL' }));
    expect(await directory.names()).toEqual(['more', 'orders']);

    expect(await discovery.withdrawService(SOON_MS)).toBe(true);
    expect([await ids(), await reader.at(SERVICE)]).toEqual([[], undefined]);
    expect(await reader.at(NODE)).toBeDefined();
    discovery.announceService();
    await discovery.synced(SOON_MS);
    expect([await ids(), await reader.at(SERVICE)]).toMatchObject([['me'], { nodeId: 0 }]);
    expect(discovery.state).toEqual({ status: 'synced' });

    await lease.release();
    expect([await ids(), await directory.instances('more')]).toEqual([[], []]);
    expect(discovery.state).toEqual({ status: 'closed' });
  });

  it.each(['STATIC', 'PERMANENT'] as const)('registers nothing in its name that would outlive it: %s', async (serviceType) => {
    const { services } = (await hold({ required: true })).discovery;
    const instance = services.newInstance({ name: 'db', address: 'host', serviceType });
    await expect(services.register(instance)).rejects.toMatchObject({ setting: 'instance.serviceType', value: serviceType });
    expect([services.registered.length, await directory.names()]).toEqual([1, ['orders']]);
  });

  it('announces nothing any more once it has left', async () => {
    const lease = await hold({ required: true });
    expect(await lease.discovery.withdrawService(SOON_MS)).toBe(true);
    await lease.release();
    lease.discovery.announceService();
    expect(lease.discovery.services.registered).toEqual([]);
  });

  it('waits for what sends work to it, and for nothing else, when that is taken out', async () => {
    await reader.zookeeper.createWithParents(NODE, 'garbage', 'persistent');
    const { discovery } = await hold();
    await untilIds(['me']);
    await reader.until(SERVICE, (seen) => seen !== undefined, SOON_MS);
    // This wait is not over by itself before the test is.
    expect(await discovery.withdrawService(600_000)).toBe(true);
    expect([await ids(), await reader.at(SERVICE), discovery.state.status]).toEqual([[], undefined, 'degraded']);
  });

  it.each(['/services/orders', '/discovery/servicetypes/orders'])('does not say that it is out while it is not: %s', async (parent) => {
    const lease = await hold({ required: true });
    const { discovery } = lease;
    await restrict(connect, parent, ['read', 'write', 'create']);
    expect(await discovery.withdrawService(1_000)).toBe(false);
    // Neither of these waits is over by itself before the test is.
    const recalled = discovery.withdrawService(600_000);
    discovery.announceService();
    expect(await recalled).toBe(false);
    const ended = discovery.withdrawService(600_000);
    await lease.release();
    expect(await ended).toBe(false);
  });

  it('does not wait at all without a connection, and is out on its return', async () => {
    const { proxy, through } = await throughProxy(connect);
    const { discovery } = await hold({ required: true, sessionTimeoutMs: 60_000 }, through);
    proxy.cut();
    await expect.poll(() => discovery.zookeeper.state.status, { timeout: SOON_MS }).not.toBe('connected');
    expect(await discovery.withdrawService(600_000)).toBe(false);
    proxy.heal();
    await untilIds([]);
    await reader.until(SERVICE, (seen) => seen === undefined, SOON_MS);
    proxy.cut();
    await expect.poll(() => discovery.zookeeper.state.status, { timeout: SOON_MS }).not.toBe('connected');
    expect(await discovery.withdrawService(600_000)).toBe(true);
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
      expect(await lease.discovery?.withdrawService(SOON_MS)).toBe(true);
      lease.discovery?.announceService();
      expect(lease.discovery?.services.registered).toEqual([]);
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
    const task = start('task', ['--service', 'orders', '--port', '80', '--check', 'tcp:1', '--check-interval', '5s']);
    await task.started();
    await task.waitForOutput(/not announced until tcp:localhost:1 answers: .*ECONNREFUSED/, SOON_MS);
    expect(loggedAt(task.log(), /not announced until/)).toBeGreaterThan(0);
  });
});
