import { describe, expect, it } from 'vitest';
import { LEADER_EPOCH, ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { DiscoveryResolver } from './discovery-resolver.js';
import { encodeAssignment } from './layout.js';

const ASSIGNMENT = { taskId: 'task-7', nodeId: 7, version: 3 };

/** The instance of a znode of an endpoint, or its problem. */
async function resolved(ref: string, data: string) {
  const clock = new VirtualClock();
  const zookeeper = new ScriptedZooKeeper(clock);
  zookeeper.put(`/discovery/endpoints/pay/_/${ref}`, data, '0000000000000001');
  const problems: string[] = [];
  const onUnreadable = (_: string, problem: string) => void problems.push(problem);
  const resolver = new DiscoveryResolver({ zookeeper, clock, random: seededRandom(1), onUnreadable });
  const source = resolver.instances('pay');
  for (const _ of ['the names', 'the data']) zookeeper.fireWatches();
  await source.ready;
  return { instance: source.instances[0], problem: problems[0] };
}

it('a resolver whose client is closed follows nothing, and leaves nothing behind', async () => {
  const clock = new VirtualClock();
  const zookeeper = new ScriptedZooKeeper(clock);
  const resolver = new DiscoveryResolver({ zookeeper, clock, random: seededRandom(1) });
  await zookeeper.close();
  const source = resolver.instances('pay');
  await settled();
  expect([source.instances, zookeeper.watches.size, clock.sleepers]).toEqual([[], 0, 0]);
});

describe('a node that offers an endpoint', () => {
  it('is an instance with its address and ports, and all that it says of itself', async () => {
    const assignment = {
      ...ASSIGNMENT,
      service: 'orders',
      address: '10.0.0.7',
      port: 8080,
      sslPort: 8443,
      colour: 'blue',
    };
    expect(await resolved('orders:7', encodeAssignment(assignment))).toEqual({
      problem: undefined,
      instance: {
        ...{
          name: 'pay',
          id: 'orders:7',
          address: '10.0.0.7',
          port: 8080,
          sslPort: 8443,
          payload: assignment,
        },
        ...{
          registrationTimeUTC: LEADER_EPOCH,
          serviceType: 'DYNAMIC',
          uriSpec: undefined,
          enabled: true,
        },
      },
    });
  });

  it('keeps the digits of an integer that a number cannot hold', async () => {
    const data = '{"taskId":"t","nodeId":7,"version":3,"serial":9007199254740993}';
    const { instance } = await resolved('orders:7', data);
    expect(instance?.payload).toMatchObject({ serial: '9007199254740993' });
  });

  it('has no address and no port if it has none, or invalid ones', async () => {
    for (const more of [
      {},
      { address: '', port: 0 },
      { address: 7, port: '8080' },
      { address: null, port: 65_536 },
      { port: 80.5 },
      { sslPort: 65_536 },
      { port: -1 },
    ]) {
      const { instance } = await resolved('7', encodeAssignment({ ...ASSIGNMENT, ...more }));
      const nothing = { address: undefined, port: undefined, sslPort: undefined };
      expect(instance).toMatchObject({ ...nothing, payload: { ...more } });
    }
  });

  it('may have any port there is, and as much to say as a znode holds', async () => {
    const encoded = encodeAssignment({ ...ASSIGNMENT, port: 65_535, sslPort: 1 });
    const largest = await resolved('7', encoded.padEnd(1_048_576));
    expect(largest.instance).toMatchObject({ port: 65_535, sslPort: 1 });
    expect(await resolved('7', encoded.padEnd(1_048_577))).toEqual({
      instance: undefined,
      problem: 'holds more than 1048576 bytes',
    });
  });

  it('is left out if it does not name its node', async () => {
    for (const data of [
      '',
      'text',
      '[]',
      'null',
      '{}',
      '{"taskId":"t","nodeId":-1,"version":1}',
      '['.repeat(200_000),
    ])
      expect(await resolved('7', data)).toEqual({
        instance: undefined,
        problem: 'does not tell task, node id and version',
      });
  });
});
