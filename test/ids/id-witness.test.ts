import { describe, expect, it } from 'vitest';
import { cluster16, type IdLayout, snowflake } from '../../src/core/id/index.js';
import { IdBitmap } from './id-bitmap.js';
import { IdWitness } from './id-witness.js';

const FROM_MS = 1_700_000_000_000;
const NODE = 9;

const bitmapOf = (layout: IdLayout) => IdBitmap.create({ layout, nodes: 3, fromMs: FROM_MS, spanMs: 100 });

/** An id, put together without the product. */
function idOf(
  { epochMs, sequenceBits, nodeBits, lowest }: IdLayout,
  ms: number,
  sequence: number,
  node = NODE,
): bigint {
  const low = lowest === 'node' ? (sequence << nodeBits) | node : (node << sequenceBits) | sequence;
  return (BigInt(FROM_MS + ms - epochMs) << BigInt(sequenceBits + nodeBits)) | BigInt(low);
}

function see(witness: IdWitness, ids: readonly bigint[]): void {
  witness.see(BigUint64Array.from(ids), ids.length);
}

describe.each([
  ['cluster16(8)', cluster16(8)],
  ['snowflake()', snowflake()],
])('the proof, with layout %s', (_, layout) => {
  const places = Array.from({ length: 20_000 }, (_, place) =>
    idOf(layout, Math.floor(place / 200), place % 200),
  );

  it('finds nothing wrong with ids that all are different', () => {
    const bitmap = bitmapOf(layout);
    for (const node of [8, 9, 10]) {
      const witness = new IdWitness(bitmap, node);
      see(
        witness,
        places.map((_, place) => idOf(layout, Math.floor(place / 200), place % 200, node)),
      );
      expect(witness.faults).toEqual({ repeated: 0, disordered: 0, foreign: 0, outside: 0, examples: [] });
      expect(witness.seen).toBe(20_000);
    }
  });

  it('finds every single id that two generators have made, and reports the first ones', () => {
    const bitmap = bitmapOf(layout);
    see(new IdWitness(bitmap, NODE), places);
    for (const place of [0, 31, 32, 199, 200, 12_345, 19_999]) {
      const other = new IdWitness(bitmap, NODE);
      see(other, [places[place] as bigint]);
      expect(other.faults).toMatchObject({ repeated: 1, examples: [places[place]] });
    }
    const all = new IdWitness(bitmap, NODE);
    see(all, places);
    expect(all.faults).toMatchObject({ repeated: 20_000, examples: places.slice(0, 3) });
  });

  it('finds an id that one generator makes twice, at once or later', () => {
    const [a, b, c] = places as [bigint, bigint, bigint];
    const witness = new IdWitness(bitmapOf(layout), NODE);
    see(witness, [a, b, b]);
    expect(witness.faults).toMatchObject({ repeated: 1, disordered: 1, examples: [b] });
    see(witness, [c, a]);
    expect(witness.faults).toMatchObject({ repeated: 2, disordered: 2, examples: [b, a] });
  });

  it("finds ids out of order, of another node than their maker's, and of no time that was looked at", () => {
    const witness = new IdWitness(bitmapOf(layout), NODE);
    see(witness, [idOf(layout, 5, 3), idOf(layout, 5, 2)]);
    see(witness, [idOf(layout, 4, 7)]);
    expect(witness.faults).toMatchObject({ disordered: 2, repeated: 0 });
    see(witness, [idOf(layout, 6, 0, 10), idOf(layout, 7, 0)]);
    expect(witness.faults).toMatchObject({ foreign: 1, outside: 0 });
    see(witness, [idOf(layout, 100, 0), idOf(layout, 101, 0)]);
    expect(witness.faults).toMatchObject({ outside: 2, repeated: 0 });
  });
});

it('a layout whose ids share words between nodes is refused', () => {
  expect(() => bitmapOf(cluster16(12))).toThrow(RangeError);
});
