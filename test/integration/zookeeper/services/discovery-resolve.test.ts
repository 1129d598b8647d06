import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Diagnosis } from '../../../../src/app/cli/doctor/diagnosis.js';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runCli } from '../../../support/processes.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { restrict } from '../discovery/discovery-support.js';

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

const resolve = (...args: string[]) =>
  runInProcess(['discovery', 'resolve', ...args, '--zookeeper', connect]);

describe('discovery resolve', () => {
  it('says what is known where no instance can be picked, and ends with 1', async () => {
    const { zookeeper } = reader;
    const instance = {
      address: null,
      port: 80,
      payload: null,
      registrationTimeUTC: 1,
      serviceType: 'DYNAMIC',
    };
    const write = (id: string, more: object) =>
      zookeeper.createWithParents(
        `/services/orders/${id}`,
        JSON.stringify({ name: 'orders', id, ...instance, ...more }),
        'persistent',
      );
    const answer = async () => {
      const { code, answer, complaints } = await resolve('orders');
      expect([code, answer]).toEqual([1, '']);
      return complaints;
    };
    expect(await answer()).toBe(
      'nodelease: no instance of orders can be picked (none is known) [NO_INSTANCE]\n',
    );
    await write('a', { address: '10.0.0.1', enabled: false });
    expect(await answer()).toBe(
      'nodelease: no instance of orders can be picked (1 known: 1 disabled or out of service) [NO_INSTANCE]\n',
    );
    await write('o', { address: '10.0.0.2', payload: { metadata: { instance_status: 'OUT_OF_SERVICE' } } });
    expect(await answer()).toBe(
      'nodelease: no instance of orders can be picked (2 known: 2 disabled or out of service) [NO_INSTANCE]\n',
    );
    await zookeeper.remove('/services/orders/o');
    await write('b', {});
    expect(await answer()).toBe(
      'nodelease: no instance of orders can be picked (2 known: 1 disabled or out of service, 1 without a usable address) [NO_INSTANCE]\n',
    );
    await zookeeper.createWithParents('/services/orders/garbage', 'garbage', 'persistent');
    await write('c', { address: '10.0.0.3', sslPort: 8443, uriSpec: null });
    expect(await resolve('orders', '--strategy', 'round-robin')).toEqual({
      code: 0,
      answer: 'https://10.0.0.3:8443\n',
      complaints: expect.stringMatching(/^nodelease: warning: \/services\/orders\/garbage .*: ignored\n$/),
    });
  });

  it('prints nothing that a program would take for anything but a place to send a request to', async () => {
    const { zookeeper } = reader;
    const write = (service: string, id: string, more: object) => {
      const instance = {
        name: service,
        id,
        address: 'host',
        port: 80,
        payload: null,
        registrationTimeUTC: 1,
        serviceType: 'DYNAMIC',
        ...more,
      };
      return zookeeper.createWithParents(
        `/services/${service}/${id}`,
        JSON.stringify(instance),
        'persistent',
      );
    };
    const hostile = [
      '-K/etc/passwd',
      'javascript:alert(1)',
      'file:///etc/passwd',
      'http://good@evil/',
      'http://good:pass@evil/',
      'http://good\\\\@evil/',
      'http://good\\\\evil/',
      'http:///good@evil/',
      'http:evil',
      'http://',
      'http://good/ -K/etc/passwd',
      'http://good/\\tx',
      'http://good/\\u202ex',
      'http://good:port/',
    ];
    await Promise.all(
      hostile.map((text, id) =>
        write('orders', String(id), {
          uriSpec: { parts: [{ value: JSON.parse(`"${text}"`), variable: false }] },
        }),
      ),
    );
    await write('orders', 'address', { address: 'good@evil' });
    const asked = await resolve('orders');
    expect([asked.code, asked.answer]).toEqual([1, '']);
    expect(asked.complaints).toMatch(
      /^nodelease: no instance of orders .*: only http and https URLs without user information are printed \[NO_INSTANCE\]\n$/,
    );

    const payload = { text: '\u009b2J \u202e \u001b[2J' };
    await write('users', 'a', {
      payload,
      uriSpec: { parts: [{ value: 'HTTPS://[::1]:8443/a@b?c=@#d', variable: false }] },
    });
    const found = await resolve('users', '--json');
    expect(found.code).toBe(0);
    expect(found.answer).toMatch(/^[\x20-\x7e]+\n$/);
    expect(JSON.parse(found.answer)).toMatchObject({ payload, url: 'HTTPS://[::1]:8443/a@b?c=@#d' });
  });

  it('says why where the instances may not be listed', async () => {
    await reader.zookeeper.createWithParents('/services/orders', '', 'persistent');
    await restrict(connect, '/services/orders', ['write']);
    expect(await resolve('orders')).toEqual({
      code: 69,
      answer: '',
      complaints: expect.stringMatching(/^nodelease: .*\/services\/orders.*no-auth.*\n$/),
    });
  });

  it.each([
    [['a/b'], /name: expected a name without "\/"/],
    [[''], /name: expected a name, got ""/],
    [['orders', '--kind', 'node'], /--kind: expected service or endpoint, got "node"/],
    [['orders', '--strategy', 'best'], /--strategy: expected one of round-robin, .*, got "best"/],
    [
      ['localhost:80', '--kind', 'endpoint', '--service-base-path', 'x'],
      /--service-base-path: expected an absolute path/,
    ],
    [['orders', '--payload', '{}'], /unknown option '--payload'/],
    [[], /missing required argument 'name'/],
  ])('refuses %j with 64 and one line', async (args, message) => {
    const { code, complaints } = await runInProcess([
      'discovery',
      'resolve',
      ...args,
      '--zookeeper',
      '127.0.0.1:1',
    ]);
    expect(code).toBe(64);
    expect(complaints).toMatch(message);
    expect(complaints.trim().split('\n')).toHaveLength(1);
  });
});

