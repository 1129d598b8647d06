import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { hostAddress } from '../../core/base/host/facts.js';
import { instanceUrl, parseUriSpec } from '../services/instance/uri-spec.js';
import { announcedFields, checkAnnouncement, routingEntries, routingInstance } from './announcement.js';

const held = { id: 3, version: 8, taskId: 'task' };
const sources = { clock: new VirtualClock(), random: seededRandom(1) };

describe('the instance of a node', () => {
  it('is named after its task, and has node id and version in addition to what it is given', () => {
    const announcement = {
      service: 'orders',
      address: 'host',
      port: 80,
      sslPort: 443,
      payload: { weight: 5 },
    };
    expect(routingInstance(announcement, held, sources)).toEqual({
      ...{
        name: 'orders',
        id: 'task',
        address: 'host',
        port: 80,
        sslPort: 443,
        serviceType: 'DYNAMIC',
        enabled: true,
        uriSpec: undefined,
      },
      payload: { weight: 5, nodeId: 3, version: 8 },
      registrationTimeUTC: sources.clock.now(),
    });
  });

  it('has the uriSpec that it is given', () => {
    const instance = routingInstance(
      { service: 'orders', address: 'host', port: 80, uriSpec: '{scheme}://{address}:{port}/v1' },
      held,
      sources,
    );
    expect(instance && instanceUrl(instance)).toBe('http://host:80/v1');
  });

  it('gives Spring everything as texts', () => {
    const payload = { zone: 'a', weight: 5, tags: ['x'] };
    expect(
      routingInstance({ service: 'orders', address: 'host', payload, payloadType: 'spring' }, held, sources)
        ?.payload,
    ).toEqual({
      '@class': 'org.springframework.cloud.zookeeper.discovery.ZookeeperInstance',
      id: 'task',
      name: 'orders',
      metadata: { zone: 'a', weight: '5', tags: '["x"]', nodeId: '3', version: '8' },
    });
  });

  it('has no payload unless one is asked for, and Spring’s uriSpec: every Java program but Dubbo can read that', () => {
    const announced = { service: 'orders', address: 'host', port: 80 };
    expect(routingInstance(announced, held, sources)).toMatchObject({
      payload: undefined,
      uriSpec: parseUriSpec('{scheme}://{address}:{port}'),
    });
    expect(routingInstance({ ...announced, payloadType: 'map' }, held, sources)).toMatchObject({
      payload: { nodeId: 3, version: 8 },
      uriSpec: undefined,
    });
  });

  it('has node id and version whatever its payload contains', () => {
    const payload = { weight: 5, toJSON: () => ({ weight: 6, zone: 'a' }) };
    expect(routingInstance({ service: 'orders', address: 'host', payload }, held, sources)?.payload).toEqual({
      ...{ weight: 6, zone: 'a', nodeId: 3, version: 8 },
    });
  });

  it('is none without a service', () => {
    expect(routingInstance({ endpoints: [{ endpoint: 'pay' }] }, held, sources)).toBeUndefined();
  });
});

describe('what the znode of a node says', () => {
  it('has the address of this host where only a port is given', () => {
    expect(announcedFields({ port: 80 })).toEqual({ address: hostAddress(), port: 80 });
    expect(announcedFields({ port: 80, address: 'host' })).toEqual({ address: 'host', port: 80 });
    expect(announcedFields({ service: 'orders' })).toEqual({ service: 'orders' });
  });
});

describe('the entries that send work to a node in the tree', () => {
  it('has an address: a port without one leads nowhere', () => {
    const entries = routingEntries({
      service: 'orders',
      port: 80,
      endpoints: [{ endpoint: 'pay', key: 'visa', fields: { tier: 1 } }],
    });
    const fields = { service: 'orders', address: hostAddress(), port: 80 };
    expect(entries).toEqual([
      [{ kind: 'service', service: 'orders' }, fields],
      [
        { kind: 'endpoint', endpoint: 'pay', key: 'visa', service: 'orders' },
        { ...fields, tier: 1 },
      ],
    ]);
    // An endpoint may listen elsewhere than its service.
    const elsewhere = { endpoint: 'pay', fields: { port: 81, address: 'other' } };
    const [, entry] = routingEntries({
      service: 'orders',
      port: 80,
      address: 'host',
      endpoints: [elsewhere],
    });
    expect(entry?.[1]).toEqual({ service: 'orders', address: 'other', port: 81 });
    expect(routingEntries({ service: 'orders' })).toEqual([
      [{ kind: 'service', service: 'orders' }, { service: 'orders' }],
    ]);
  });
});

