import { inject } from 'vitest';
import type { FleetStore } from '../../../support/fleet.js';
import { throughProxy } from '../../../support/network/proxies.js';
import { runCli, type TestProcess } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { healthUntil, SETTINGS, urlOf } from './ecs-support.js';

/** A sidecar of a cluster of one node id; later options win. */
export const serve = (store: FleetStore, ...options: string[]): TestProcess =>
  runCli(['serve', ...store.options, ...SETTINGS, '--http', '127.0.0.1:0', ...options], { env: store.env });

/** Its URL, once it is ready. */
export async function readyAt(sidecar: TestProcess): Promise<string> {
  const url = await urlOf(sidecar);
  await healthUntil(url, ({ code }) => code === 0);
  return url;
}

/** The same, and it is announced as well. */
export async function announcedAt(sidecar: TestProcess): Promise<string> {
  const url = await urlOf(sidecar);
  await healthUntil(
    url,
    ({ code, facts }) => code === 0 && (facts.discovery as { state: string }).state === 'ok',
  );
  return url;
}

/** The options of a service that is announced through a proxy. */
export async function announced() {
  const { proxy, through } = await throughProxy(`${inject('zookeeper').connect}${uniqueChroot('serve')}`);
  const options = ['--zookeeper', through, '--service', 'orders', '--address', '127.0.0.1', '--port', '80'];
  return { proxy, options };
}
