import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../test/support/virtual-clock.js';
import { checkAnnouncement, routingEntries, routingInstance } from './announcement.js';
import { hostAddress } from './host-address.js';

const held = { id: 3, version: 8, taskId: 'task' };
const sources = { clock: new VirtualClock(), random: seededRandom(1) };

describe('the instance of a node', () => {
  it('goes by its task, and tells node id and version beside what it is given', () => {
    const announcement = { service: 'orders', address: 'host', port: 80, sslPort: 443, payload: { weight: 5 } };
    expect(routingInstance(announcement, held, sources)).toEqual({
      ...{ name: 'orders', id: 'task', address: 'host', port: 80, sslPort: 443, serviceType: 'DYNAMIC', enabled: true, uriSpec: undefined },
      payload: { weight: 5, nodeId: 3, version: 8 },
      registrationTimeUTC: sources.clock.now(),
    });
  });

  it('tells Spring everything as texts', () => {
    const payload = { zone: 'a', weight: 5, tags: ['x'] };
    expect(routingInstance({ service: 'orders', address: 'host', payload, payloadType: 'spring' }, held, sources)?.payload).toEqual({
      '@class': 'org.springframework.cloud.zookeeper.discovery.ZookeeperInstance',
      id: 'task',
      name: 'orders',
      metadata: { zone: 'a', weight: '5', tags: '["x"]', nodeId: '3', version: '8' },
    });
  });

  it('is none without a service', () => {
    expect(routingInstance({ endpoints: [{ endpoint: 'pay' }] }, held, sources)).toBeUndefined();
  });
});

describe('what sends work to a node in the tree', () => {
  it('tells where it is: a port alone leads nowhere', () => {
    const entries = routingEntries({ service: 'orders', port: 80, endpoints: [{ endpoint: 'pay', key: 'visa', fields: { tier: 1 } }] });
    const fields = { service: 'orders', address: hostAddress(), port: 80 };
    expect(entries).toEqual([
      [{ kind: 'service', service: 'orders' }, fields],
      [
        { kind: 'endpoint', endpoint: 'pay', key: 'visa', service: 'orders' },
        { ...fields, tier: 1 },
      ],
    ]);
    expect(routingEntries({ service: 'orders' })).toEqual([[{ kind: 'service', service: 'orders' }, { service: 'orders' }]]);
  });
});

describe('an announcement that cannot be', () => {
  it.each<[string, object, string?]>([
    ['service', { service: 'a/b' }],
    ['instance.id', { service: 'orders' }, 'a/b'],
    ['instance.address', { service: 'orders', address: 'http://x' }],
    ['instance.sslPort', { service: 'orders', sslPort: 70_000 }],
    ['endpoint', { endpoints: [{ endpoint: '' }] }],
    ['basePath', { service: 'orders', basePath: 'services' }],
    ['payload', { service: 'orders', payload: 'text' }],
    ['payload', { service: 'orders', payload: { nodeId: 1 } }],
    ['instance.payload', { service: 'orders', payload: [1] }],
    ['payloadType', { service: 'orders', payloadType: 'xml' }],
  ])('is refused by the name of the option: %s in %j', (setting, announcement, taskId = 'task') => {
    expect(() => checkAnnouncement(announcement, taskId)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', setting }));
  });
});

describe('the address of a host', () => {
  const address = (text: string, internal = false): NetworkInterfaceInfo =>
    ({ address: text, internal, family: text.includes(':') ? 'IPv6' : 'IPv4' }) as NetworkInterfaceInfo;

  it.each([
    [['127.0.0.1!', '10.0.0.7', '10.0.0.8'], '10.0.0.7'],
    [['fd00::2', '10.0.0.7'], '10.0.0.7'],
    [['fe80::1', '169.254.0.3', 'fd00::2'], 'fd00::2'],
    [['127.0.0.1!', '::1!', 'fe80::1'], '127.0.0.1'],
    [[], '127.0.0.1'],
  ])('is the first that others can reach: of %j it is %s', (texts, expected) => {
    const all = texts.map((text) => address(text.replace('!', ''), text.endsWith('!')));
    expect(hostAddress(() => ({ lo: all.slice(0, 1), eth0: all.slice(1) }))).toBe(expected);
  });
});
