import { beforeEach, expect, it, vi } from 'vitest';
import { suspendProof, systemClock, systemRandom } from './system.js';

/**
 * The true time since the machine's start, what of it was spent suspended, and how far the wall clock was
 * set.
 */
let time: { uptime: number; suspended: number; set: number };
let readings: number;
/** Happens while the uptime is read. */
let whileReading: () => void;
let monotonic: () => number;

beforeEach(() => {
  time = { uptime: 50_000, suspended: 0, set: 1e12 };
  readings = 0;
  whileReading = () => undefined;
  monotonic = suspendProof({
    wall: () => Math.floor(time.uptime + time.set),
    running: () => time.uptime - time.suspended,
    uptime: () => {
      readings += 1;
      whileReading();
      return Math.floor(time.uptime / 10) * 10;
    },
  });
});

const goOn = (ms: number) => {
  time.uptime += ms;
};
const suspend = (ms: number) => {
  time.uptime += ms;
  time.suspended += ms;
};

/** As exact as the uptime's steps. */
const expectRight = () => {
  const now = monotonic();
  expect(now).toBeLessThanOrEqual(time.uptime);
  expect(now).toBeGreaterThan(time.uptime - 10);
};

it('is exact where the machine is never suspended, and reads the uptime ten times a second', () => {
  for (let i = 0; i < 10_000; i += 1) {
    goOn(0.1);
    expect(monotonic()).toBe(time.uptime);
  }
  expect(readings).toBe(10);
});

it('shows a suspension from the next reading on, with its length', () => {
  for (const ms of [30, 60_000, 12 * 3_600_000]) {
    goOn(1);
    const before = monotonic();
    suspend(ms);
    expect(monotonic() - before).toBeGreaterThan(ms - 11);
    expectRight();
  }
});

it('does not follow a wall clock that is set', () => {
  for (const ms of [-3_600_000, -5, 5, 3_600_000]) {
    goOn(1);
    time.set += ms;
    expect(monotonic()).toBe(time.uptime);
  }
});

it('shows a suspension within 100 ms if the wall clock is set back by the same time', () => {
  monotonic();
  suspend(5_000);
  time.set -= 5_000;
  goOn(100);
  expectRight();
});

it('shows a suspension that comes while it reads', () => {
  whileReading = () => suspend(5_000);
  goOn(100);
  expect(monotonic()).toBeLessThanOrEqual(time.uptime);
  whileReading = () => undefined;
  expectRight();
});

it('is right after a pause of the process while it reads', () => {
  suspend(5_000);
  whileReading = () => goOn(20_000);
  expectRight();
  whileReading = () => undefined;
  goOn(1);
  expectRight();
});

it('never goes back', () => {
  let last = 0;
  for (let i = 0; i < 5_000; i += 1) {
    // Steps of many sizes, in no simple order.
    goOn((i * 7.3) % 17);
    if (i % 13 === 0) suspend((i * 31) % 400);
    if (i % 29 === 0) time.set -= (i * 17) % 300;
    whileReading = () => (i % 3 === 0 ? goOn(i % 11) : undefined);
    const now = monotonic();
    expect(now).toBeGreaterThanOrEqual(last);
    expect(now).toBeLessThanOrEqual(time.uptime);
    last = now;
  }
});

it('the monotonic clock of this machine does not follow a test that replaces the clocks, and puts them back', () => {
  const before = systemClock.monotonic();
  vi.useFakeTimers();
  try {
    vi.advanceTimersByTime(60_000);
    systemClock.monotonic();
  } finally {
    vi.useRealTimers();
  }
  expect(systemClock.monotonic() - before).toBeLessThan(60_000);
});

it('random bytes are as many as they are asked for, also more than are drawn at once', () => {
  expect([0, 12, 4_097, 12].map((bytes) => systemRandom.hex(bytes).length)).toEqual([0, 24, 8_194, 24]);
});

it('sleeps longer than a timer of Node can, and is woken all that time', async () => {
  vi.useFakeTimers();
  try {
    const YEAR_MS = 365 * 86_400_000;
    const over = vi.fn();
    const stop = new AbortController();
    const ended = [systemClock.sleep(YEAR_MS), systemClock.sleep(Number.POSITIVE_INFINITY, stop.signal)];
    for (const each of ended) each.then(over, over);
    await vi.advanceTimersByTimeAsync(YEAR_MS - 1);
    expect(over).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(over).toHaveBeenCalledOnce();
    stop.abort('stopped');
    await expect(ended[1]).rejects.toBe('stopped');
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
