import { describe, expect, it } from 'vitest';
import { ConfigError } from '../base/errors.js';
import { formatId, type IdFormat, parseId } from './id-format.js';
import { cluster16, decodeId, idLayout, snowflake } from './id-layout.js';

const IDS = [
  0n,
  1n,
  31n,
  32n,
  2n ** 32n - 1n,
  2n ** 32n,
  0x0193_1234_5678_9abcn,
  115_823_472_349_872_129n,
  2n ** 63n,
  2n ** 64n - 1n,
];
const FORMATS: readonly IdFormat[] = ['decimal', 'base32', 'hex'];

describe('an id as a text', () => {
  it.each(FORMATS)('is read as what was written: %s', (format) => {
    for (const id of IDS) expect(parseId(formatId(id, format), format)).toBe(id);
  });

  it('needs no format to be read, as long as its time is before the year 4000', () => {
    for (const format of FORMATS)
      for (const id of IDS.filter((each) => each < 2n ** 60n)) expect(parseId(formatId(id, format))).toBe(id);
  });

  it('has a fixed width, and sorts as the ids do, in base 32 and hex', () => {
    for (const [format, width] of [
      ['base32', 13],
      ['hex', 16],
    ] as const) {
      const texts = IDS.map((id) => formatId(id, format));
      expect(texts.map(({ length }) => length)).toEqual(IDS.map(() => width));
      expect([...texts].sort()).toEqual(texts);
    }
    expect(formatId(2n ** 64n - 1n, 'base32')).toBe('FZZZZZZZZZZZZ');
    expect(formatId(1n, 'base32')).toBe('0000000000001');
  });

  it('is read in base 32 as people write it', () => {
    expect(parseId('00000000000iL')).toBe(33n);
    expect(parseId(' oooooooooooZz ')).toBe(1023n);
    expect(parseId('00000000000zO')).toBe(31n * 32n);
  });

  it.each([
    '',
    'x',
    '-1',
    '1.5',
    '18446744073709551616',
    '0x12',
    '00000000000U',
    '000000000000U',
    '0000000000000U',
    'GZZZZZZZZZZZZ',
    '0193123456789ab',
    '0193123456789abg',
    '1e3',
    '९',
    '000000000000ſ',
    '000000000000ß',
  ])('is refused: %j', (text) => {
    expect(() => parseId(text)).toThrow(ConfigError);
    expect(() => parseId(text)).toThrow(
      'id: expected a 64-bit id: decimal, 13 base-32 digits, or 16 hex digits',
    );
  });

  it.each([
    ['12', 'hex'],
    ['0000000000001', 'hex'],
    ['00193123456789abc', 'hex'],
    ['0193123456789abc0', 'hex'],
    ['x12', 'decimal'],
    ['12x', 'decimal'],
    ['000000000001', 'base32'],
    ['12', 'octal'],
  ])('is refused in another format than the given one: %s as %s', (text, format) => {
    expect(() => parseId(text, format as IdFormat)).toThrow(ConfigError);
  });

  it('is shown in the error, a long one in part', () => {
    expect(() => parseId('x'.repeat(80))).toThrow(`got "${'x'.repeat(80)}"`);
    expect(() => parseId('x'.repeat(81))).toThrow(`got "${'x'.repeat(80)}…"`);
  });

  it.each([-1n, 2n ** 64n])('is not written where it has no 64 bits: %s', (id) => {
    expect(() => formatId(id, 'hex')).toThrow(
      `id: expected a bigint of 64 bits that is not negative, got ${id}`,
    );
  });

  it('is not written in an unknown format', () => {
    expect(() => formatId(1n, 'octal' as IdFormat)).toThrow(
      'format: expected decimal, base32 or hex, got "octal"',
    );
  });
});

describe('a decoded id', () => {
  it('shows time, node and sequence', () => {
    const id = (1_795_219_197_534n << 16n) | (5n << 9n) | 0x143n;
    expect(decodeId(id, cluster16(9))).toEqual({
      timeMs: 1_795_219_197_534,
      node: 0x143,
      group: 1,
      index: 0x43,
      nodeId: 315,
      sequence: 5,
    });
    expect(decodeId(String(id), cluster16(9)).sequence).toBe(5);
    expect(decodeId(0n, cluster16(9))).toMatchObject({ timeMs: 0, node: 0, sequence: 0 });
    const tweet = (1_000n << 22n) | (7n << 12n) | 4_095n;
    expect(decodeId(tweet, snowflake())).toEqual({
      timeMs: 1_288_834_975_657,
      node: 7,
      group: 0,
      index: 7,
      nodeId: undefined,
      sequence: 4_095,
    });
  });

  it('is refused if the layout has no such id', () => {
    expect(() => decodeId(2n ** 63n, snowflake())).toThrow(
      'id: expected an id of at most 63 bits, as layout snowflake has, got 9223372036854775808',
    );
    expect(() => decodeId(-1n, cluster16(8))).toThrow(ConfigError);
    expect(() => decodeId(12 as unknown as bigint, cluster16(8))).toThrow(ConfigError);
  });
});

describe('a layout', () => {
  it.each([
    [() => cluster16(7), 'width: expected a whole number from 8 to 16, got 7'],
    [() => cluster16(8.5), 'width: expected a whole number from 8 to 16'],
    [
      () => idLayout({ timeBits: 41, nodeBits: 10, sequenceBits: 10 }),
      'layout: expected bits of time, sequence and node that make 63 or 64, got "41 + 10 + 10 = 61"',
    ],
    [
      () => idLayout({ timeBits: 49, nodeBits: 10, sequenceBits: 5 }),
      'layout.timeBits: expected a whole number from 34 to 48, got 49',
    ],
    [
      () => idLayout({ timeBits: 42, nodeBits: 0, sequenceBits: 22 }),
      'layout.nodeBits: expected a whole number from 1 to 16, got 0',
    ],
    [
      () => idLayout({ timeBits: 34, nodeBits: 6, sequenceBits: 23 }),
      'layout.sequenceBits: expected a whole number from 0 to 22, got 23',
    ],
    [() => snowflake(-1), 'layout.epochMs: expected a whole number from 0 to 281474976710655'],
    [() => snowflake(1.5), 'layout.epochMs: expected a whole number from 0'],
    [
      () => snowflake(2 ** 48),
      'layout.epochMs: expected a whole number from 0 to 281474976710655 (milliseconds since the Unix epoch), got 281474976710656',
    ],
    [
      () => idLayout({ ...{ epoch: 1 }, timeBits: 41, nodeBits: 10, sequenceBits: 12 }),
      '(the nearest is epochMs), got "epoch"',
    ],
    [
      () => idLayout({ timeBits: 41, nodeBits: 10, sequenceBits: 12, lowest: 'time' as never }),
      "layout.lowest: expected 'node' or 'sequence', got \"time\"",
    ],
  ])('is refused if its bits are invalid', (make, message) => {
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(message);
  });
});