const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g;

describe('discovery services', () => {
  const services = (...args: string[]) =>
    runInProcess(['discovery', 'services', ...args, '--zookeeper', connect]);

  it('shows which instance is registered as what, leaves out what cannot be understood, and says so', async () => {
    expect(await services()).toMatchObject({
      code: 0,
      answer: `No instance is registered at /services of ${connect}.\n`,
    });
    const { zookeeper } = reader;
    const instance = {
      name: 'orders',
      address: '10.0.0.1',
      port: 80,
      sslPort: 443,
      payload: { weight: 5 },
      registrationTimeUTC: 1,
    };
    const write = (path: string, value: object) =>
      zookeeper.createWithParents(
        path,
        JSON.stringify({ ...instance, ...value, serviceType: 'STATIC' }),
        'persistent',
      );
    await write('/services/orders/a', { id: 'a' });
    await write('/services/orders/b', {
      id: 'b',
      address: '::1',
      sslPort: null,
      payload: null,
      enabled: false,
    });
    await write('/services/orders/c', { id: 'c', payload: { metadata: { instance_status: 'DOWN' } } });
    const live = JSON.stringify({ ...instance, id: 'live', payload: null, serviceType: 'DYNAMIC' });
    await zookeeper.createWithParents('/services/orders/live', live, 'ephemeral');
    await zookeeper.createWithParents('/services/orders/garbage', '{"port":', 'persistent');
    await zookeeper.createWithParents('/services/users', '', 'persistent');
    const all = runCli(['discovery', 'services', '--zookeeper', connect]);
    expect((await all.exit).code).toBe(0);
    const stat = (await zookeeper.read('/services/orders/live'))?.stat;
    const changedAt = new Date(stat?.modifiedAt ?? 0).toISOString();
    expect(all.stdout().replaceAll(/ +/g, ' ').replaceAll(TIME, 'TIME')).toBe(
      [
        'SERVICE ID ADDRESS TLS TYPE STATE SESSION CHANGED PAYLOAD',
        'orders a 10.0.0.1:80 443 STATIC enabled none TIME {"weight":5}',
        'orders b [::1]:80 STATIC disabled none TIME',
        'orders c 10.0.0.1:80 443 STATIC out of service none TIME {"metadata":{"instance_status":"DOWN"}}',
        `orders live 10.0.0.1:80 443 DYNAMIC enabled alive ${stat?.owner} TIME`,
        'users -',
        '',
        `2 services, 4 instances at /services of ${connect}`,
        '',
      ].join('\n'),
    );
    expect(all.stderr()).toMatch(/^nodelease: warning: \/services\/orders\/garbage .*: left out\n$/);
    const json = await services('orders', '--json');
    expect(json.code).toBe(0);
    expect(JSON.parse(json.answer)).toMatchObject({
      ...{ zookeeper: connect, path: '/services' },
      services: [
        {
          name: 'orders',
          instances: [
            { id: 'a', url: 'https://10.0.0.1:443', session: 'none', sessionId: null },
            { id: 'b', url: 'http://[::1]:80', enabled: false },
            { id: 'c', url: 'https://10.0.0.1:443' },
            { id: 'live', session: 'alive', sessionId: stat?.owner, changedAt },
          ],
        },
      ],
    });
  });

  it('shows the others where one may not be listed, and fails', async () => {
    const { zookeeper } = reader;
    const instance = {
      address: 'host',
      port: 80,
      payload: { text: '\u009b' },
      registrationTimeUTC: 1,
      serviceType: 'DYNAMIC',
    };
    for (const name of ['orders', 'secret', 'users']) {
      await zookeeper.createWithParents(
        `/services/${name}/a`,
        JSON.stringify({ name, id: 'a', ...instance }),
        'persistent',
      );
    }
    await restrict(connect, '/services/secret', ['write']);
    const all = await services();
    expect(all.code).toBe(69);
    expect(all.answer).toMatch(/^orders .*\nusers .*\n\n2 services, 2 instances at /m);
    expect(all.complaints).toBe(
      'nodelease: /services/secret: no-auth: these credentials may not list the instances\n',
    );
    const json = await services('--json');
    expect(json.code).toBe(69);
    expect(json.answer).toMatch(/^[\x20-\x7e]+\n$/);
    expect(JSON.parse(json.answer)).toMatchObject({ services: [{ name: 'orders' }, { name: 'users' }] });
    expect(await services('secret')).toMatchObject({ code: 69, answer: '' });
  });

  it('refuses a name that no service can have', async () => {
    const { code, complaints } = await services('a/b');
    expect(code).toBe(64);
    expect(complaints).toMatch(
      /^nodelease: name: expected a name without "\/" .*, got "a\/b" \[CONFIG_INVALID\]\n$/,
    );
  });
});

