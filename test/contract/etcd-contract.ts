import { systemClock, systemRandom } from '../../src/core/base/system.js';
import { openStore } from '../../src/core/store/open-store.js';
import { leaseStoreContract } from './lease-store-contract.js';

/**
 * The contract on etcd, as the engine uses it: ages are observed, and a task has listed before it watches.
 */
export function etcdContract(name: string, newUrl: () => string): void {
  const connect = async (url: string) => {
    const store = await openStore(url, {
      clock: systemClock,
      random: systemRandom,
      requestTimeoutMs: 10_000,
    });
    await store.list();
    return store;
  };
  leaseStoreContract(name, {
    open: () => connect(newUrl()),
    reopen: ({ url }) => connect(url),
    ageResolutionMs: 0,
  });
}
