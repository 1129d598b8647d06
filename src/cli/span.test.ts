import { describe, expect, it } from 'vitest';
import { formatSetting, formatSpan } from './span.js';

describe('a setting', () => {
  it.each([
    [0, '0s'],
    [250, '250ms'],
    [1_500, '1.5s'],
    [15_000, '15s'],
    [60_000, '60s'],
    [90_000, '90s'],
    [300_000, '5m'],
    [86_400_000, '24h'],
  ])('of %d ms is shown exactly, as %s', (ms, text) => {
    expect(formatSetting(ms)).toBe(text);
  });
});

describe('a span', () => {
  it.each([
    [0, '0.0s'],
    [99, '0.0s'],
    [59_999, '59.9s'],
    [60_000, '1m00s'],
    [3_599_999, '59m59s'],
    [7_800_000, '2h10m'],
    [273_600_000, '3d4h'],
  ])('of %d ms is shown as %s', (ms, text) => {
    expect(formatSpan(ms)).toBe(text);
  });
});
