import { randomBytes } from 'node:crypto';
import { startEtcdProcess } from './servers/etcd-process.js';

/** How to reach an etcd cluster without users. Plain data, so that it can be handed to test workers. */
export interface EtcdServers {
  /** `HOST:PORT`, or several with commas between them. */
  readonly address: string;
}

/** An etcd cluster that tests may use. */
export interface EtcdServer extends EtcdServers {
  /** Where it came from, for people. */
  readonly description: string;
  /**
   * Idempotent. What is in a cluster that was there before stays, below prefixes that begin with
   * `nodelease-test-`.
   */
  stop(): Promise<void>;
}

/**
 * Starts, or finds, a real etcd: the one that NODELEASE_TEST_ETCD names, else a local process.
 *
 * @throws Error when there is none and it cannot be installed; tests are never skipped for that
 */
export async function startEtcd(): Promise<EtcdServer> {
  const address = process.env.NODELEASE_TEST_ETCD;
  if (address)
    return { address, description: `${address} (NODELEASE_TEST_ETCD)`, stop: async () => undefined };
  const server = await startEtcdProcess();
  return { address: server.address, description: server.description, stop: server.dispose };
}

/** The URL of a store that no other test uses. */
export function newEtcdStore({ address }: EtcdServers): string {
  return `etcd://${address}/nodelease-test-${randomBytes(6).toString('hex')}/fleet`;
}
