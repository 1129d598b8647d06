import { describe, expect, it } from 'vitest';
import type { Znode } from '../client/zookeeper.js';
import { encodeAssignment } from './assignment.js';
import { decodeEndpoint } from './discovery-resolver.js';

const ASSIGNMENT = { taskId: 'task-7', nodeId: 7, version: 3 };

function znode(data: string, owner: string | undefined = '0000000000000001'): Znode {
  const stat = {
    version: 0,
    childrenVersion: 0,
    createdZxid: 1n,
    modifiedZxid: 1n,
    createdAt: 1_700_000_000_000,
    modifiedAt: 0,
    owner,
    childCount: 0,
  };
  return { data: Buffer.from(data), stat };
}

describe('a node that offers an endpoint', () => {
  it('is an instance with its address and ports, and all that it says of itself', () => {
    const assignment = {
      ...ASSIGNMENT,
      service: 'orders',
      address: '10.0.0.7',
      port: 8080,
      sslPort: 8443,
      colour: 'blue',
    };
    expect(decodeEndpoint('pay', 'orders:7', znode(encodeAssignment(assignment)))).toEqual({
      status: 'readable',
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
          registrationTimeUTC: 1_700_000_000_000,
          serviceType: 'DYNAMIC',
          uriSpec: undefined,
          enabled: true,
        },
      },
    });
  });

  it('keeps the digits of an integer that a number cannot hold', () => {
    expect(
      decodeEndpoint(
        'pay',
        'orders:7',
        znode(`{"taskId":"t","nodeId":7,"version":3,"serial":9007199254740993}`),
      ),
    ).toMatchObject({
      instance: { payload: { serial: '9007199254740993' } },
    });
  });

  it('has no address and no port if it has none, or invalid ones', () => {
    for (const more of [
      {},
      { address: '', port: 0 },
      { address: 7, port: '8080' },
      { address: null, port: 65_536 },
      { port: 80.5 },
      { sslPort: 65_536 },
      { port: -1 },
    ]) {
      const decoded = decodeEndpoint('pay', '7', znode(encodeAssignment({ ...ASSIGNMENT, ...more })));
      expect(decoded).toMatchObject({
        status: 'readable',
        instance: { address: undefined, port: undefined, sslPort: undefined, payload: { ...more } },
      });
    }
  });

  it('may have any port there is, and as much to say as a znode holds', () => {
    const encoded = encodeAssignment({ ...ASSIGNMENT, port: 65_535, sslPort: 1 });
    const decoded = decodeEndpoint('pay', '7', znode(encoded.padEnd(1_048_576)));
    expect(decoded).toMatchObject({ status: 'readable', instance: { port: 65_535, sslPort: 1 } });
    expect(decodeEndpoint('pay', '7', znode(encoded.padEnd(1_048_577)))).toEqual({
      status: 'unreadable',
      problem: 'holds more than 1048576 bytes',
    });
  });

  it('is left out if it does not name its node', () => {
    for (const data of [
      '',
      'text',
      '[]',
      'null',
      '{}',
      '{"taskId":"t","nodeId":-1,"version":1}',
      '['.repeat(200_000),
    ])
      expect(decodeEndpoint('pay', '7', znode(data))).toEqual({
        status: 'unreadable',
        problem: 'does not tell task, node id and version',
      });
  });
});
