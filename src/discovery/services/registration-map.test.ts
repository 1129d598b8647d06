import { describe, expect, it } from 'vitest';
import { instanceOf } from '../../../test/support/service-instances.js';
import { RegistrationMap } from './registration-map.js';

describe('a map of registrations', () => {
  it('finds what was put in by another value of the same registration, and by no other', () => {
    const map = new RegistrationMap<string>();
    map.set(instanceOf('a'), 'A');
    expect(map.get(instanceOf('a', { payload: 1, enabled: false }))).toBe('A');
    for (const other of [
      instanceOf('b'),
      instanceOf('a', { port: 1 }),
      instanceOf('a', { sslPort: 1 }),
      instanceOf('a', { address: undefined }),
      instanceOf('a', { registrationTimeUTC: 1 }),
    ])
      expect(map.get(other)).toBeUndefined();
  });

  it('keeps the order in which they were put in last', () => {
    const map = new RegistrationMap<string>();
    for (const id of ['a', 'b', 'c', 'a']) map.set(instanceOf(id), id);
    map.replace(instanceOf('b'), 'B');
    map.replace(instanceOf('x'), 'X');
    const order: (string | undefined)[] = [];
    for (const id of ['b', 'c', 'a']) {
      order.push(map.first);
      map.delete(instanceOf(id));
    }
    expect(order).toEqual(['B', 'c', 'a']);
    expect([map.size, map.first]).toEqual([0, undefined]);
  });

  it('keeps those with one id apart', () => {
    const map = new RegistrationMap<number>();
    for (const port of [1, 2, 1]) map.set(instanceOf('a', { port }), port);
    map.delete(instanceOf('a', { port: 1 }));
    map.delete(instanceOf('a', { port: 1 }));
    expect([map.get(instanceOf('a', { port: 1 })), map.get(instanceOf('a', { port: 2 })), map.size]).toEqual([undefined, 2, 1]);
  });
});
