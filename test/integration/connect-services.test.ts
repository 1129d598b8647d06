import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, inject, it } from 'vitest';
import { ConfigError, type ConnectedServices, connectServices } from '../../src/index.js';
import { serviceDispatcher } from '../../src/routing/index.js';
import { uniqueChroot } from '../support/zookeeper.js';

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
  opened.push({ close: () => new Promise((resolve) => server.close(resolve)) }, { close: () => server.closeAllConnections() });
  const registrant = services(chroot);
  const { port } = server.address() as AddressInfo;
  await registrant.register(registrant.newInstance({ name: 'orders', address: '127.0.0.1', port }));

  const orders = services(chroot).provider('orders');
  await orders.ready;
  expect(orders.url()).toBe(`http://127.0.0.1:${port}`);
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
  expect(opened.map((each) => (each as ConnectedServices<unknown>).zookeeper.state.status)).toEqual(['connected', 'closed']);
});

it.each([
  [{ connect: 'zk1:99999' }, 'connect: expected'],
  [{ connect: 'zk1', auth: 'me' }, 'auth: expected'],
  [{ connect: 'zk1', sessionTimeoutMs: 5 }, 'sessionTimeoutMs: expected'],
  [{ connect: 'zk1', basePath: 'services' }, 'basePath: expected an absolute path such as /services'],
])('refuses %j', (options, message) => {
  expect(() => connectServices(options)).toThrow(ConfigError);
  expect(() => connectServices(options)).toThrow(message);
});
