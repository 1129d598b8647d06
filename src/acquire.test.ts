import { describe, expect, it } from 'vitest';
import { type AcquireOptions, acquire } from './acquire.js';

describe('acquire', () => {
  it.each<[string, object]>([
    ['options', { nods: 3 }],
    ['options', { duration: '15s' }],
    ['keeper', { keeper: 'bogus' }],
    ['onLost', { onLost: 'bogus' }],
    ['acquireTimeoutMs', { acquireTimeoutMs: '0s' }],
    ['durationMs', { durationMs: 10 }],
    ['nodes', { nodes: 0 }],
    ['store', { store: 'ftp://x' }],
    ['store', { store: 'memory:', keeper: 'worker' }],
  ])('names the option that is wrong: %s in %j', async (setting, options) => {
    await expect(acquire({ store: 'memory:', ...options } as AcquireOptions)).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting });
  });

  const zookeeper = { connect: '127.0.0.1:1', service: 'orders', address: 'host', port: 80, required: true };
  it.each<[string, object]>([
    ['zookeeper', { zookeeper: null }],
    ['zookeeper', { zookeeper: { ...zookeeper, adress: 'host' } }],
    ['zookeeper.service', { zookeeper: { ...zookeeper, service: 'a/b' } }],
    ['zookeeper.address', { zookeeper: { ...zookeeper, address: 'http://host' } }],
    ['zookeeper.port', { zookeeper: { ...zookeeper, port: 0 } }],
    ['zookeeper.sslPort', { zookeeper: { ...zookeeper, sslPort: 70_000 } }],
    ['zookeeper.basePath', { zookeeper: { ...zookeeper, basePath: '/discovery' } }],
    ['zookeeper.payload', { zookeeper: { ...zookeeper, payload: { a: 'x'.repeat(900_000) } } }],
    ['zookeeper.payload', { zookeeper: { ...zookeeper, payload: { '@class': 'com.acme.Order' } } }],
    ['zookeeper.payload.a', { zookeeper: { ...zookeeper, payload: { a: 1n } } }],
    ['zookeeper.payloadType', { zookeeper: { ...zookeeper, payloadType: 'xml' } }],
    ['zookeeper.endpoints', { zookeeper: { ...zookeeper, endpoints: 'pay' } }],
    ['zookeeper.endpoints[0]', { zookeeper: { ...zookeeper, endpoints: ['pay'] } }],
    ['zookeeper.endpoints[0]', { zookeeper: { ...zookeeper, endpoints: [{ name: 'pay' }] } }],
    ['zookeeper.endpoints[0].key', { zookeeper: { ...zookeeper, endpoints: [{ endpoint: 'pay', key: '' }] } }],
    ['taskId', { zookeeper, taskId: 'a/b' }],
  ])('names what cannot be announced as it was given, and asks neither store nor ZooKeeper: %s', async (setting, options) => {
    const asked: string[] = [];
    const store = new Proxy({}, { get: (_, name) => void asked.push(String(name)) });
    const acquired = acquire({ store, ...options } as AcquireOptions);
    await expect(acquired).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting });
    expect(asked).toEqual([]);
  });

  it('gives a lease on a store that lives in this process, and gives it back', async () => {
    const lease = await acquire({ store: 'memory:', nodes: 2, taskId: 'me' });
    expect([lease.id, lease.version, lease.taskId, lease.isValid()]).toEqual([0, 1, 'me', true]);
    await lease.release();
    expect([lease.isValid(), lease.signal.aborted]).toEqual([false, false]);
  });
});
