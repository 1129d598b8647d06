import { expect, test } from 'vitest';
import { payloadJson } from './payload-codec.js';

test('a payload may be deep and full at the same time without holding up everything else', () => {
  const blocks = `[${'{},'.repeat(280_000)}{}]`;
  const value: unknown = JSON.parse(`${'{"a":'.repeat(990)}${blocks}${'}'.repeat(990)}`);
  // Alone of their kind these take as long, without the levels around them.
  const took = (payload: unknown) => {
    const begun = performance.now();
    payloadJson(payload);
    return performance.now() - begun;
  };
  const flat = { a: JSON.parse(blocks) as unknown };
  const least = (payload: unknown) => Math.min(...Array.from({ length: 3 }, () => took(payload)));
  expect(least(value)).toBeLessThan(4 * least(flat) + 50);
});
