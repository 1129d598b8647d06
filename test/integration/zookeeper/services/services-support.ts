import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import {
  newInstance,
  type ServiceInstanceInit,
} from '../../../../src/zookeeper/services/instance/new-instance.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import {
  ServiceDiscovery,
  type ServiceDiscoveryOptions,
  type ServiceEvent,
} from '../../../../src/zookeeper/services/service-discovery.js';
import { stopProxies } from '../../../support/network/proxies.js';
import { expireSession } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';

/** One process that registers instances, with a session of its own. */
export interface Registrant {
  readonly zookeeper: ZooKeeperClient;
  readonly discovery: ServiceDiscovery<unknown>;
  readonly events: ServiceEvent[];
}

const registrants: Registrant[] = [];

/** @param options among them a client that is shared with another registrant */
export function registrant(
  connect: string,
  options: Partial<ServiceDiscoveryOptions<unknown>> & {
    readonly zookeeper?: ZooKeeperClient;
    readonly sessionTimeoutMs?: number;
  } = {},
): Registrant {
  const { zookeeper = client(connect, { sessionTimeoutMs: options.sessionTimeoutMs ?? 10_000 }), ...more } =
    options;
  const events: ServiceEvent[] = [];
  const onEvent = (event: ServiceEvent) => events.push(event);
  const discovery = new ServiceDiscovery<unknown>({
    clock: systemClock,
    random: systemRandom,
    onEvent,
    ...more,
    zookeeper,
  });
  const made = { zookeeper, discovery, events };
  registrants.push(made);
  return made;
}

/** For `afterEach`: ends all registrants, the proxies and their clients. */
export async function closeRegistrants(): Promise<void> {
  await Promise.all(registrants.splice(0).map(({ discovery }) => discovery.close()));
  await stopProxies();
  await closeClients();
}

/** An instance, of `orders` by default. */
export function orders(init: Partial<ServiceInstanceInit> = {}): ServiceInstance {
  return newInstance(
    { name: 'orders', id: 'one', address: '10.0.0.7', port: 8080, ...init },
    { clock: systemClock, random: systemRandom },
  );
}

/** The session that a client knows of. */
export function sessionIdOf({ state }: Pick<ZooKeeperClient, 'state'>): string | undefined {
  return 'sessionId' in state ? state.sessionId : undefined;
}

/** Ends the session of a client, which is not notified before, and waits for its next one. */
export async function renewSession({ zookeeper }: Pick<Registrant, 'zookeeper'>): Promise<void> {
  const { sessionId } = await zookeeper.whenConnected();
  await expireSession({ connect: inject('zookeeper').connect, sessionId });
  const next = { status: 'connected', sessionId: expect.not.stringMatching(sessionId) };
  await expect.poll(() => zookeeper.state).toMatchObject(next);
}

/** Resolves when `check` holds. */
export async function until(check: () => boolean | Promise<boolean>, ms = 30_000): Promise<void> {
  const begun = performance.now();
  while (!(await check())) {
    if (performance.now() - begun > ms) throw new Error(`not within ${ms} ms: ${check}`);
    await sleep(5);
  }
}

/** Every znode below a path with its data, its number of changes and its session. */
export async function snapshot(zookeeper: ZooKeeperClient, path: string): Promise<string[]> {
  const names = await zookeeper.children(path);
  if (names === undefined) return [];
  const znode = await zookeeper.read(path);
  const below = await Promise.all(
    names.map((name) => snapshot(zookeeper, `${path === '/' ? '' : path}/${name}`)),
  );
  return [
    `${path} ${znode?.stat.createdZxid} ${znode?.stat.version} ${znode?.stat.owner} ${znode?.data}`,
    ...below.flat(),
  ].sort();
}
