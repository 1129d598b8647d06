import { afterEach, expect, inject, it } from 'vitest';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { killAll, runCli } from '../../../support/processes.js';
import { recipeScene } from '../../zookeeper/recipes/recipe-scene.js';
import { untilDead } from './run-support.js';

const PATH = '/locks/report';
const scene = recipeScene();

afterEach(async () => {
  await killAll();
  await stopProxies();
});

it('nodelease zk lock ends the command before its session can have expired, where ZooKeeper cannot be reached: SIGTERM, then SIGKILL', async () => {
  const observer = await scene.open();
  const { proxy, through } = await throughProxy(`${inject('zookeeper').connect}${scene.chroot}`);
  // More than a second between the two signals.
  const zookeeper = ['--zookeeper', through, '--zookeeper-session-timeout', '20s'];
  const script = 'trap "echo asked to stop" TERM; echo held $$; while :; do sleep 0.05; done';
  const run = runCli(['zk', 'lock', PATH, ...zookeeper, '--', 'sh', '-c', script]);
  const [, pid] = await run.waitForOutput(/held (\d+)\n/);
  proxy.stall('both');
  await run.waitForOutput(/asked to stop/);
  // The command, which does not heed SIGTERM, is gone while the servers still keep the session.
  await untilDead([Number(pid)]);
  expect(await observer.children(PATH)).toHaveLength(1);
  expect((await run.exit).code).toBe(76);
});
