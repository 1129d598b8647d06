import { afterEach, expect, inject, it } from 'vitest';
import { stopProxies, throughProxy } from '../../support/network/proxies.js';
import { killAll, runCli } from '../../support/processes.js';
import { uniqueChroot } from '../../support/zookeeper.js';
import { client, closeClients, data } from './discovery-support.js';

afterEach(async () => {
  await killAll();
  await stopProxies();
  await closeClients();
});

it('nodelease status --provider zookeeper --watch goes on through a lost connection', async () => {
  const connect = `${inject('zookeeper').connect}${uniqueChroot('provider')}`;
  const tree = client(connect);
  const { proxy, through } = await throughProxy(connect);
  const watch = runCli(['status', '--watch', '--provider', 'zookeeper', '--zookeeper', through]);
  await tree.createWithParents('/discovery/nodes/00/08', data(0, 1), 'ephemeral');
  await watch.waitForOutput(/ 0 {2}held .*task-0\nheld 1,/);
  proxy.cut();
  await watch.waitForOutput(/^nodelease: zookeeper .*/m);
  await tree.create('/discovery/nodes/00/09', data(1, 1), 'ephemeral');
  proxy.heal();
  await watch.waitForOutput(/ 1 {2}held .*task-1\nheld 2,/);
  watch.kill('SIGINT');
  expect(await watch.exit).toEqual({ code: 0, signal: null });
});
