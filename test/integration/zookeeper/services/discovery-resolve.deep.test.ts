import { afterEach, expect, inject, it } from 'vitest';
import { killAll, runCli } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients, restrict } from '../discovery/discovery-support.js';

afterEach(async () => {
  await killAll();
  await closeClients();
});

it('discovery resolve goes on without instances that may not be read, and says so', async () => {
  const connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  const instance = {
    name: 'orders',
    address: 'host',
    port: 80,
    payload: null,
    registrationTimeUTC: 1,
    serviceType: 'DYNAMIC',
  };
  for (const id of ['a', 'b']) {
    await client(connect).createWithParents(
      `/services/orders/${id}`,
      JSON.stringify({ ...instance, id }),
      'persistent',
    );
  }
  await restrict(connect, '/services/orders/b', ['write']);
  const found = runCli(['discovery', 'resolve', 'orders', '--zookeeper', connect]);
  expect([(await found.exit).code, found.stdout()]).toEqual([0, 'http://host:80\n']);
  expect(found.stderr()).toMatch(
    /^nodelease: warning: \/services\/orders\/b has not let itself be read .*: ignored\n$/,
  );
});
