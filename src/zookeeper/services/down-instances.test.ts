import { describe, expect, it } from 'vitest';
import { instanceOf } from '../../../test/support/service-instances.js';
import { InstanceMemory } from './down-instances.js';

function memory<V>() {
  const clock = { wall: 0, time: 0, looks: 0 };
  const read = {
    now: () => clock.wall,
    monotonic: () => {
      clock.looks += 1;
      return clock.time;
    },
  };
  return { clock, known: new InstanceMemory<V>(read, 100) };
}

describe('the memory of instances', () => {
  it('is found by another value of the same registration, and by no other', () => {
    const { known } = memory<string>();
    known.set(instanceOf('a'), 'A');
    expect(known.get(instanceOf('a', { payload: 1, enabled: false }))).toBe('A');
    for (const other of [
      instanceOf('b'),
      instanceOf('a', { port: 1 }),
      instanceOf('a', { sslPort: 1 }),
      instanceOf('a', { address: undefined }),
      instanceOf('a', { registrationTimeUTC: 1 }),
    ])
      expect(known.get(other)).toBeUndefined();
  });

  it('expires in the order in which it was set last', () => {
    const { clock, known } = memory<string>();
    for (const id of ['a', 'b', 'c', 'a']) {
      known.set(instanceOf(id), id);
      clock.time += 1;
    }
    const left = () => ['a', 'b', 'c', 'x'].map((id) => known.get(instanceOf(id)));
    expect(left()).toEqual(['a', 'b', 'c', undefined]);
    const seen = [100, 101, 102, 103].map((time) => {
      clock.time = time;
      known.expire();
      return left().filter((value) => value !== undefined);
    });
    expect(seen).toEqual([['a', 'b', 'c'], ['a', 'c'], ['a'], []]);
    expect(known.due).toBe(false);
  });

  it('is separate for instances with one id', () => {
    const { known } = memory<number>();
    for (const port of [1, 2, 1]) known.set(instanceOf('a', { port }), port);
    known.delete(instanceOf('a', { port: 1 }));
    known.delete(instanceOf('a', { port: 1 }));
    expect([known.get(instanceOf('a', { port: 1 })), known.get(instanceOf('a', { port: 2 }))]).toEqual([
      undefined,
      2,
    ]);
  });

  it('expires by the monotonic clock, whatever the wall clock does', () => {
    const { clock, known } = memory<string>();
    known.set(instanceOf('a'), 'A');
    for (const [wall, time, due] of [
      [0, 0, false],
      [1_000_000, 99, false],
      [-5, 100, true],
      [-4, 101, true],
    ] as const) {
      Object.assign(clock, { wall, time });
      expect(known.due).toBe(due);
    }
  });

  it('reads the monotonic clock once in a millisecond, and never while it is empty', () => {
    const { clock, known } = memory<string>();
    for (let i = 0; i < 10; i += 1) {
      known.expire();
      expect(known.due).toBe(false);
    }
    expect(clock.looks).toBe(0);
    known.set(instanceOf('a'), 'A');
    clock.looks = 0;
    for (let i = 0; i < 1_000; i += 1) {
      clock.wall = Math.floor(i / 100);
      expect(known.due).toBe(false);
    }
    expect(clock.looks).toBe(10);
  });
});
