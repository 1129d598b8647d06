import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, inject } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import {
  openZooKeeper,
  type ZooKeeperClient,
  type ZooKeeperOptions,
} from '../../../../src/zookeeper/client/zookeeper-client.js';
import type { FaultProxy } from '../../../support/network/fault-proxy.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';

/**
 * The time-out of the sessions, which no test waits for: long enough to outlive whatever holds a loaded
 * machine up. In milliseconds.
 */
const SESSION_MS = 20_000;

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
      sessionTimeoutMs: SESSION_MS,
      ...options,
    });
    this.#clients.push(client);
    await client.whenConnected();
    return client;
  }

  /** A client whose connection can be made to fail. */
  async openThroughProxy(
    options: Partial<ZooKeeperOptions> = {},
  ): Promise<{ client: ZooKeeperClient; proxy: FaultProxy }> {
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

/** Resolves when so many calls of the client's wait, each by a watch whose first answer has come. */
export async function waitingCalls(client: ZooKeeperClient, calls: number): Promise<void> {
  const standing = async () => {
    const before = client.openWatches;
    // Answers come in order: those of the watches have. One that was about to end has ended.
    await client.read('/');
    await setImmediate();
    return client.openWatches === before ? before : undefined;
  };
  await expect.poll(standing).toBe(calls);
}

/**
 * Breaks a stalled connection off, and with it whatever is on its way back: the reply has come as far as the
 * proxy, or has not.
 */
export function loseReply(proxy: FaultProxy): void {
  proxy.reset();
  proxy.heal();
}

/**
 * Stalls one direction, and breaks the connection off once something has been held back there. Resolves when
 * it has.
 */
export async function loseNext(proxy: FaultProxy, direction: 'to-server' | 'to-client'): Promise<void> {
  proxy.stall(direction);
  await expect.poll(() => proxy.holds).toBe(true);
  proxy.heal();
}