describe('applications of Dubbo', () => {
  const PATH = '/services/demo-provider/192.0.2.2:20880';
  const run = async (...args: string[]) => {
    const { code, answer, complaints } = await runInProcess([...args, '--zookeeper', connect]);
    expect(code).toBe(0);
    return { answer: answer.replaceAll(/ +/g, ' '), complaints };
  };
  const write = (path: string, data: string | Buffer) =>
    reader.zookeeper.createWithParents(path, data, 'persistent');

  beforeEach(async () => {
    await write(PATH, await readFile('test/fixtures/dubbo/registered.znode'));
    for (const folder of ['providers', 'consumers', 'routers', 'configurators'])
      await write(`/services/demo-provider/${folder}`, '10.0.0.7');
  });

  it('are shown and resolved as what they are, and the folders of their interfaces are no damage', async () => {
    const { answer, complaints } = await run('discovery', 'services');
    expect(answer.replaceAll(TIME, 'TIME').split('\n')).toEqual([
      'SERVICE ID ADDRESS TLS TYPE STATE SESSION CHANGED PAYLOAD',
      'demo-provider 192.0.2.2:20880 192.0.2.2:20880 DYNAMIC enabled none TIME dubbo:20880, tri:50051 · revision b049',
      '',
      `1 service, 1 instance at /services of ${connect}`,
      'With folders of Dubbo interfaces: demo-provider',
      '',
    ]);
    expect(complaints).toBe('');
    expect(JSON.parse((await run('discovery', 'services', '--json')).answer).services[0].instances).toEqual([
      expect.objectContaining({
        url: 'dubbo://192.0.2.2:20880',
        payload: expect.objectContaining({ metadata: expect.anything() }),
        dubbo: {
          endpoints: [
            { protocol: 'dubbo', port: 20880 },
            { protocol: 'tri', port: 50051 },
          ],
          revision: 'b0490fb4071ab9eb4494f7509c25743c',
        },
      }),
    ]);
    expect((await run('discovery', 'resolve', 'demo-provider')).answer).toBe('dubbo://192.0.2.2:20880\n');
    expect((await run('doctor', '--provider', 'zookeeper')).answer).toMatch(/All is well\.\n$/);
  });

  it('are warned of where another payload makes them unreadable for Dubbo', async () => {
    await write('/services/demo-provider/other', '{"address":"10.0.0.7","port":80,"payload":{}}');
    await write('/services/orders/one', '{"address":"10.0.0.7","port":80,"payload":{}}');
    const problem =
      '/services/demo-provider has instances of different payload classes, so Java programs cannot read it: org.apache.dubbo.registry.zookeeper.ZookeeperInstance, plain JSON';
    expect((await run('discovery', 'services')).complaints).toBe(`nodelease: warning: ${problem}\n`);
    const diagnosis = JSON.parse(
      (await run('doctor', '--provider', 'zookeeper', '--json')).answer,
    ) as Diagnosis;
    expect(diagnosis.zookeeper?.findings.filter(({ status }) => status === 'warning')).toEqual([
      { id: 'mixed-payloads', title: 'mixed payloads', status: 'warning', detail: problem },
    ]);
  });
});

