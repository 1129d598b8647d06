import { afterEach, expect, it } from 'vitest';
import { newStore, removeStores } from '../../../support/fleet.js';
import { killAll, runCli } from '../../../support/processes.js';
import { startAgent, stopAgents } from './ecs-support.js';

afterEach(async () => {
  await killAll();
  stopAgents();
  await removeStores();
});

it('the protection of an ECS task delays neither the command of a lock nor its exit by more than a second where the agent hangs', async () => {
  const agent = await startAgent();
  agent.mood = 'hangs';
  const store = await newStore('file');
  const token = ['--', 'sh', '-c', 'echo token $LOCK_TOKEN'];
  const begun = performance.now();
  const run = runCli(['lock', 'nightly', ...store.options, ...token], {
    env: { ...store.env, ...agent.env, NODELEASE_ECS_PROTECT: 'held' },
  });
  expect((await run.exit).code, run.stderr()).toBe(0);
  expect(run.stdout()).toBe('token 1\n');
  // Without the limit it takes the time-outs of both requests, of five seconds each.
  expect(performance.now() - begun).toBeLessThan(5_000);
  const next = runCli(['lock', 'nightly', ...store.options, '--try', ...token], { env: store.env });
  expect((await next.exit).code, next.stderr()).toBe(0);
  expect(next.stdout()).toBe('token 2\n');
});
