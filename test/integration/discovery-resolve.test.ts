import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { killAll, runCli, type TestProcess } from '../support/processes.js';
import { TreeReader } from '../support/tree-reader.js';
import { uniqueChroot } from '../support/zookeeper.js';

let connect: string;
let reader: TreeReader;

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  reader = new TreeReader(connect);
});
afterEach(async () => {
  await killAll();
  await reader.close();
});

function resolve(...args: string[]): TestProcess {
  return runCli(['discovery', 'resolve', ...args, '--zookeeper', connect]);
}

describe('discovery resolve', () => {
  it('says what is known where nobody can be picked, and ends with 1', async () => {
    const { zookeeper } = reader;
    const instance = { address: null, port: 80, payload: null, registrationTimeUTC: 1, serviceType: 'DYNAMIC' };
    const write = (id: string, more: object) =>
      zookeeper.createWithParents(`/services/orders/${id}`, JSON.stringify({ name: 'orders', id, ...instance, ...more }), 'persistent');
    const answer = async () => {
      const asked = resolve('orders');
      expect((await asked.exit).code).toBe(1);
      expect(asked.stdout()).toBe('');
      return asked.stderr();
    };
    expect(await answer()).toBe('nodelease: no instance of orders can be picked (none is known)\n');
    await write('a', { address: '10.0.0.1', enabled: false });
    expect(await answer()).toBe('nodelease: no instance of orders can be picked (1 known: 1 disabled)\n');
    await write('b', {});
    expect(await answer()).toBe('nodelease: no instance of orders can be picked (2 known: 1 disabled, 1 without a usable address)\n');
    await zookeeper.createWithParents('/services/orders/garbage', 'garbage', 'persistent');
    await write('c', { address: '10.0.0.3', sslPort: 8443, uriSpec: null });
    const found = resolve('orders', '--strategy', 'round-robin');
    expect((await found.exit).code).toBe(0);
    expect(found.stdout()).toBe('https://10.0.0.3:8443\n');
    expect(found.stderr()).toMatch(/^nodelease: warning: \/services\/orders\/garbage .*: ignored\n$/);
  });

  it.each([
    [['a/b'], /name: expected a name without "\/"/],
    [[''], /name: expected a name, got ""/],
    [['orders', '--kind', 'node'], /--kind: expected service or endpoint, got "node"/],
    [['orders', '--strategy', 'best'], /--strategy: expected one of round-robin, .*, got "best"/],
    [['localhost:80', '--kind', 'endpoint', '--service-base-path', 'x'], /--service-base-path: expected an absolute path/],
    [['orders', '--payload', '{}'], /unknown option '--payload'/],
    [[], /missing required argument 'name'/],
  ])('refuses %j with 64 and one line', async (args, message) => {
    const task = runCli(['discovery', 'resolve', ...args, '--zookeeper', '127.0.0.1:1']);
    expect((await task.exit).code).toBe(64);
    expect(task.stderr()).toMatch(message);
    expect(task.stderr().trim().split('\n')).toHaveLength(1);
  });

  it('ends with 69 where no server answers', async () => {
    const task = runCli(['discovery', 'resolve', 'orders', '--zookeeper', '127.0.0.1:1']);
    expect((await task.exit).code).toBe(69);
    expect(task.stderr()).toMatch(/ECONNREFUSED/);
  });
});

describe('discovery services', () => {
  const services = (...args: string[]) => runCli(['discovery', 'services', ...args, '--zookeeper', connect]);

  it('shows who is registered as what, leaves out what cannot be understood, and says so', async () => {
    const empty = services();
    expect([(await empty.exit).code, empty.stdout()]).toEqual([0, `Nobody is registered at /services of ${connect}.\n`]);
    const { zookeeper } = reader;
    const instance = { name: 'orders', address: '10.0.0.1', port: 80, sslPort: 443, payload: { weight: 5 }, registrationTimeUTC: 1 };
    const write = (path: string, value: object) =>
      zookeeper.createWithParents(path, JSON.stringify({ ...instance, ...value, serviceType: 'STATIC' }), 'persistent');
    await write('/services/orders/a', { id: 'a' });
    await write('/services/orders/b', { id: 'b', address: '::1', sslPort: null, payload: null, enabled: false });
    await zookeeper.createWithParents('/services/orders/garbage', '{"port":', 'persistent');
    await zookeeper.createWithParents('/services/users', '', 'persistent');
    const all = services();
    expect((await all.exit).code).toBe(0);
    expect(all.stdout().replaceAll(/ +/g, ' ')).toBe(
      [
        'SERVICE ID ADDRESS TLS TYPE STATE PAYLOAD',
        'orders a 10.0.0.1:80 443 STATIC enabled {"weight":5}',
        'orders b [::1]:80 STATIC disabled',
        'users -',
        '',
        `2 services, 2 instances at /services of ${connect}`,
        '',
      ].join('\n'),
    );
    expect(all.stderr()).toMatch(/^nodelease: warning: \/services\/orders\/garbage .*: left out\n$/);
    const json = services('orders', '--json');
    expect((await json.exit).code).toBe(0);
    expect(JSON.parse(json.stdout())).toMatchObject({
      ...{ zookeeper: connect, path: '/services' },
      services: [
        {
          name: 'orders',
          instances: [
            { id: 'a', url: 'https://10.0.0.1:443' },
            { id: 'b', url: 'http://[::1]:80', enabled: false },
          ],
        },
      ],
    });
  });

  it('refuses a name that no service can have', async () => {
    const task = services('a/b');
    expect((await task.exit).code).toBe(64);
    expect(task.stderr()).toMatch(/^nodelease: name: expected a name without "\/" .*, got "a\/b"\n$/);
  });
});
