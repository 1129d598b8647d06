import { setTimeout as sleep } from 'node:timers/promises';
import { describe, inject } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../src/core/base/system.js';
import { openZooKeeper } from '../../src/zookeeper/client/zookeeper-client.js';
import { expireSession, uniqueChroot } from '../support/zookeeper.js';
import { zooKeeperContract } from './zookeeper-contract.js';

describe('a real ZooKeeper server', () => {
  const root = uniqueChroot('contract');
  const { connect } = inject('zookeeper');

  zooKeeperContract({
    open: (chroot) => openZooKeeper({ connect: `${connect}${root}${chroot}`, clock, random }),
    sleep: (ms) => sleep(ms),
    settled: (work) => work,
    async expire(client) {
      const { sessionId } = await client.whenConnected();
      await expireSession({ connect, sessionId });
    },
  });
});