describe('an announcement that cannot be', () => {
  const deep = (levels: number): object => (levels === 0 ? {} : { x: deep(levels - 1) });
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;

  it.each<[string, object, string?]>([
    ['service', { service: 'a/b' }],
    ['service', { service: 'x'.repeat(256) }],
    ['service', { service: 7 }],
    ['taskId', { service: 'orders' }, 'a/b'],
    ['address', { service: 'orders', address: 'http://x' }],
    ['port', { service: 'orders', port: '80' }],
    ['sslPort', { service: 'orders', sslPort: 70_000 }],
    ['basePath', { service: 'orders', basePath: 'services' }],
    ['basePath', { service: 'orders', basePath: '/discovery/nodes' }],
    ['basePath', { service: 'orders', basePath: '/zookeeper' }],
    ['basePath', { service: 'orders', basePath: 7 }],
    ['payload', { service: 'orders', payload: 'text' }],
    ['payload', { service: 'orders', payload: null }],
    ['payload', { service: 'orders', payload: { nodeId: 1 } }],
    ['payload', { service: 'orders', payload: { toJSON: () => ({ version: 1 }) } }],
    ['payload', { service: 'orders', payload: [1] }],
    ['payload', { service: 'orders', payload: { toJSON: () => ['java.lang.Long', 7] } }],
    ['payload', { service: 'orders', payload: { '@class': 'com.acme.Order' } }],
    ['payload', { service: 'orders', payload: { '@class': 'java.util.TreeMap' }, payloadType: 'spring' }],
    ['payload', { service: 'orders', payload: deep(1_000) }],
    ['payload', { service: 'orders', payload: { a: 'x'.repeat(900_000) } }],
    ['payload', { payload: { a: 'x'.repeat(65_536) } }],
    ['payload.a', { service: 'orders', payload: { a: Number.NaN } }],
    ['payload.self', { service: 'orders', payload: cyclic }],
    ['port', { service: 'orders', payloadType: 'spring' }],
    ['uriSpec', { service: 'orders', uriSpec: '{address' }],
    ['uriSpec', { service: 'orders', uriSpec: 7 }],
    ['payloadType', { service: 'orders', payloadType: 'xml' }],
    ['endpoints', { endpoints: 'pay' }],
    ['endpoints', { endpoints: { endpoint: 'pay' } }],
    ['endpoints[0]', { endpoints: ['pay'] }],
    ['endpoints[1]', { endpoints: [{ endpoint: 'pay' }, null] }],
    ['endpoints[0]', { endpoints: [{ name: 'pay' }] }],
    ['endpoints[0]', { endpoints: [{ endpoint: 'pay', kee: 'visa' }] }],
    ['endpoints[0]', { endpoints: [{ endpoint: 'pay', clock: 'visa' }] }],
    ['endpoints[0].endpoint', { endpoints: [{ endpoint: '' }] }],
    ['endpoints[0].endpoint', { endpoints: [{ key: 'visa' }] }],
    ['endpoints[0].key', { endpoints: [{ endpoint: 'pay', key: 'a/b' }] }],
    ['endpoints[0].key', { endpoints: [{ endpoint: 'pay', key: '_' }] }],
    ['endpoints[0].key', { endpoints: [{ endpoint: 'pay', key: 7 }] }],
    ['endpoints[0].fields', { endpoints: [{ endpoint: 'pay', fields: 'text' }] }],
    ['endpoints[0].fields', { endpoints: [{ endpoint: 'pay', fields: { toJSON: () => ({}) } }] }],
    ['endpoints[0].fields', { endpoints: [{ endpoint: 'pay', fields: cyclic }] }],
    ['endpoints[0].fields', { endpoints: [{ endpoint: 'pay', fields: { a: 'x'.repeat(65_536) } }] }],
  ])(
    'is refused by the name of the field, before anything is made: %s',
    (setting, announcement, taskId = 'task') => {
      expect(() => checkAnnouncement(announcement, taskId)).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID', setting }),
      );
    },
  );

  it('is none that fits', () => {
    const payload = { text: 'x'.repeat(65_000), '@class': 'java.util.HashMap', tags: ['a'], at: new Date(0) };
    const endpoints = [{ endpoint: 'pay', key: 'visa', fields: { tier: undefined } }];
    const announcement = {
      service: 'orders',
      address: 'host',
      port: 80,
      payload,
      endpoints,
      basePath: '/discovery-services',
    };
    expect(() => checkAnnouncement(announcement, 'task')).not.toThrow();
    expect(() =>
      checkAnnouncement({ ...announcement, payload: undefined, endpoints: undefined }, 'task'),
    ).not.toThrow();
  });

  it('is reported in a line of bearable length', () => {
    const payload = { nodeId: 'x'.repeat(10_000) };
    expect(() => checkAnnouncement({ service: 'orders', payload }, 'task')).toThrow(
      /^payload: expected .{80,250}$/,
    );
  });
});
