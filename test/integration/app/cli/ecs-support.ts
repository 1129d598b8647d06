import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { FleetStore } from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { cliFile, runCli, type TestProcess } from '../../../support/processes.js';
import { EcsAgent } from '../../../support/servers/ecs-agent.js';
import { asProcess1 } from './run-support.js';

/** The id of a task of ECS. */
export const TASK = '158d1c8083dd49d6b527399fd6414f5c';
/**
 * Of a cluster of one node id. A lease ends only where a test has it end: no loaded machine is late for its
 * renewals.
 */
export const SETTINGS = ['--nodes', '1', '--duration', '60s', '--grace', '500ms'];

const agents = new Set<EcsAgent>();

/** A container of an ECS task: nodelease is its process 1, and the agent describes the task to it. */
export async function container(
  store: FleetStore,
  args: readonly string[],
  agent?: EcsAgent,
): Promise<TestProcess> {
  const env = { ...store.env, ...(agent ?? (await startAgent())).env };
  return asProcess1(
    [cliFile, args[0] ?? '', ...store.options, ...SETTINGS, '--http', '127.0.0.1:0', ...args.slice(1)],
    { env },
  );
}

/** The agent of ECS, for a task of that service. Ended by {@link stopAgents}. */
export async function startAgent(service?: string): Promise<EcsAgent> {
  const agent = await EcsAgent.start(TASK, service);
  agents.add(agent);
  return agent;
}

/** For `afterEach`. */
export function stopAgents(): void {
  for (const agent of agents) agent.close();
  agents.clear();
}

/** Where a run or a sidecar says that it answers. */
export async function urlOf(run: TestProcess): Promise<string> {
  const [, url = ''] = await run.waitForOutput(/answering HTTP requests at (http:\/\/[^\s"]+)/);
  return url;
}

/** What `nodelease health --json` says, and its exit code. */
export interface HealthAnswer {
  readonly code: number | null;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** Asks as a container's health check does. */
export async function health(url: string, ...options: string[]): Promise<HealthAnswer> {
  const run = runCli(['health', '--url', url, '--json', ...options]);
  const { code } = await run.exit;
  return { code, facts: JSON.parse(run.stdout()) as Record<string, unknown> };
}

/**
 * Asks, in this process, until the answer is right: for a state that stays.
 *
 * @throws Error with the last answer when that takes longer than `ms`
 */
export async function healthUntil(
  url: string,
  isRight: (answer: HealthAnswer) => boolean,
  ms = 30_000,
): Promise<HealthAnswer> {
  const begun = performance.now();
  for (;;) {
    const { code, answer: json } = await runInProcess(['health', '--url', url, '--json']);
    const answer = { code, facts: JSON.parse(json) as Record<string, unknown> };
    if (isRight(answer)) return answer;
    if (performance.now() - begun > ms) throw new Error(`still ${json} after ${ms} ms`);
    await sleep(50);
  }
}

/** What a wait file says, once it is there. */
export async function waitFileAt(path: string): Promise<Record<string, unknown>> {
  await expect.poll(() => existsSync(path)).toBe(true);
  const text = readFileSync(path, 'utf8');
  expect(text).toMatch(/^\{.*\}\n$/);
  return JSON.parse(text) as Record<string, unknown>;
}

/** The states that an instance reports at a path, each as `<status> <state>`. */
export interface FollowedStates {
  /** Resolves when it has reported this one: a state that stays until the test goes on. */
  saw(state: string): Promise<void>;
  /** Resolves to all of them when it answers no more. */
  readonly all: Promise<string[]>;
}

/** Asks an instance again and again, until it answers no more. */
export function followStates(url: string, path: string): FollowedStates {
  const states: string[] = [];
  return { saw: (state) => expect.poll(() => states).toContain(state), all: follow(`${url}${path}`, states) };
}

async function follow(url: string, states: string[]): Promise<string[]> {
  for (;;) {
    try {
      const response = await fetch(url, { headers: { connection: 'close' } });
      const { state } = (await response.json()) as { state: string };
      const reported = `${response.status} ${state}`;
      if (states.at(-1) !== reported) states.push(reported);
    } catch (error) {
      // A connection that is lost says nothing: the next one is answered, or nothing listens there any more.
      const { cause } = error as { cause?: { code?: string } };
      if (cause?.code === 'ECONNREFUSED') return states;
    }
    await sleep(10);
  }
}
