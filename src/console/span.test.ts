import { expect, it } from 'vitest';
import { formatOffset, formatSetting, formatShort, formatSpan } from './span.js';

it.each([
  [-5, '0.0 s'],
  [3_290, '3.2 s'],
  [9_999, '9.9 s'],
  [48_900, '48 s'],
  [60_000, '1 min'],
  [245_000, '4 min 5 s'],
  [7_800_000, '2 h 10 min'],
  [273_600_000, '3 d 4 h'],
])('a span of %d ms is %s', (ms, text) => expect(formatSpan(ms)).toBe(text));

it('a setting is told exactly', () => expect([500, 1_500, 15_000].map(formatSetting)).toEqual(['500 ms', '1.5 s', '15 s']));

it('a short span has three digits at most', () =>
  expect([0.42, 18.4, 999, 1_250].map(formatShort)).toEqual(['0.4 ms', '18 ms', '999 ms', '1.3 s']));

it.each([
  [[0, 0], 'the same as this host’s'],
  [[-420, 580], 'within 580 ms of this host’s'],
  [[2_000, 3_000], '2 s to 3 s ahead of this host’s'],
  [[-40, -12], '12 ms to 40 ms behind this host’s'],
] as const)('an offset of %j is %s', (offset, text) => expect(formatOffset(offset)).toBe(text));
