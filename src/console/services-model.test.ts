import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import { addressText, countText, fits, leaseText, ServicesModel } from './services-model.js';
import type { WireService } from './services-wire.js';

type Instance = NonNullable<WireService['instance']>;

const ENABLED: Instance = { address: '10.0.0.1', port: 80, sslPort: null, serviceType: 'DYNAMIC', state: 'enabled' };

function entry(id: string | null, facts: Partial<WireService> = {}): WireService {
  return {
    service: 'orders',
    id,
    instance: id === null ? null : ENABLED,
    text: null,
    sessionId: null,
    lease: null,
    problem: null,
    ...facts,
  };
}

function setUp() {
  const clock = new VirtualClock();
  const model = new ServicesModel(clock);
  const tell = (event: string, data: unknown) => model.apply({ event, data: JSON.stringify(data) });
  const hello = () => tell('hello', { zookeeper: 'zk', path: '/services', writes: true });
  const put = (...entries: WireService[]) =>
    tell('entries', { set: entries.map((each) => [`/services/${each.service}${each.id === null ? '' : `/${each.id}`}`, each]), gone: [] });
  const gone = (...paths: string[]) => tell('entries', { set: [], gone: paths });
  const status = (facts = {}) => tell('status', { state: 'ok', problem: null, isWhole: true, isPartial: false, ...facts });
  const ids = () => [...(model.services.get('orders')?.instances.values() ?? [])].map(({ id }) => id);
  return { clock, model, tell, hello, put, gone, status, ids };
}

describe('what the page knows of the services', () => {
  it('grows and shrinks with the stream, and says what has changed', () => {
    const { model, hello, put, gone, status, ids } = setUp();
    hello();
    put(entry(null), entry('a'), entry('b'));
    status();
    expect([model.count, ids()]).toEqual([2, ['a', 'b']]);
    expect([...model.takeChanges().services]).toEqual(['orders']);
    put(entry('a'));
    expect(model.takeChanges()).toEqual({ services: new Set(), spoken: [] });
    put(entry('a', { instance: { ...ENABLED, state: 'disabled' } }), entry('c'), entry('b', { text: '{}' }));
    gone('/services/orders/b');
    expect(model.takeChanges()).toEqual({
      services: new Set(['orders']),
      spoken: ['orders a is disabled', 'orders c has come', 'orders b has gone'],
    });
    gone('/services/orders/a', '/services/orders/c', '/services/orders');
    expect(model.services.size).toBe(0);
  });

  it('stays over a new connection until all has been read again, and loses then what has gone', () => {
    const { model, hello, put, status, ids } = setUp();
    hello();
    put(entry(null), entry('a'), entry('b'));
    status();
    model.takeChanges();
    model.connection(false);
    hello();
    put(entry(null), entry('a'));
    expect([ids(), [...model.takeChanges().services]]).toEqual([['a', 'b'], []]);
    status();
    expect(ids()).toEqual(['a']);
  });

  it('keeps why a service cannot be listed', () => {
    const { model, put } = setUp();
    put(entry(null, { problem: 'may not be listed' }));
    expect(model.services.get('orders')?.problem).toBe('may not be listed');
    put(entry(null));
    expect(model.services.get('orders')?.problem).toBeNull();
  });

  it('is old from the moment when the connection, or ZooKeeper, is away', () => {
    const { clock, model, hello, status } = setUp();
    hello();
    status();
    expect([model.isKnown, model.staleSince]).toEqual([true, undefined]);
    clock.freeze(5_000);
    status({ state: 'failing', problem: 'no server answers' });
    clock.freeze(1_000);
    model.connection(false);
    expect(model.staleSince).toBe(5_000);
    hello();
    expect(model.staleSince).toBeUndefined();
  });
});

describe('an instance in words', () => {
  it('tells its address and ports', () => {
    expect(addressText(entry('a', { instance: { ...ENABLED, address: 'fd00::1', sslPort: 443 } }))).toBe('[fd00::1]:80 TLS :443');
    expect(addressText(entry('a', { instance: { ...ENABLED, address: null, port: null } }))).toBe('');
    expect(addressText(entry('a', { instance: null }))).toBe('');
  });

  it('tells whose lease it is, and who says so', () => {
    const lease = { nodeId: 7, version: 2, taskId: 't', toldBy: 'tree', otherVersion: null } as const;
    expect(leaseText(entry('a'))).toBe('');
    expect(leaseText(entry('a', { lease }))).toBe('node id 7, version 2, task t');
    const claimed = { ...lease, taskId: null, toldBy: 'payload' } as const;
    expect(leaseText(entry('a', { lease: claimed }))).toBe('node id 7, version 2, says its payload: the discovery tree has no such node');
    expect(leaseText(entry('a', { lease: { ...claimed, version: null, otherVersion: 3 } }))).toBe(
      'node id 7, says its payload: the discovery tree has version 3',
    );
  });

  it('is found by all words of the filter, wherever they stand', () => {
    const damaged = entry('b', { instance: null, text: '{"name":', problem: 'is not JSON' });
    for (const words of [[], ['orders'], ['b', 'damaged'], ['not json'], ['{"name"']]) expect(fits(damaged, words)).toBe(true);
    expect(fits(damaged, ['orders', 'enabled'])).toBe(false);
    expect(fits(entry('a'), ['10.0.0.1:80', 'dynamic'])).toBe(true);
  });

  it('is counted by its state', () => {
    expect(countText([entry('a'), entry('b'), entry('c', { instance: null })])).toBe('2 enabled, 1 damaged');
    expect(countText([])).toBe('no instances');
  });
});
