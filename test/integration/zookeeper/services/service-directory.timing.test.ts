import { afterEach, expect, inject, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import { jsonPayload } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';
import { orders } from './services-support.js';

afterEach(closeClients);

it('a query is one of a thousand instances within 5 s, and returns all of them', async () => {
  const zookeeper = client(`${inject('zookeeper').connect}${uniqueChroot()}`);
  const services = new ServiceDirectory<unknown>({ zookeeper, clock: systemClock, payload: jsonPayload });
  await services.write(orders({ id: 'first' }));
  const ids = Array.from({ length: 999 }, (_, index) => `id-${index}`);
  await Promise.all(
    ids.map((id) => services.write(orders({ id, serviceType: 'STATIC' }), { timeoutMs: 60_000 })),
  );
  const begun = performance.now();
  expect(await services.instances('orders')).toHaveLength(1_000);
  expect(performance.now() - begun).toBeLessThan(5_000);
});
