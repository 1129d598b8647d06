import { describe } from 'vitest';
import type { ZooKeeper } from '../../src/zookeeper/client/zookeeper.js';
import { Machine } from '../simulation/world/machine.js';
import type { Actor } from '../simulation/world/scheduler.js';
import { SimulatedProcess } from '../simulation/world/simulated-process.js';
import { drawRecipeConditions } from '../simulation/zookeeper/conditions.js';
import { MachineHost } from '../simulation/zookeeper/machine-host.js';
import { RecipeWorld } from '../simulation/zookeeper/world.js';
import { zooKeeperContract } from './zookeeper-contract.js';

/** Who sleeps for a test. */
const TEST: Actor = { alive: true, stopped: false, defer: () => undefined };

// Whatever a seed decides of the servers' number, their lag and their latencies.
describe.each([1, 2, 3, 5, 8])('simulated ZooKeeper servers of seed %i', (seed) => {
  const world = new RecipeWorld(drawRecipeConditions(seed, new Set()));
  const { scheduler, conditions } = world;
  const hosts = new Map<ZooKeeper, MachineHost>();
  const sleep = (ms: number) =>
    new Promise<void>((resolve) => void scheduler.at(scheduler.now + ms, TEST, resolve));

  zooKeeperContract({
    open(chroot) {
      const host = new MachineHost(world, hosts.size % conditions.machines.length, () => Promise.resolve());
      const process = new SimulatedProcess(scheduler, new Machine(0, 0, 0, 0), () => 0.05);
      const { zookeeper } = host.open(process, chroot);
      hosts.set(zookeeper, host);
      return zookeeper;
    },
    sleep,
    async settled(work) {
      let over = false;
      const end = () => {
        over = true;
      };
      work.then(end, end);
      await scheduler.run(scheduler.now + 120_000, () => !over);
      return work;
    },
    expire(client) {
      hosts.get(client)?.cutOff(3 * conditions.grantedMs, undefined);
      return sleep(3 * conditions.grantedMs);
    },
  });
});
