import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AgentMood, EcsAgent } from '../../../../test/support/servers/ecs-agent.js';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { taskProtection } from './task-protection.js';

const MINUTE = 60_000;
let agent: EcsAgent;
let clock: VirtualClock;
let warnings: string[];

beforeEach(async () => {
  agent = await EcsAgent.start('158d1c80');
  clock = new VirtualClock();
  warnings = [];
});
afterEach(() => agent.close());

const newProtection = (env: Readonly<Record<string, string>> = agent.env) =>
  taskProtection({ env, clock, log: { warn: (message) => warnings.push(message) } });

describe('the protection of a task from scale-in', () => {
  it('is set once, renewed long before it expires, and removed at the end', async () => {
    const protect = newProtection();
    expect(await Promise.all([protect(true), protect(true)])).toEqual([true, true]);
    expect(agent.asked).toEqual(['on 15']);
    await clock.advance(5 * MINUTE);
    await agent.askedTimes(2);
    expect(await protect(true)).toBe(true);
    await clock.advance(5 * MINUTE - 1);
    expect(await protect(false)).toBe(false);
    expect(agent.asked).toEqual(['on 15', 'on 15', 'off']);
    await clock.advance(60 * MINUTE);
    expect([agent.asked.length, clock.sleepers, warnings]).toEqual([3, 0, []]);
  });

  it.each<[AgentMood, RegExp]>([
    ['fails', /"failure":.*"TASK_NOT_VALID"/],
    ['redirects', /answered HTTP 307 without a body$/],
    ['refuses', /"AccessDeniedException".*not authorized to perform: ecs:UpdateTaskProtection/],
  ])('that the agent %s is a warning, and asked for again every minute', async (mood, why) => {
    agent.mood = mood;
    const protect = newProtection();
    expect(await protect(true)).toBe(false);
    expect(warnings).toEqual([expect.stringMatching(why)]);
    agent.mood = 'answers';
    await clock.advance(MINUTE);
    await agent.askedTimes(2);
    expect(await protect(true)).toBe(true);
    expect(warnings).toHaveLength(1);
  });

  it('that has failed is asked for again at the next call, once for all calls meanwhile', async () => {
    agent.mood = 'fails';
    const protect = newProtection();
    expect(await protect(true)).toBe(false);
    agent.mood = 'answers';
    expect(await Promise.all([protect(true), protect(true)])).toEqual([true, true]);
    agent.mood = 'fails';
    expect(await protect(false)).toBe(false);
    agent.mood = 'answers';
    await protect(false);
    expect(agent.asked).toEqual(['on 15', 'on 15', 'off', 'off']);
    expect(clock.sleepers).toBe(0);
  });

  it('that gets no answer is given up after five seconds, and removed after that, in this order', async () => {
    agent.mood = 'hangs';
    const protect = newProtection();
    const answer = protect(true);
    await agent.askedTimes(1);
    const removal = protect(false);
    agent.mood = 'answers';
    await clock.advance(5_000);
    expect([await answer, await removal]).toEqual([false, false]);
    expect(agent.asked).toEqual(['on 15', 'off']);
    expect(warnings).toEqual([
      'the protection of this task from scale-in is not set: no answer within 5000 ms',
    ]);
    expect(clock.sleepers).toBe(0);
  });

  it('is renewed by one timer, however often the program has changed its mind meanwhile', async () => {
    const protect = newProtection();
    const answers = [true, false, true, false, true].map(protect);
    expect(await Promise.all(answers)).toContain(true);
    expect(clock.sleepers).toBe(1);
  });

  it('that cannot be removed is a warning, and left to expire', async () => {
    const protect = newProtection();
    await protect(true);
    agent.mood = 'refuses';
    expect(await protect(false)).toBe(false);
    expect(warnings).toEqual([expect.stringMatching(/is not removed: .*AccessDenied/)]);
    expect(clock.sleepers).toBe(0);
  });

  it('outside of ECS is a warning', async () => {
    expect(await newProtection({})(true)).toBe(false);
    expect(warnings).toEqual([expect.stringContaining('ECS_AGENT_URI is not set')]);
  });
});
