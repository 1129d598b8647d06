import { systemClock, systemRandom } from '../src/core/base/system.js';
import type { ZooKeeper } from '../src/zookeeper/client/zookeeper.js';
import { encodeInstance } from '../src/zookeeper/services/instance/instance-codec.js';
import { newInstance } from '../src/zookeeper/services/instance/new-instance.js';
import { jsonPayload } from '../src/zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../src/zookeeper/services/instance/service-instance.js';
import { instancePath } from '../src/zookeeper/services/service-path.js';

/** Below which all services stand here. */
export const BASE_PATH = '/services';

const AT_ONCE = 200;

/** So many instances of a service, each with about as much to say as a real one. */
export function newInstances(name: string, count: number): ServiceInstance[] {
  return Array.from({ length: count }, (_, index) =>
    newInstance(
      {
        ...{ name, address: `10.0.${index >> 8}.${index & 0xff}`, port: 8_080 },
        payload: { nodeId: index, version: 1, weight: 1 + (index % 5) },
      },
      { clock: systemClock, random: systemRandom },
    ),
  );
}

/** Puts them into the tree. */
export async function register(zookeeper: ZooKeeper, instances: readonly ServiceInstance[]): Promise<void> {
  for (let first = 0; first < instances.length; first += AT_ONCE) {
    const some = instances.slice(first, first + AT_ONCE);
    await Promise.all(
      some.map((instance) => {
        const path = instancePath(BASE_PATH, instance.name, instance.id);
        return zookeeper.createWithParents(path, encodeInstance(instance, jsonPayload), 'ephemeral');
      }),
    );
  }
}
