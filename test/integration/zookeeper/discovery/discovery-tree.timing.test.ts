import { afterEach, expect, inject, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { staticLease } from '../../../../src/core/lease/hold/static-lease.js';
import { DiscoveryTree } from '../../../../src/zookeeper/discovery/discovery-tree.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from './discovery-support.js';

const NODE = '/discovery/nodes/00/08';

const ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await stopProxies();
  await closeClients();
});

it('a discovery tree is restored within 2 s of the end of a cut, in a new session where the old one expired', async () => {
  const connect = `${inject('zookeeper').connect}${uniqueChroot('tree')}`;
  const reader = new TreeReader(connect);
  const { proxy, through } = await throughProxy(connect);
  const zookeeper = client(through, { sessionTimeoutMs: 1_000 });
  const tree = new DiscoveryTree({
    zookeeper,
    lease: staticLease({ id: 0, taskId: 'task' }),
    clock: systemClock,
    random: systemRandom,
  });
  ends.push(
    () => reader.close(),
    () => tree.close(),
  );
  tree.register({ kind: 'node' });
  await reader.until(NODE, (seen) => seen !== undefined);
  proxy.cut();
  await reader.until(NODE, (seen) => seen === undefined);
  tree.register({ kind: 'node' }, { port: 99 });
  proxy.heal();
  expect(await reader.until(NODE, (seen) => seen?.port === 99)).toBeLessThan(2_000);
});
