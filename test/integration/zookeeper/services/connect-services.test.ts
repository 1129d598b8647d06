import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterEach, expect, inject, it } from 'vitest';
import {
  ConfigError,
  type ConnectedServices,
  type ConnectServicesOptions,
  connectServices,
} from '../../../../src/index.js';
import { serviceDispatcher } from '../../../../src/zookeeper/services/routing/index.js';
import { uniqueChroot } from '../../../support/zookeeper.js';

const opened: { close(): unknown }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

function services(chroot: string, options: { basePath?: string } = {}): ConnectedServices<unknown> {
  const connected = connectServices({ connect: `${inject('zookeeper').connect}${chroot}`, ...options });
  opened.push(connected);
  return connected;
}

it('takes three lines from a connect string to a request that an instance answers', async () => {
  const chroot = uniqueChroot('connect-services');
  const server = createServer((request, response) => response.end(`orders ${request.url}`));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.push(
    { close: () => new Promise((resolve) => server.close(resolve)) },
    { close: () => server.closeAllConnections() },
  );
  const registrant = services(chroot);
  const { port } = server.address() as AddressInfo;
  await registrant.register(registrant.newInstance({ name: 'orders', address: '127.0.0.1', port }));

  const orders = services(chroot).provider('orders');
  await orders.ready;
  expect(orders.url()).toBe(`http://127.0.0.1:${port}`);
  // A dead instance is gone after that.
  expect(registrant.zookeeper.state).toMatchObject({ timeoutMs: 10_000 });
  const response = await fetch('http://orders/items/7', { dispatcher: serviceDispatcher(orders) });
  expect(await response.text()).toBe('orders /items/7');
});

it('takes everything back, and ends its session, when it is disposed of', async () => {
  const chroot = uniqueChroot('connect-services');
  const reader = services(chroot, { basePath: '/here' });
  {
    await using registrant = services(chroot, { basePath: '/here' });
    const instance = registrant.newInstance({ name: 'orders', address: 'a', serviceType: 'PERMANENT' });
    await registrant.register(instance);
    expect(await reader.queryForInstances('orders')).toEqual([instance]);
  }
  expect(await reader.queryForInstances('orders')).toEqual([]);
  expect(opened.map((each) => (each as ConnectedServices<unknown>).zookeeper.state.status)).toEqual([
    'connected',
    'closed',
  ]);
});

it.each([
  [{ connect: 'zk1:99999' }, 'connect: expected'],
  [{ connect: 'zk1', auth: 'me' }, 'auth: expected'],
  [{ connect: 'zk1', sessionTimeoutMs: 5 }, 'sessionTimeoutMs: expected'],
  [{ connect: 'zk1', basePath: 'services' }, 'basePath: expected an absolute path such as /services'],
  [{ connect: 'zk1', basePath: 7 }, 'basePath: expected an absolute path such as /services'],
  [
    { connect: 'zk1', base: '/services' },
    'options: expected one of connect, auth, tls, sessionTimeoutMs, basePath, payload, onEvent, got "base"',
  ],
  ['zk1:2181', 'options: expected an object such as'],
  [undefined, 'options: expected an object such as'],
  [{}, 'connect: expected servers such as'],
  [{ connect: ['zk1'] }, 'connect: expected servers such as'],
  [{ connect: 'zk1', auth: { user: 'me' } }, 'auth: expected digest:USER:PASSWORD'],
  [{ connect: 'zk1', sessionTimeoutMs: '5000' }, 'sessionTimeoutMs: expected'],
  [{ connect: 'zk1', payload: 'json' }, 'payload: expected a codec'],
  [{ connect: 'zk1', payload: { encode: () => null } }, 'payload: expected a codec'],
  [{ connect: 'zk1', onEvent: 'log' }, 'onEvent: expected a function'],
])('refuses %j', (given, message) => {
  const options = given as ConnectServicesOptions<unknown>;
  expect(() => connectServices(options)).toThrow(ConfigError);
  expect(() => connectServices(options)).toThrow(message);
});

it('refuses a strategy that is only the name of one', () => {
  const chosen = () =>
    services(uniqueChroot('connect-services')).provider('orders', { strategy: 'random' as never });
  expect(chosen).toThrow(ConfigError);
  expect(chosen).toThrow(/^strategy: expected/);
});

it('leaves no session behind when an option is refused', async () => {
  /** A server that no client gets a session from, and how often it was tried. */
  async function deaf(): Promise<{ connect: string; tried: () => number }> {
    let tried = 0;
    const server = createTcpServer((socket) => {
      tried += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    opened.push({ close: () => new Promise((resolve) => server.close(resolve)) });
    return { connect: `127.0.0.1:${(server.address() as AddressInfo).port}`, tried: () => tried };
  }
  const [refused, accepted] = [await deaf(), await deaf()];
  expect(() => connectServices({ connect: refused.connect, basePath: 'services' })).toThrow(ConfigError);
  const witness = connectServices({ connect: accepted.connect });
  // Whatever the refused one had begun would have come about by then.
  await expect.poll(accepted.tried, { timeout: 20_000 }).toBeGreaterThan(2);
  await witness.close();
  expect(refused.tried()).toBe(0);
});
