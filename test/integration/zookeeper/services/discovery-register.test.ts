import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import { jsonPayload } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import { buildUri } from '../../../../src/zookeeper/services/instance/uri-spec.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { runInProcess } from '../../../support/in-process.js';
import { throughProxy } from '../../../support/network/proxies.js';
import { runCli } from '../../../support/processes.js';
import { expireSession, LONGEST_SESSION } from '../../../support/zookeeper.js';
import { restrict } from '../discovery/discovery-support.js';
import { inVain, NODE, RegisterScene } from './register-support.js';

/** Where what goes must not be what ends with the session. */
const LONG_SESSION = ['--zookeeper-session-timeout', LONGEST_SESSION];

/** Where it is the end of a session that is waited for. */
const SHORT_SESSION = ['--zookeeper-session-timeout', '2s'];

let scene: RegisterScene;

beforeEach(async () => {
  scene = await RegisterScene.open();
});
afterEach(() => scene.close());

const resolve = (...args: string[]) =>
  runInProcess(['discovery', 'resolve', ...args, '--zookeeper', scene.connect]);

describe('a command that nodelease runs', () => {
  it('is registered for Curator’s readers before it begins, with its node id and version, and resolved', async () => {
    const task = scene.start('one', [
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
    expect(await scene.directory.instances('orders')).toMatchObject([
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
    expect(await scene.directory.names()).toEqual(['orders']);
    const url = runCli(['discovery', 'resolve', 'orders', '--zookeeper', scene.connect]);
    expect([(await url.exit).code, url.stdout(), url.stderr()]).toEqual([0, 'http://10.0.0.7:8080\n', '']);
    const json = await resolve('orders', '--json', '--strategy', 'weighted');
    expect(json.code).toBe(0);
    expect(JSON.parse(json.answer)).toMatchObject({
      id: 'one',
      payload: { nodeId: 0, version: 1 },
      url: 'http://10.0.0.7:8080',
    });
    // Nothing went wrong; a renewal that is tried again on a busy machine is no matter here.
    expect(
      task
        .log()
        .filter(
          ({ fields }) =>
            Number(fields.level) > 30 && !['renewal-failed', 'cluster-created'].includes(`${fields.event}`),
        ),
    ).toEqual([]);
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
    await scene.start('one', options).started();
    const elsewhere = new ServiceDirectory({
      zookeeper: scene.reader.zookeeper,
      clock: systemClock,
      basePath: '/apps',
      payload: jsonPayload,
    });
    await expect.poll(async () => (await elsewhere.instances('orders')).length).toBe(1);
    const [instance] = await elsewhere.instances('orders');
    expect(instance?.payload).toEqual({
      '@class': 'org.springframework.cloud.zookeeper.discovery.ZookeeperInstance',
      ...{ id: 'one', name: 'orders', metadata: { zone: 'a', nodeId: '0', version: '1' } },
    });
    expect(instance?.uriSpec && buildUri(instance.uriSpec, instance)).toMatch(/^http:\/\/.*:80$/);
    expect(instance?.address).toMatch(/^[\d.]+$|:/);
    expect(await scene.directory.names()).toEqual([]);
    expect((await resolve('orders', '--service-base-path', '/apps')).answer).toBe(
      `http://${instance?.address?.includes(':') ? `[${instance.address}]` : instance?.address}:80\n`,
    );
  });

  it('has the URL of its uriSpec', async () => {
    await scene
      .start('one', [
        '--service',
        'orders',
        '--address',
        '10.0.0.7',
        '--port',
        '80',
        '--uri-spec',
        'https://{address}/shop',
      ])
      .started();
    await scene.untilIds(['one']);
    expect((await resolve('orders')).answer).toBe('https://10.0.0.7/shop\n');
  });

  it('is registered with a fixed node id, and with one that comes only from ZooKeeper', async () => {
    const typed = ['--service', 'orders', '--port', '80', '--payload-type', 'map'];
    const common = ['--zookeeper', scene.connect, ...typed, ...LONG_SESSION];
    const command = ['--', 'sh', '-c', 'echo up; exec sleep 300'];
    const fixed = runCli(['run', '--node-id', '5', '--task-id', 'fixed', ...common, ...command]);
    await scene.untilIds(['fixed']);
    expect(await scene.directory.instance('orders', 'fixed')).toMatchObject({
      payload: { nodeId: 5, version: 1 },
    });
    const allocated = runCli(['run', '--provider', 'zookeeper', '--task-id', 'given', ...common, ...command]);
    await scene.untilIds(['fixed', 'given']);
    expect(await scene.directory.instance('orders', 'given')).toMatchObject({
      payload: { nodeId: 0, version: expect.any(Number) },
    });
    for (const task of [fixed, allocated]) {
      await task.waitForOutput(/^up$/m);
      task.kill('SIGTERM');
      expect((await task.exit).code).toBe(143);
    }
    await scene.untilIds([]);
  });

  it('offers endpoints, with and without keys, that are resolved', async () => {
    const task = scene.start('one', [
      '--service',
      'orders',
      '--address',
      '::1',
      '--port',
      '80',
      '--announce',
      'pay:visa',
      '--announce',
      'pay',
    ]);
    await task.started();
    await scene.reader.until('/discovery/endpoints/pay/_/orders:0', (seen) => seen?.version === 1);
    await scene.reader.until('/discovery/endpoints/pay/visa/orders:0', (seen) => seen?.version === 1);
    for (const name of ['pay', 'pay:visa']) {
      expect((await resolve(name, '--kind', 'endpoint')).answer).toBe('http://[::1]:80\n');
    }
    expect(await resolve('pay:amex', '--kind', 'endpoint')).toEqual({
      code: 1,
      answer: '',
      complaints: 'nodelease: no instance of pay can be picked (none is known) [NO_INSTANCE]\n',
    });
  });

  it('is out of the tree, but for its node id, before it is asked to stop', async () => {
    const begin = async () => {
      const service = ['--service', 'orders', '--port', '80', '--announce', 'pay:visa'];
      const begun = await scene.startWorker('none', 0, [...service, ...LONG_SESSION]);
      await scene.untilIds(['task']);
      await scene.reader.until('/discovery/endpoints/pay/visa/orders:0', (seen) => seen !== undefined);
      begun.kill('SIGTERM');
      await begun.exit;
      await scene.reader.until(NODE, (seen) => seen === undefined);
      return begun;
    };
    let task = await begin();
    // A machine that has much else to do may take more than the second for which that is waited for.
    for (let trial = 1; trial < 5 && inVain(task); trial += 1) task = await begin();
    await task.waitForOutput(/^asked to end, with (.*) there$/m);
    expect(/^asked to end, with (.*) there$/m.exec(task.stdout())?.[1]).toBe(JSON.stringify([NODE]));
    expect((await task.exit).code).toBe(0);
  });

  describe('while ZooKeeper does not answer', () => {
    /**
     * A task that cannot be taken out, and is sent these signals at once. Its end, when it got a signal, and
     * whether that was waited for in vain.
     */
    async function reported(
      taskId: string,
      signals: readonly NodeJS.Signals[],
    ): Promise<{ afterMs: number; inVain: boolean }> {
      const { proxy, through } = await throughProxy(scene.connect);
      const script = `trap 'date +"%s%3N ended"; exit 0' TERM INT; echo trapped; while :; do sleep 0.02; done`;
      const options = [
        '--zookeeper',
        through,
        '--zookeeper-session-timeout',
        '60s',
        '--service',
        'orders',
        '--port',
        '80',
      ];
      const task = scene.start(taskId, options, script);
      await task.waitForOutput(/^trapped$/m);
      await expect.poll(() => scene.ids()).toContain(taskId);
      proxy.stall('both');
      const at = Date.now();
      for (const signal of signals) task.kill(signal);
      const [, reported] = await task.waitForOutput(/^(\d{13}) ended$/m);
      expect((await task.exit).code).toBe(0);
      return { afterMs: Number(reported) - at, inVain: inVain(task) };
    }

    it('gets a signal after a second', async () => {
      const { afterMs, inVain } = await reported('task', ['SIGTERM']);
      expect([afterMs > 900, inVain]).toEqual([true, true]);
    });

    it('gets it at once with a second signal', async () => {
      // A machine that has much else to do may take a second for it once in a while.
      const trials: unknown[] = [];
      while (trials.length < 5) {
        const trial = await reported(`task${trials.length}`, ['SIGTERM', 'SIGINT']);
        if (!trial.inVain) return;
        trials.push(trial);
      }
      expect(trials).toEqual([]);
    });
  });

  it('is out at once when it ends by itself, also while it leaves something behind', async () => {
    // Ignored from before it is left behind: it has no moment in which SIGTERM ends it.
    const leftover = `trap "" TERM; sh -c 'while :; do sleep 1; done' & echo started; exit 3`;
    const task = scene.start(
      'task',
      ['--service', 'orders', '--port', '80', '--zookeeper-required'],
      leftover,
    );
    await task.waitForOutput(/left processes behind/);
    await scene.untilIds([]);
    // They have ten seconds, and the lease is held as long.
    expect(await scene.reader.at(NODE)).toBeDefined();
    // Which of the two is a matter of a second.
    await task.waitForOutput(/service is (taken out|not known to be out yet)/);
  });

  it('is out too when it could not be started after all, and the log says so', async () => {
    // Only the system finds out that it cannot be executed: without a shell on the path it is started itself.
    const folder = await mkdtemp(join(tmpdir(), 'nodelease-broken-'));
    await writeFile(join(folder, 'broken'), '#!/no/such/interpreter\n', { mode: 0o755 });
    const zookeeper = [
      '--provider',
      'zookeeper',
      '--zookeeper',
      scene.connect,
      '--zookeeper-required',
      ...LONG_SESSION,
    ];
    const task = runCli(
      ['run', ...zookeeper, '--service', 'orders', '--port', '80', '--', join(folder, 'broken')],
      {
        env: { PATH: folder },
      },
    );
    expect([126, 127]).toContain((await task.exit).code);
    expect(task.stderr()).toMatch(/broken could not be started/);
    expect(task.stderr()).toMatch(/the service is (taken out|not known to be out yet)/);
    await scene.untilIds([]);
    await rm(folder, { recursive: true, force: true });
  });
});

describe('the entries of a command whose supervisor is gone', () => {
  it('go at once with a lost lease', async () => {
    const task = scene.start('task', [
      '--service',
      'orders',
      '--port',
      '80',
      '--zookeeper-session-timeout',
      '60s',
      '--duration',
      '6s',
    ]);
    await scene.untilIds(['task']);
    expect((await runInProcess(['release', '0', '--force', ...scene.store.options])).code).toBe(0);
    await task.waitForOutput(/is lost/);
    await scene.untilIds([]);
    expect((await task.exit).code).toBe(76);
  });

  it('go with the session when it was killed', async () => {
    const task = scene.start('task', ['--service', 'orders', '--port', '80', ...SHORT_SESSION]);
    await scene.untilIds(['task']);
    process.kill(task.pid, 'SIGKILL');
    await scene.untilIds([]);
  });

  it('are registered again in a new session', async () => {
    await scene.start('task', ['--service', 'orders', '--port', '80']).started();
    await scene.untilIds(['task']);
    const sessionId = (await scene.reader.zookeeper.read('/services/orders/task'))?.stat.owner ?? '';
    await expireSession({ connect: inject('zookeeper').connect, sessionId });
    await expect
      .poll(async () => (await scene.reader.zookeeper.read('/services/orders/task'))?.stat.owner ?? sessionId)
      .not.toBe(sessionId);
  });
});

describe('what cannot be announced', () => {
  it('is refused with 69 before the command starts, where the Spring application of the service could not read it', async () => {
    const spring = await readFile('test/fixtures/spring/registered.znode');
    await scene.reader.zookeeper.createWithParents('/services/orders/i-1', spring, 'persistent');
    // Else a start goes on without ZooKeeper where that is slow to answer.
    const given = [...scene.store.options, '--zookeeper', scene.connect, '--zookeeper-required'];
    const refused = async (command: string, options: readonly string[]) => {
      const run = runCli([command, ...given, '--service', 'orders', ...options]);
      expect([command, (await run.exit).code]).toEqual([command, 69]);
      expect(run.stdout()).not.toContain('started');
      return run.stderr();
    };
    const echo = ['--', 'echo', 'started'];
    const map = ['--port', '80', '--payload', '{"weight":5}'];
    const advice =
      /not registered: \/services\/orders has an instance with a payload of org\.springframework\S+ZookeeperInstance\. .*--payload-type spring/;
    expect(await refused('run', [...map, ...echo])).toMatch(advice);
    expect(await refused('run', [...map, '--check', 'tcp:80', ...echo])).toMatch(advice);
    expect(await refused('serve', [...map, '--http', '127.0.0.1:0'])).toMatch(advice);
    expect(await refused('run', echo)).toMatch(/no port: use --port/);
    expect(await scene.ids()).toEqual(['i-1']);
    const task = scene.start('task', ['--service', 'orders', '--port', '80']);
    await scene.untilIds(['i-1', 'task']);
    expect(task.stderr()).not.toContain('mixed-payloads');
  });

  it.each([
    [['--service', 'a/b'], /--service: expected a name without "\/"/],
    [['--service', ''], /--service: expected a name/],
    [['--service', 'x'.repeat(300)], /--service: expected at most 255 bytes, not 300/],
    [['--service', 'orders', '--port', '0'], /--port: expected a whole number from 1 to 65535, got "0"/],
    [
      ['--service', 'orders', '--port', '65536'],
      /--port: expected a whole number from 1 to 65535, got "65536"/,
    ],
    [['--service', 'orders', '--address', ''], /--address: expected a host name or an IP address/],
    [['--service', 'orders', '--address', 'a b'], /--address: expected a host name or an IP address/],
    [['--service', 'orders', '--address', 'http://host'], /--address: expected a host name or an IP address/],
    [['--service', 'orders', '--payload', '{weight:5}'], /--payload: expected a JSON object such as/],
    [['--service', 'orders', '--payload', '[1]'], /--payload: expected a JSON object .*array/],
    [['--service', 'orders', '--task-id', 'a/b'], /--task-id: expected a name without "\/"/],
    [['--service', 'orders', '--endpoint', 'localhost:9000'], /--endpoint: expected an http or https URL/],
    [['--service', 'orders', '--check', '8080'], /--check: expected http:\/\/HOST:PORT/],
    [['--payload', '{}'], /--payload: expected --service with it/],
  ])('is refused with 64 and one line, and nothing is written: %j', async (options, message) => {
    const given = [...scene.store.options, '--zookeeper', scene.connect, ...options];
    const { code, complaints } = await runInProcess(['run', ...given, '--', 'true']);
    expect(code).toBe(64);
    expect(complaints).toMatch(message);
    expect(complaints.trim().split('\n')).toHaveLength(1);
    expect(await scene.reader.zookeeper.children('/')).toBeUndefined();
    expect(await scene.store.keys()).toEqual([]);
  });

  it('says in the log that it cannot be registered', async () => {
    await scene.reader.zookeeper.createWithParents('/services/orders', '', 'persistent');
    await restrict(scene.connect, '/services/orders', ['read']);
    const task = scene.start('task', ['--service', 'orders', '--port', '80']);
    await task.started();
    await task.waitForOutput(/discovery: degraded: .*\/services\/orders\/task/);
  });
});
