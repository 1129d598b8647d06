import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { serviceDispatcher } from '../../../../src/zookeeper/services/routing/index.js';
import { ServiceDiscovery } from '../../../../src/zookeeper/services/service-discovery.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';
import { Backends } from './routing-support.js';

let connect: string;
let backends: Backends;

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('routing')}`;
  backends = new Backends();
});

afterEach(async () => {
  await backends.close();
  await closeClients();
});

it('sends requests to the registered instances, goes on when one dies, and finds the one that comes', async () => {
  const registrar = () => {
    const zookeeper = client(connect);
    return {
      zookeeper,
      discovery: new ServiceDiscovery({ zookeeper, clock: systemClock, random: systemRandom }),
    };
  };
  const [dying, lasting, reader] = [registrar(), registrar(), registrar()];
  // One that dies with its work: no answer, and no farewell.
  const doomed = await backends.http('doomed', (_request, response) =>
    alive ? response.end('doomed') : response.destroy(),
  );
  const steady = await backends.http('steady');
  let alive = true;
  await dying.discovery.register(doomed.instance);
  await lasting.discovery.register(steady.instance);

  const provider = reader.discovery.provider('orders', { downPolicy: { threshold: 2, timeoutMs: 600_000 } });
  const dispatcher = serviceDispatcher(provider);
  await provider.ready;
  expect(provider.instances.map(({ id }) => id)).toEqual(['doomed', 'steady']);
  const ask = async () => (await fetch('http://orders/items', { dispatcher })).text();
  const answers = (count: number) => Promise.all(Array.from({ length: count }, ask));
  expect((await answers(20)).sort()).toEqual([
    ...Array<string>(10).fill('doomed'),
    ...Array<string>(10).fill('steady'),
  ]);

  alive = false;
  expect(new Set(await answers(40))).toEqual(new Set(['steady']));
  const before = doomed.served;
  expect(new Set(await answers(40))).toEqual(new Set(['steady']));
  // Two errors, and it is left alone, though it is registered as long as its session lasts.
  expect(doomed.served).toBe(before);
  expect(provider.instances).toHaveLength(2);

  await dying.discovery.close();
  await expect.poll(() => provider.instances.map(({ id }) => id)).toEqual(['steady']);
  const fresh = await backends.http('fresh');
  await lasting.discovery.register(fresh.instance);
  await expect.poll(async () => new Set(await answers(4))).toEqual(new Set(['fresh', 'steady']));

  // The reader's own session may end: what it knows is good until it knows better.
  const { state } = reader.zookeeper;
  if (state.status !== 'connected') throw new Error(`the reader is ${state.status}`);
  await expireSession({ connect: inject('zookeeper').connect, sessionId: state.sessionId });
  expect(new Set(await answers(20))).toEqual(new Set(['fresh', 'steady']));

  await lasting.discovery.close();
  await expect.poll(() => provider.instances).toEqual([]);
  await expect(ask()).rejects.toMatchObject({ cause: { code: 'NO_INSTANCE' } });
  await reader.discovery.close();
});
