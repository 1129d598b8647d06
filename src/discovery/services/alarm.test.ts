import { describe, expect, it } from 'vitest';
import { Alarm } from './alarm.js';

function set() {
  const clock = { wall: 0, time: 0, looks: 0 };
  const alarm = new Alarm({
    now: () => clock.wall,
    monotonic: () => {
      clock.looks += 1;
      return clock.time;
    },
  });
  return { clock, alarm };
}

describe('an alarm', () => {
  it('is due when the monotonic clock says so, whatever the wall clock does', () => {
    const { clock, alarm } = set();
    alarm.set(100);
    for (const [wall, time, due] of [
      [0, 0, false],
      [1_000_000, 99, false],
      [-5, 100, true],
      [-4, 101, true],
    ] as const) {
      Object.assign(clock, { wall, time });
      expect(alarm.due).toBe(due);
    }
  });

  it('looks at the monotonic clock once in a millisecond, and not at all while it is not set', () => {
    const { clock, alarm } = set();
    for (let i = 0; i < 10; i += 1) expect(alarm.due).toBe(false);
    expect(clock.looks).toBe(0);
    alarm.set(5);
    for (let i = 0; i < 1_000; i += 1) {
      clock.wall = Math.floor(i / 100);
      expect(alarm.due).toBe(false);
    }
    expect(clock.looks).toBe(10);
  });

  it('that is set anew is looked at anew', () => {
    const { clock, alarm } = set();
    alarm.set(5);
    expect(alarm.due).toBe(false);
    clock.time = 7;
    expect(alarm.due).toBe(false);
    alarm.set(6);
    expect(alarm.due).toBe(true);
  });
});
