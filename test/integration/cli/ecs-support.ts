import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { runCli, type TestProcess } from '../../support/processes.js';

const servers = new Set<Server>();

/** What the agent of ECS tells a container of its task. Ended by {@link stopMetadata}. */
export async function ecsMetadata(taskId: string): Promise<string> {
  const server = createServer((request, response) => {
    response.statusCode = request.url === '/v4/0123/task' ? 200 : 404;
    response.end(JSON.stringify({ Cluster: 'shop', TaskARN: `arn:aws:ecs:eu-central-1:111122223333:task/shop/${taskId}` }));
  });
  servers.add(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v4/0123`;
}

/** For `afterEach`. */
export function stopMetadata(): void {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  servers.clear();
}

/** Where a run or a sidecar says that it answers. */
export async function urlOf(run: TestProcess): Promise<string> {
  const [, url = ''] = await run.waitForOutput(/answering HTTP requests at (http:\/\/[^\s"]+)/, 30_000);
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
 * Asks until the answer is right.
 *
 * @throws Error with the last answer when that takes longer than `ms`
 */
export async function healthUntil(url: string, isRight: (answer: HealthAnswer) => boolean, ms = 30_000): Promise<HealthAnswer> {
  const begun = performance.now();
  for (;;) {
    const answer = await health(url);
    if (isRight(answer)) return answer;
    if (performance.now() - begun > ms) throw new Error(`still ${JSON.stringify(answer)} after ${ms} ms`);
    await sleep(50);
  }
}

/** The states that an instance tells at a path. */
export interface FollowedStates {
  /** Resolves with the first one. */
  readonly first: Promise<void>;
  /** Resolves to all of them, each as `<status> <state>`, when it answers no more. */
  readonly all: Promise<string[]>;
}

/** Asks an instance again and again, until it answers no more. */
export function followStates(url: string, path: string): FollowedStates {
  let begin = () => {};
  const first = new Promise<void>((resolve) => {
    begin = resolve;
  });
  return { first, all: follow(`${url}${path}`, () => begin()) };
}

async function follow(url: string, onState: () => void): Promise<string[]> {
  const states: string[] = [];
  for (;;) {
    try {
      const response = await fetch(url, { headers: { connection: 'close' } });
      const { state } = (await response.json()) as { state: string };
      const told = `${response.status} ${state}`;
      if (states.at(-1) !== told) states.push(told);
      onState();
    } catch {
      return states;
    }
    await sleep(10);
  }
}
