import { expect, it } from 'vitest';
import { jsonLine } from './json-line.js';

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
