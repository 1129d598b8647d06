import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../../../test/support/package-root.js';
import { chiSquare, chiSquareLimit } from '../../../test/support/service-instances.js';
import { shardOf } from './shard-of.js';

const COUNTS = [64, 1_000, 4_096];

/** The vectors of the protocol, for programs in other languages. */
function vectors(): [key: string | bigint, shards: number[]][] {
  const page = readFileSync(join(packageRoot, 'docs/design/shards.md'), 'utf8');
  const rows = page.matchAll(
    /^\| (?:`([^`]*)`|the id (\d+)|(`` \(empty\))) \| (\d+) \| (\d+) \| (\d+) \|$/gm,
  );
  return [...rows].map(([, text, id, , ...shards]) => [
    id === undefined ? (text ?? '') : BigInt(id),
    shards.map(Number),
  ]);
}

describe('the shard of a key', () => {
  it('is that of the vectors in the protocol', () => {
    const table = vectors();
    expect(table).toHaveLength(7);
    expect(table.map(([key]) => [key, COUNTS.map((count) => shardOf(key, count))])).toEqual(table);
  });

  it('of a bigint is its remainder, also of a negative one', () => {
    expect([shardOf(130n, 64), shardOf(-1n, 64)]).toEqual([2, 63]);
    for (let key = -(2n ** 64n); key < 2n ** 65n; key += 1_234_567_890_123_456_789n)
      for (const count of [1, 1_000, 4_095])
        expect(shardOf(key, count)).toBe(Number(BigInt.asUintN(64, key) % BigInt(count)));
  });

  it('of a text depends only on its UTF-8, wherever that leaves ASCII', () => {
    const texts = [
      '',
      'a',
      '\0\t~',
      '\x7f',
      '\x80',
      'aé',
      'éa',
      'aβ漢b',
      '😀z',
      'z😀',
      'a\ud83d',
      '\ude00\ud83d',
    ];
    for (const text of texts) {
      const fnv = Buffer.from(text).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5);
      const once = Math.imul(fnv ^ (fnv >>> 16), 0x85ebca6b);
      const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
      expect(shardOf(text, 1_009)).toBe(((twice ^ (twice >>> 16)) >>> 0) % 1_009);
    }
  });

  it('is refused for a key that is neither, and for a number of shards out of range', () => {
    expect(() => shardOf(5 as never, 4)).toThrow(/^key: expected a text, or a bigint such as a unique id/);
    for (const count of [0, 1.5, 4_097])
      expect(() => shardOf('key', count)).toThrow(/^count: expected a whole number from 1 to 4096/);
  });

  it('spreads keys that differ only in their number', () => {
    const counts = Array.from({ length: 64 }, () => 0);
    for (let key = 0; key < 64_000; key += 1)
      counts[shardOf(`customer-${key}`, 64)] = (counts[shardOf(`customer-${key}`, 64)] ?? 0) + 1;
    expect(chiSquare(counts, Array(64).fill(1_000))).toBeLessThan(chiSquareLimit(63));
  });
});
