import { setTimeout as sleep } from 'node:timers/promises';
import type { ZooKeeperServer } from '../zookeeper.js';
import { FOUR_LETTER_WORDS, isOk, ZOOKEEPER_TIMES } from './zookeeper-process.js';

/**
 * The image; `test/support/containers/run.sh` builds one of this very name where no registry can be reached.
 */
export const ZOOKEEPER_IMAGE = 'zookeeper:3.8.4';

const PORT = 2181;
const READY_WITHIN_MS = 120_000;

/**
 * Starts ZooKeeper in a container through the Docker API.
 *
 * @throws Error when no Docker API answers, or the image cannot be had
 */
export async function startZooKeeperContainer(): Promise<ZooKeeperServer> {
  // Loaded only here: it is slow to load, and most runs on a developer's machine without Docker do not need
  // it.
  const { GenericContainer, Wait } = await import('testcontainers');
  const { tickTimeMs, minSessionTimeoutMs, maxSessionTimeoutMs } = ZOOKEEPER_TIMES;
  const container = await new GenericContainer(ZOOKEEPER_IMAGE)
    .withEnvironment({
      ZOO_TICK_TIME: String(tickTimeMs),
      ZOO_MAX_CLIENT_CNXNS: '0',
      ZOO_ADMINSERVER_ENABLED: 'false',
      ZOO_4LW_COMMANDS_WHITELIST: FOUR_LETTER_WORDS.join(','),
      ZOO_CFG_EXTRA: `minSessionTimeout=${minSessionTimeoutMs} maxSessionTimeout=${maxSessionTimeoutMs}`,
    })
    .withExposedPorts(PORT)
    .withWaitStrategy(Wait.forLogMessage(/binding to port/))
    .withStartupTimeout(120_000)
    .start();
  let stopping: Promise<unknown> | undefined;
  const stop = async () => {
    stopping ??= container.stop();
    await stopping;
  };
  const host = container.getHost();
  const port = container.getMappedPort(PORT);
  // That it listens does not say that it can be reached from here, nor that it serves.
  const deadline = performance.now() + READY_WITHIN_MS;
  while (!(await isOk(port, host))) {
    if (performance.now() > deadline) {
      await stop();
      throw new Error(`${ZOOKEEPER_IMAGE} did not answer on ${host}:${port} within ${READY_WITHIN_MS} ms`);
    }
    await sleep(50);
  }
  return {
    connect: `${host}:${port}`,
    description: `container ${container.getId().slice(0, 12)} of ${ZOOKEEPER_IMAGE}`,
    stop,
  };
}
