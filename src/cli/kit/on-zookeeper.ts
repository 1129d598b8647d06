import type { ZooKeeperSettings } from '../../settings/settings.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';
import type { Io } from '../terminal/io.js';
import type { Call, ZooKeeperCall } from './command-row.js';
import { interruptible, reported } from './reported.js';

/** How long the first connection, and each request, may take, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;

/** The call, where ZooKeeper gives out the node ids; undefined where they are leased from a store. */
export function onAllocated<Options>({
  settings,
  ...call
}: Call<Options>): ZooKeeperCall<Options> | undefined {
  const { provider, zookeeper } = settings;
  return provider === 'zookeeper' && zookeeper
    ? { ...call, settings: { ...settings, zookeeper } }
    : undefined;
}

/**
 * Connects to ZooKeeper, lets `act` work with it, and ends the session. Resolves and throws as
 * {@link reported} does. A signal of the process aborts the signal that `act` gets.
 */
export function onZooKeeper(
  call: ZooKeeperCall,
  act: (zookeeper: ZooKeeper, signal: AbortSignal) => Promise<number>,
): Promise<number> {
  return onConnecting(call, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    return act(zookeeper, signal);
  });
}

/** The same, without waiting for the connection. */
export function onConnecting(
  call: ZooKeeperCall,
  act: (zookeeper: ZooKeeper, signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const { settings, io } = call;
  return reported(call, () =>
    interruptible(io, async (signal) => {
      const zookeeper = await connectTo(settings.zookeeper, io);
      try {
        return await act(zookeeper, signal);
      } finally {
        await zookeeper.close();
      }
    }),
  );
}

/**
 * Begins to connect to ZooKeeper, in the background; its code is loaded then.
 * @throws {ConfigError} when a setting turns out to be unusable
 */
export async function connectTo(
  {
    connect,
    auth,
    tls,
    sessionTimeoutMs,
  }: Pick<ZooKeeperSettings, 'connect' | 'auth' | 'tls' | 'sessionTimeoutMs'>,
  { clock, random }: Pick<Io, 'clock' | 'random'>,
): Promise<ZooKeeper> {
  const { openZooKeeper } = await import('../../zookeeper/zookeeper-client.js');
  const operationTimeoutMs = REQUEST_TIMEOUT_MS;
  return openZooKeeper({ connect, auth, tls, sessionTimeoutMs, operationTimeoutMs, clock, random });
}
