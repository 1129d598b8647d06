import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect as openSocket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { streamEncode } from 'dns-packet';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { startDnsServer } from '../../../../src/app/dns/dns-server.js';
import { openDns } from '../../../../src/app/dns/open-dns.js';
import { readSettings } from '../../../../src/app/settings/settings.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runCli } from '../../../support/processes.js';
import { freePort } from '../../../support/servers/free-ports.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients, data } from '../../zookeeper/discovery/discovery-support.js';
import { ask, listening, listeningToo, messagesOf, outcome, register, resolverOf } from './dns-support.js';

let connect: string;

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('dns')}`;
});

afterEach(async () => {
  await killAll();
  await closeClients();
});

describe('nodelease dns', () => {
  it('answers services and nodes of ZooKeeper to a resolver, follows them, and counts questions', async () => {
    const zookeeper = client(connect);
    await register(zookeeper, 'Orders', 'task-7', { address: '127.0.0.7', port: 80 });
    await register(zookeeper, 'Orders', 'off', { address: '127.0.0.8', port: 80, enabled: false });
    const path = '/discovery/nodes/00/0F';
    await zookeeper.createWithParents(path, data(7, 3, { address: '127.0.0.7', port: 80 }), 'ephemeral');
    const server = runCli([
      'dns',
      '--zookeeper',
      connect,
      '--listen',
      '127.0.0.1:0',
      '--http',
      '127.0.0.1:0',
    ]);
    const address = await listening(server);
    const [, metrics = ''] = await server.waitForOutput(/the metrics are at (http:[^\s"]+)/);
    const resolver = resolverOf(address);
    expect(await resolver.resolve4('orders.service.nodelease')).toEqual(['127.0.0.7']);
    expect(await resolver.resolveSrv('_orders._tcp.nodelease')).toEqual([
      { name: '7.node.nodelease', port: 80, priority: 1, weight: 1 },
    ]);
    expect(await resolver.resolve4('7.node.nodelease')).toEqual(['127.0.0.7']);
    expect(await resolver.resolveTxt('7.node.nodelease')).toEqual([['version=3', 'task=task-7']]);
    expect(await outcome(address, '6.node.nodelease')).toBe('NXDOMAIN');
    expect(await outcome(address, 'example.com')).toBe('REFUSED');

    await zookeeper.remove(path);
    await expect.poll(() => outcome(address, '7.node.nodelease')).toBe('NXDOMAIN');
    // Its node has gone: the address has a name.
    expect((await resolver.resolveSrv('orders.service.nodelease'))[0]?.name).toBe('7f000007.addr.nodelease');
    await register(zookeeper, 'late', 'one', { address: '127.0.0.9', port: 80 });
    await expect.poll(() => outcome(address, 'late.service.nodelease')).toBe(1);
    await zookeeper.remove('/services/Orders/task-7');
    await expect.poll(() => outcome(address, 'orders.service.nodelease')).toBe('NXDOMAIN');

    const text = await (await fetch(metrics)).text();
    expect(text).toMatch(/^nodelease_dns_questions_total\{type="SRV",code="NOERROR"\} 2$/m);
    expect(text).toMatch(/^nodelease_dns_questions_total\{type="A",code="REFUSED"\} 1$/m);
    expect(text).toMatch(/^nodelease_dns_data_age_seconds 0$/m);
    server.kill('SIGTERM');
    expect(await server.exit).toEqual({ code: 0, signal: null });
    expect(server.stdout()).toBe(`${address}\n`);
  });

  it('gives all of 40 instances to a resolver that continues by TCP, and takes length bytes apart from the rest', async () => {
    const zookeeper = client(connect);
    const ids = Array.from({ length: 40 }, (_, at) => at);
    await Promise.all(
      ids.map((id) => register(zookeeper, 'orders', `i${id}`, { address: `10.0.0.${id}`, port: 8_000 + id })),
    );
    const address = await listening(runCli(['dns', '--zookeeper', connect, '--listen', '127.0.0.1:0']));
    const found = await resolverOf(address).resolveSrv('orders.service.nodelease');
    expect(found.map(({ port }) => port).sort()).toEqual(ids.map((id) => 8_000 + id));
    expect((await ask(address, { name: 'orders.service.nodelease', type: 'SRV' })).flag_tc).toBe(true);

    const socket = openSocket(Number(address.split(':')[1]), '127.0.0.1');
    const replies = messagesOf(socket.setNoDelay());
    const message = (id: number) =>
      streamEncode({ type: 'query', id, questions: [{ name: 'orders.service.nodelease', type: 'SRV' }] });
    // Two questions on one connection; of the second one a byte at a time.
    socket.write(message(1));
    for (const byte of message(2)) await new Promise((resolve) => socket.write(Buffer.of(byte), resolve));
    for (const id of [1, 2])
      expect((await replies.next()).value).toMatchObject({ id, answers: { length: 40 } });
    socket.destroy();
  });

  it('answers SERVFAIL at once while ZooKeeper has never been there, also for names that do not exist', async () => {
    const away = `127.0.0.1:${await freePort()}`;
    const address = await listening(runCli(['dns', '--zookeeper', away, '--listen', '127.0.0.1:0']));
    for (const name of ['orders.service.nodelease', '7.node.nodelease'])
      expect(await outcome(address, name)).toBe('SERVFAIL');
    expect(await outcome(address, '0a000007.addr.nodelease')).toBe(1);
  });

  it('opens no watch for a thousand names that do not exist, and one service more for one that does', async () => {
    const zookeeper = client(connect);
    await register(zookeeper, 'orders', 'one', { address: '127.0.0.7', port: 80 });
    const watched: string[] = [];
    const counting = new Proxy(zookeeper, {
      get(target, key) {
        const value = Reflect.get(target, key, target) as unknown;
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (String(key).startsWith('watch')) watched.push(String(args[0]));
          return Reflect.apply(value, target, args) as unknown;
        };
      },
    });
    const dns = await openDns({
      ...{
        listen: { host: '127.0.0.1', port: 0 },
        label: '--listen',
        io: { clock: systemClock, random: systemRandom },
      },
      settings: readSettings({ flags: { zookeeper: connect, store: 'memory:' }, env: {}, hostname: '' }),
      ...{ log: { info: () => {}, warn: () => {} }, connect: async () => counting },
    });
    try {
      const address = `127.0.0.1:${dns.address.port}`;
      expect(await outcome(address, 'none.service.nodelease')).toBe('NXDOMAIN');
      const before = watched.length;
      for (let name = 0; name < 1_000; name += 1)
        expect(await outcome(address, `n${name}.service.nodelease`)).toBe('NXDOMAIN');
      expect(watched.length).toBe(before);
      expect(await outcome(address, 'orders.service.nodelease')).toBe(1);
      expect(watched.slice(before)).toEqual(['/services/orders', '/services/orders/one']);
    } finally {
      await dns.close();
    }
  });

  it('ends while a question waits, and answers one that comes with the end of its connection', async () => {
    const clock = new VirtualClock();
    let asked = () => {};
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const never = new Promise<void>(() => {});
    const known = { type: 'A', code: 'NOERROR', bytes: Buffer.from('reply'), truncated: false } as const;
    const server = await startDnsServer({
      ...{ at: { host: '127.0.0.1', port: 0 }, label: 'at', clock },
      reply: (query) => {
        if (query.length > 1) asked();
        return query.length === 1 ? known : { ...known, again: never };
      },
    });
    const socket = openSocket({ ...server.address, allowHalfOpen: true });
    socket.end(Buffer.of(0, 1, 0));
    expect(await buffer(socket)).toEqual(Buffer.from('\0\x05reply'));
    const late = createSocket('udp4');
    late.send('long', server.address.port, server.address.host);
    await isAsked;
    server.close();
    server.close();
    // Its time is up, and there is no socket any more.
    await clock.advance(10_000);
    late.close();
  });

  it('answers host names as what they mean to this machine', async () => {
    await register(client(connect), 'orders', 'one', { address: 'localhost', port: 80 });
    const address = await listening(runCli(['dns', '--zookeeper', connect, '--listen', '127.0.0.1:0']));
    const { answers } = await ask(address, { name: 'orders.service.nodelease', type: 'A' });
    expect(answers).toMatchObject([
      { type: 'CNAME', data: 'localhost' },
      { type: 'A', name: 'localhost', data: '127.0.0.1' },
    ]);
    await register(client(connect), 'gone', 'one', { address: 'no-such-host.invalid', port: 80 });
    await expect.poll(() => outcome(address, 'gone.service.nodelease')).toBe('SERVFAIL');
  });

  it('says what it lacks, and what is wrong with an address and a domain', async () => {
    const complaint = async (...args: string[]) => {
      const { code, complaints } = await runInProcess(['dns', ...args]);
      return `${code}: ${complaints}`;
    };
    expect(await complaint()).toContain('64: nodelease: nothing to answer from: expected --zookeeper');
    expect(await complaint('--zookeeper', connect, '--listen', '127.0.0.1')).toContain('--listen');
    expect(await complaint('--zookeeper', connect, '--dns-domain', 'a..b')).toContain(
      '--dns-domain: expected a domain',
    );
    // By TCP, and by UDP alone.
    const taken = await listening(runCli(['dns', '--zookeeper', connect, '--listen', '127.0.0.1:0']));
    const socket = createSocket('udp4');
    await once(socket.bind(0, '127.0.0.1'), 'listening');
    for (const address of [taken, `127.0.0.1:${socket.address().port}`])
      expect(await complaint('--zookeeper', connect, '--listen', address)).toContain(
        `64: nodelease: --listen: expected a port that no other program listens on (this one is taken), got "${address}"`,
      );
    socket.close();
  });
});

describe('DNS next to other answers', () => {
  it('comes with discovery serve --dns, and its metrics too', async () => {
    await register(client(connect), 'orders', 'one', { address: '127.0.0.7', port: 80 });
    const server = runCli([
      ...['discovery', 'serve', '--zookeeper', connect, '--http', '127.0.0.1:0'],
      ...['--dns', '127.0.0.1:0', '--dns-domain', 'Svc.Test.', '--dns-ttl', '7s'],
    ]);
    const address = await listeningToo(server);
    const [, url = ''] = await server.waitForOutput(/^(http:\S+)$/m);
    const { answers } = await ask(address, { name: 'orders.service.svc.test', type: 'A' });
    expect(answers).toMatchObject([{ data: '127.0.0.7', ttl: 7 }]);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('nodelease_dns_questions_total{type="A"');
    server.kill('SIGTERM');
    expect(await server.exit).toEqual({ code: 0, signal: null });
  });

  it('comes with serve --dns, from a thread that renews no lease', async () => {
    const server = runCli([
      ...['serve', '--store', 'memory:', '--zookeeper', connect, '--service', 'orders'],
      ...['--address', '127.0.0.7', '--port', '80', '--http', '127.0.0.1:0', '--dns', '127.0.0.1:0'],
    ]);
    const address = await listeningToo(server);
    const [, url = ''] = await server.waitForOutput(/^(http:\S+)$/m);
    await expect.poll(() => outcome(address, 'orders.service.nodelease')).toBe(1);
    await expect.poll(() => outcome(address, '0.node.nodelease')).toBe(1);
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toContain('nodelease_dns_questions_total{type="A",code="NOERROR"}');
    expect(text).toMatch(/^nodelease_lease_held 1$/m);
    server.kill('SIGTERM');
    expect(await server.exit).toEqual({ code: 0, signal: null });
  });
});
