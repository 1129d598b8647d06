import { describe, expect, it } from 'vitest';
import { ENABLED, serviceEntry as entry } from '../../../../test/support/service-entries.js';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import type { ServiceEntry } from '../../../node/wire/entries-wire.js';
import { changeText, servicesIn } from '../services/services-model.js';
import { EntriesModel } from './entries-model.js';

function setUp() {
  const clock = new VirtualClock();
  const model = new EntriesModel(clock, changeText);
  const send = (event: string, data: unknown) => model.apply({ event, data: JSON.stringify(data) });
  const hello = () => send('hello', { zookeeper: 'zk', path: '/services', writes: true });
  const put = (...entries: ServiceEntry[]) =>
    send('entries', {
      set: entries.map((each) => [`/services/${each.service}${each.id === null ? '' : `/${each.id}`}`, each]),
      gone: [],
    });
  const gone = (...paths: string[]) => send('entries', { set: [], gone: paths });
  const status = (facts = {}) =>
    send('status', { state: 'ok', problem: null, isWhole: true, isPartial: false, ...facts });
  const ids = () =>
    servicesIn(model.entries).flatMap(({ instances }) => [...instances.values()].map(({ id }) => id));
  return { clock, model, send, hello, put, gone, status, ids };
}

describe('what the page knows of the services', () => {
  it('grows and shrinks with the stream, and says what has changed', () => {
    const { model, hello, put, gone, status, ids } = setUp();
    hello();
    put(entry(null), entry('a'), entry('b'));
    status();
    expect([ids(), model.takeChange(), model.takeChange()]).toEqual([['a', 'b'], true, false]);
    put(entry('a'));
    expect([model.takeChange(), model.takeSpoken()]).toEqual([false, []]);
    put(entry('a', { instance: { ...ENABLED, state: 'disabled' } }), entry('c'), entry('b', { text: '{}' }));
    gone('/services/orders/b');
    expect(model.takeChange()).toBe(true);
    expect(model.takeSpoken()).toEqual(['orders a is disabled', 'orders c has come', 'orders b has gone']);
    gone('/services/orders/a', '/services/orders/c', '/services/orders');
    expect([...model.entries]).toEqual([]);
  });

  it('stays over a new connection until all has been read again, and loses then what has gone', () => {
    const { model, hello, put, status, ids } = setUp();
    hello();
    put(entry(null), entry('a'), entry('b'));
    status();
    model.takeChange();
    model.connection(false);
    hello();
    put(entry(null), entry('a'));
    expect([ids(), model.takeChange()]).toEqual([['a', 'b'], false]);
    status();
    expect(ids()).toEqual(['a']);
  });

  it('keeps why a service cannot be listed', () => {
    const { model, put } = setUp();
    const problem = () => servicesIn(model.entries)[0]?.service.problem;
    put(entry(null, { problem: 'may not be listed' }));
    expect(problem()).toBe('may not be listed');
    put(entry(null));
    expect(problem()).toBeNull();
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
    status();
    expect(model.staleSince).toBeUndefined();
  });

  it('is as old as before with a new server, until that has read it too', () => {
    const { clock, model, hello, put, status } = setUp();
    hello();
    put(entry(null), entry('a'));
    status();
    clock.freeze(5_000);
    model.connection(false);
    clock.freeze(3_600_000);
    hello();
    status({ isWhole: false });
    model.connection(true);
    status({ isWhole: false, state: 'failing', problem: 'no server answers' });
    expect(model.staleSince).toBe(5_000);
    put(entry(null));
    status();
    expect(model.staleSince).toBeUndefined();
  });
});