describe('discovery prune', () => {
  const prune = async (...args: string[]) => {
    const end = await runInProcess(['discovery', 'prune', ...args, '--zookeeper', connect]);
    expect(end).toMatchObject({ code: 0, complaints: '' });
    return end.answer;
  };

  it('removes the services that have no instance, and nothing else', async () => {
    const { zookeeper } = reader;
    expect(await prune()).toBe(`Removed 0 services without an instance at /services of ${connect}\n`);
    for (const path of ['a', 'b', 'c', 'orders/one', 'interface/providers', 'd'])
      await zookeeper.createWithParents(`/services/${path}`, '', 'persistent');
    await zookeeper.create('/services/lock', '', 'ephemeral');
    await zookeeper.create('/services/property', 'value', 'persistent');
    expect(await prune('orders')).toMatch(/^Removed 0 services /);
    expect(await prune('d')).toBe(`Removed 1 service without an instance at /services of ${connect}\nd\n`);
    expect(JSON.parse(await prune('--json'))).toEqual({
      zookeeper: connect,
      path: '/services',
      removed: ['a', 'b', 'c'],
    });
    expect((await zookeeper.children('/services'))?.toSorted()).toEqual([
      'interface',
      'lock',
      'orders',
      'property',
    ]);
  });

  it('does no harm to an instance that is registered meanwhile', async () => {
    const { zookeeper } = reader;
    let prunings = 0;
    const pruning = (async () => {
      for (; prunings < 20; prunings += 1) await prune();
    })();
    for (let instance = 0; prunings < 20; instance += 1) {
      const path = `/services/orders/${instance}`;
      await zookeeper.createWithParents(path, '{}', 'ephemeral');
      expect(await zookeeper.remove(path)).toBe(true);
    }
    await pruning;
    await prune();
    expect(await zookeeper.children('/services')).toEqual([]);
  });

  it('refuses a name that no service can have', async () => {
    const { code, complaints } = await runInProcess(['discovery', 'prune', 'a/b', '--zookeeper', connect]);
    expect(code).toBe(64);
    expect(complaints).toMatch(
      /^nodelease: name: expected a name without "\/" .*, got "a\/b" \[CONFIG_INVALID\]\n$/,
    );
  });
});
