import { expect, test } from 'vitest';
import { clockOffsets, faketimeEnvironment } from './faketime.js';

const NEAR_MS = 10_000;

test.each([10, -10] as const)(
  'a host at %i hours has a wrong wall clock and a right monotonic one, in its children too',
  async (hours) => {
    const env = await faketimeEnvironment(hours > 0 ? `+${hours}h` : `-${-hours}h`);
    const { wallMs, monotonicMs } = await clockOffsets({ ...process.env, ...env });
    expect(Math.abs(wallMs - hours * 3_600_000)).toBeLessThan(NEAR_MS);
    expect(Math.abs(monotonicMs)).toBeLessThan(NEAR_MS);
  },
);
