import { describe, expect, it } from 'vitest';
import { decodeItems, encodeItems } from './queue-items.js';

const buffers = (...texts: string[]) => texts.map((text) => Buffer.from(text));
/** As Curator 5.4 was seen to write them. */
const ONE = '0001000101000000036f6e6502';
const THREE = '0001000101000000036f6e65010000000374776f0100000005746872656502';

describe("an item's bytes", () => {
  it("are Curator's, for one and for several", () => {
    expect(encodeItems(buffers('one')).toString('hex')).toBe(ONE);
    expect(encodeItems(buffers('one', 'two', 'three')).toString('hex')).toBe(THREE);
    expect(decodeItems(Buffer.from(THREE, 'hex'))?.map(String)).toEqual(['one', 'two', 'three']);
    expect(decodeItems(encodeItems([]))).toEqual([]);
    expect(decodeItems(encodeItems(buffers('')))).toEqual(buffers(''));
  });

  it.each([
    ['none', ''],
    ['another version', '0001000201000000036f6e6502'],
    ['another opcode', '0001000103000000036f6e6502'],
    ['an end that is missing', ONE.slice(0, -2)],
    ['a length beyond the end', '00010001010000ffff6f6e6502'],
    ['a negative length', '0001000101ffffffff6f6e6502'],
    ['half a length', '00010001010000'],
  ])('are refused with %s', (_, hex) => {
    expect(decodeItems(Buffer.from(hex, 'hex'))).toBeUndefined();
  });
});
