import { describe, expect, it } from 'vitest';
import { formatDuration, formatSetting, jsonLine } from './text.js';

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

describe('a duration', () => {
  it.each([
    [0, '0.0s'],
    [99, '0.0s'],
    [59_999, '59.9s'],
    [60_000, '1m00s'],
    [3_599_999, '59m59s'],
    [7_800_000, '2h10m'],
    [273_600_000, '3d4h'],
  ])('of %d ms is shown as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe('JSON for programs', () => {
  it.each(['\u009b2J', '\u001b[2J', '\u007f', '\u202edrow', '\u2028', 'a\nb', '\u{e0041}'])(
    'shows nothing that a terminal could take for a command: %j',
    (text) => {
      const line = jsonLine({ [text]: [text, 'plain', 'Zürich 🍇'] });
      expect(line).toMatch(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+\n$/u);
      expect(line).toContain('Zürich 🍇');
      expect(JSON.parse(line)).toEqual({ [text]: [text, 'plain', 'Zürich 🍇'] });
    },
  );

  it('escapes as JSON does', () => {
    expect(jsonLine('\u009b')).toBe('"\\u009b"\n');
  });
});
