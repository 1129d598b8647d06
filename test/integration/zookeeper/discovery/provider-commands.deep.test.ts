import { afterEach, beforeEach, expect, it } from 'vitest';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll, runCli } from '../../../support/processes.js';
import { removeFolders } from '../../app/cli/run-support.js';
import { closeClients, data } from './discovery-support.js';
import { ProviderScene } from './provider-support.js';

let scene: ProviderScene;

beforeEach(() => {
  scene = new ProviderScene();
});

afterEach(async () => {
  await killAll();
  await scene.end();
  await stopProxies();
  await closeClients();
  removeFolders();
});

it('nodelease status --provider zookeeper --watch goes on through a lost connection', async () => {
  const { connect, tree } = scene;
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

it('the command of a task whose supervisor hangs is dead before another task has its node id', async () => {
  await scene.takeAllBut(0);
  const holder = await scene.hold('holder', '--zookeeper-session-timeout', '12s');
  const supervisor = new ProcessHandle(holder.pid);
  await supervisor.pause();
  const { lease, busy } = await scene.nextHolder(holder.work);
  expect([lease.id, busy, supervisor.isStopped()]).toEqual([0, false, true]);
  supervisor.signal('SIGCONT');
  expect((await holder.exit).code).toBe(76);
});
