import { describe, expect, it } from 'vitest';
import { instanceOf } from '../../../test/support/service-instances.js';
import { DownInstances } from './down-instances.js';

function downInstances(threshold = 1) {
  const clock = { wall: 0, time: 0, looks: 0 };
  const read = {
    now: () => clock.wall,
    monotonic: () => {
      clock.looks += 1;
      return clock.time;
    },
  };
  return { clock, down: new DownInstances(read, { threshold, timeoutMs: 100 }) };
}

describe('an instance that is down', () => {
  it('is known by another value of the same registration, and no other instance is', () => {
    const { down } = downInstances();
    down.note(instanceOf('a'));
    expect(down.isDown(instanceOf('a', { payload: 1, enabled: false }))).toBe(true);
    for (const other of [
      instanceOf('b'),
      instanceOf('a', { port: 1 }),
      instanceOf('a', { sslPort: 1 }),
      instanceOf('a', { address: undefined }),
      instanceOf('a', { registrationTimeUTC: 1 }),
    ])
      expect(down.isDown(other)).toBe(false);
  });

  it('comes back in the order in which the instances went down, whatever errors follow', () => {
    const { clock, down } = downInstances();
    const all = ['a', 'b', 'c', 'x'].map((id) => instanceOf(id));
    for (const id of ['a', 'b', 'c', 'a']) {
      down.note(instanceOf(id));
      clock.time += 1;
    }
    const seen = [99, 100, 101, 102].map((time) => {
      clock.time = time;
      return down.up(all).map(({ id }) => id);
    });
    expect(seen).toEqual([['x'], ['a', 'x'], ['a', 'b', 'x'], ['a', 'b', 'c', 'x']]);
    expect(down.due).toBe(false);
  });

  it('goes down by errors since the first that counts, not by older ones', () => {
    const { clock, down } = downInstances(2);
    const note = (time: number, port: number) => {
      clock.time = time;
      return down.note(instanceOf('a', { port }));
    };
    expect([note(0, 1), note(50, 2), note(100, 1), note(149, 2), note(199, 1)]).toEqual([
      false,
      false,
      false,
      true,
      true,
    ]);
  });

  it('is due by the monotonic clock, whatever the wall clock does', () => {
    const { clock, down } = downInstances();
    down.note(instanceOf('a'));
    for (const [wall, time, due] of [
      [0, 0, false],
      [1_000_000, 99, false],
      [-5, 100, true],
      [-4, 101, true],
    ] as const) {
      Object.assign(clock, { wall, time });
      expect(down.due).toBe(due);
    }
  });

  it('has the monotonic clock read once in a millisecond, and never while none is down', () => {
    const { clock, down } = downInstances();
    for (let i = 0; i < 10; i += 1) {
      down.up([]);
      expect(down.due).toBe(false);
    }
    expect(clock.looks).toBe(0);
    down.note(instanceOf('a'));
    clock.looks = 0;
    for (let i = 0; i < 1_000; i += 1) {
      clock.wall = Math.floor(i / 100);
      expect(down.due).toBe(false);
    }
    expect(clock.looks).toBe(10);
  });

  it('is not due when only errors that were not enough expire, and no clock is read for them', () => {
    const { clock, down } = downInstances(2);
    down.note(instanceOf('a'));
    clock.looks = 0;
    Object.assign(clock, { wall: 1_000, time: 1_000 });
    expect(down.due).toBe(false);
    expect(clock.looks).toBe(0);
  });
});
