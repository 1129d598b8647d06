import { afterEach, inject } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../src/base/system.js';
import { openZooKeeper, type ZooKeeperClient, type ZooKeeperOptions } from '../../../src/zookeeper/zookeeper-client.js';
import type { FaultProxy } from '../../support/network/fault-proxy.js';
import { stopProxies, throughProxy } from '../../support/network/proxies.js';
import { expireSession, uniqueChroot } from '../../support/zookeeper.js';

/** Clients of one chroot on the real server. */
export class RecipeScene {
  /** Another one after each {@link close}. */
  chroot = uniqueChroot('recipes');
  readonly #clients: ZooKeeperClient[] = [];

  async open(options: Partial<ZooKeeperOptions> = {}): Promise<ZooKeeperClient> {
    const client = openZooKeeper({
      connect: `${inject('zookeeper').connect}${this.chroot}`,
      clock,
      random,
      sessionTimeoutMs: 4_000,
      ...options,
    });
    this.#clients.push(client);
    await client.whenConnected();
    return client;
  }

  /** A client whose connection can be made to fail. */
  async openThroughProxy(options: Partial<ZooKeeperOptions> = {}): Promise<{ client: ZooKeeperClient; proxy: FaultProxy }> {
    const { proxy, through } = await throughProxy(inject('zookeeper').connect);
    return { proxy, client: await this.open({ connect: `${through}${this.chroot}`, ...options }) };
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((client) => client.close()));
    await stopProxies();
    this.chroot = uniqueChroot('recipes');
  }
}

/** A scene for each test of a file. */
export function recipeScene(): RecipeScene {
  const scene = new RecipeScene();
  afterEach(() => scene.close());
  return scene;
}

/** Has the server end the client's session. */
export async function expire({ state }: ZooKeeperClient): Promise<void> {
  if (state.status !== 'connected') throw new Error('not connected');
  await expireSession({ connect: state.server, sessionId: state.sessionId });
}
