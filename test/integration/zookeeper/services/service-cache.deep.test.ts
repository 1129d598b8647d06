import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { afterEach, expect, inject, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import { encodeInstance } from '../../../../src/zookeeper/services/instance/instance-codec.js';
import { jsonPayload } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import { ServiceCache } from '../../../../src/zookeeper/services/service-cache.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { instanceOf } from '../../../support/service-instances.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';

const BASE = '/services';
const SERVICE = `${BASE}/orders`;

const opened: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
  await closeClients();
});

const json = (id: string, fields: Partial<ServiceInstance> = {}) =>
  encodeInstance(instanceOf(id, fields), jsonPayload);

/** A way to the servers over which their answers come as slowly as one likes. */
async function slowLink(): Promise<{
  port: number;
  throttle: (bytesPerSecond: number) => void;
  reset: () => void;
}> {
  const [host = '', port] = inject('zookeeper').connect.split(':');
  const sockets = new Set<Socket>();
  let perSecond = Number.POSITIVE_INFINITY;
  const server = createServer((near) => {
    const far = createConnection({ host, port: Number(port) });
    let held = Buffer.alloc(0);
    const passOn = (bytes: number) => {
      if (held.length > 0 && !near.destroyed) near.write(held.subarray(0, bytes));
      held = held.subarray(bytes);
    };
    near.pipe(far);
    far.on('data', (bytes) => {
      held = Buffer.concat([held, bytes]);
      if (perSecond === Number.POSITIVE_INFINITY) passOn(held.length);
    });
    const timer = setInterval(() => passOn(Math.min(held.length, perSecond / 50)), 20);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        clearInterval(timer);
        for (const each of [near, far]) sockets.delete(each.destroy());
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const reset = () => {
    for (const socket of [...sockets]) socket.destroy();
  };
  opened.push(() => {
    server.close();
    reset();
  });
  const throttle = (bytesPerSecond: number) => {
    perSecond = bytesPerSecond;
  };
  return { port: (server.address() as AddressInfo).port, throttle, reset };
}

it('a service cache without a connection loses none over a link so slow that reading takes longer than its patience, and says since when until the last one is read', async () => {
  const connect = `${inject('zookeeper').connect}${uniqueChroot('cache')}`;
  // Another client, which changes the tree.
  const other = client(connect);
  const ids = Array.from({ length: 200 }, (_, index) => `i${1_000 + index}`);
  await other.ensurePath(SERVICE);
  await Promise.all(
    ids.map((id) => other.create(`${SERVICE}/${id}`, json(id, { payload: 'x'.repeat(500) }), 'ephemeral')),
  );
  const link = await slowLink();
  const zookeeper = client(connect.replace(/^[^/]*/, `127.0.0.1:${link.port}`), { sessionTimeoutMs: 30_000 });
  const [reports, reported]: [string[], number[]] = [[], []];
  const options = { clock: systemClock, basePath: BASE, payload: jsonPayload };
  const cache = new ServiceCache({
    ...options,
    zookeeper,
    name: 'orders',
    onUnreadable: (at, problem) => reports.push(`${at} ${problem}`),
  });
  opened.push(() => cache.close());
  cache.onChange((instances) => reported.push(instances.length));
  await cache.ready;
  expect(cache.instances).toHaveLength(ids.length);
  link.throttle(16_000);
  link.reset();
  await expect.poll(() => cache.stale).toBeDefined();
  await other.setData(`${SERVICE}/i1199`, json('i1199', { port: 9 }));
  const begun = systemClock.monotonic();
  const fewest = { instances: ids.length };
  while (cache.stale !== undefined && systemClock.monotonic() - begun < 60_000) {
    fewest.instances = Math.min(fewest.instances, cache.instances.length);
    await systemClock.sleep(20);
  }
  // Otherwise this shows nothing.
  expect(systemClock.monotonic() - begun).toBeGreaterThan(7_000);
  expect([fewest.instances, reports]).toEqual([ids.length, []]);
  expect(cache.instances).toEqual(
    await new ServiceDirectory({ ...options, zookeeper: other }).instances('orders'),
  );
  expect(reported).toHaveLength(2);
});
