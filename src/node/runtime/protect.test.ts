import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { EcsAgent } from '../../../test/support/servers/ecs-agent.js';
import { protect } from './protect.js';

let agent: EcsAgent;

beforeEach(async () => {
  agent = await EcsAgent.start('158d1c80');
  for (const [name, value] of Object.entries(agent.env)) vi.stubEnv(name, value);
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  agent.close();
});

it('protects the task from the first piece of work to the end of the last one', async () => {
  const [first, second] = await Promise.all([protect(), protect()]);
  expect(agent.asked).toEqual(['on 15']);
  await first[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  expect(agent.asked).toEqual(['on 15']);
  await second[Symbol.asyncDispose]();
  expect(agent.asked).toEqual(['on 15', 'off']);
  await (await protect())[Symbol.asyncDispose]();
  expect(agent.asked).toEqual(['on 15', 'off', 'on 15', 'off']);
});

it('warns where the agent refuses, and the work goes on', async () => {
  agent.mood = 'refuses';
  const warn = vi.spyOn(process, 'emitWarning').mockReturnValue();
  const protection = await protect();
  expect(warn.mock.calls).toEqual([
    [expect.stringMatching(/is not set: .*AccessDeniedException/), { code: 'NODELEASE_ECS_PROTECT' }],
  ]);
  await protection[Symbol.asyncDispose]();
});
