import { describe, expect, it } from 'vitest';
import { canonicalJson } from './canonical-json.js';
import { decodeRecord, encodeRecord } from './entry.js';
import {
  checkAddress,
  checkRoot,
  DEFAULT_ROOT,
  dataFolder,
  HASHED_PATHS,
  nodesFolder,
  placeName,
  sha256,
} from './layout.js';
import {
  encodePair,
  encodeScalar,
  fromScalar,
  type SharedValue,
  scalarId,
  TypedText,
  toScalar,
} from './scalar-codec.js';

const SET = '215093cfae6bc7965544f1f1776e728c3a39d0bf841baabbfecd8a137c02d23d';

describe("Monastery's layout", () => {
  it('has nodes and data below its default root', () => {
    expect(DEFAULT_ROOT).toBe('/monastery/root');
    expect(nodesFolder(DEFAULT_ROOT)).toBe('/monastery/root/nodes');
    expect(dataFolder(DEFAULT_ROOT)).toBe('/monastery/root/data');
  });

  it("names an element by the hash of its value: the specification's own example", () => {
    const name = HASHED_PATHS.element('my element value');
    expect(`/monastery/root/data/${SET}/${name}`).toBe(
      `/monastery/root/data/${SET}/189fb5f1dac9ba3069955431b129191c96e4f8c7dec6bcb2101f641a833afbf5`,
    );
  });

  it('names the places of a collision chain with a suffix that counts from 1', () => {
    expect([0, 1, 2].map((n) => placeName(SET, n))).toEqual([SET, `${SET}-1`, `${SET}-2`]);
  });

  it('hashes the canonical JSON of name and scope', () => {
    expect(HASHED_PATHS.datum({ scope: 'prod', name: 'Größe "x"\n' }, 'map')).toBe(
      sha256('{"name":"Größe \\"x\\"\\n","scope":"prod"}'),
    );
    expect(HASHED_PATHS.datum({ name: 'limits', scope: '' }, 'map')).toBe(
      sha256('{"name":"limits","scope":""}'),
    );
  });

  it('writes canonical JSON as RFC 8785 does', () => {
    expect(
      canonicalJson({
        b: [56, 1e30, 4.5, 0.002, 1e-27],
        a: { '\u20ac': 1, '\r': 2, '1': null },
        c: undefined,
      }),
    ).toBe('{"a":{"\\r":2,"1":null,"\u20ac":1},"b":[56,1e+30,4.5,0.002,1e-27]}');
    expect(() => canonicalJson({ at: Number.NaN })).toThrow(TypeError);
  });

  it('refuses a root and an address that cannot be, by name', () => {
    expect(() => checkRoot('monastery')).toThrow(/root: expected an absolute path of ZooKeeper/);
    expect(() => checkRoot('/')).toThrow(/root/);
    expect(() => checkAddress({ name: '', scope: '' })).toThrow(
      'name: expected a text of at least one character, got ""',
    );
    expect(() => checkAddress({ name: 'a', scope: '\ud800' })).toThrow(/scope: expected a text/);
  });
});

describe('the documents', () => {
  it("are the specification's own for a scalar and a map entry", () => {
    expect(JSON.parse(encodeScalar(toScalar(3)))).toEqual({ type: 'Integer', value: '3' });
    expect(encodeScalar(toScalar(3))).toBe('{"type":"Integer","value":"3"}');
    expect(JSON.parse(encodePair(toScalar('Virginia'), toScalar(10)))).toEqual({
      key: { type: 'String', value: 'Virginia' },
      value: { type: 'Integer', value: '10' },
    });
  });

  it('have the address, kind and lifespan of a datum, and its scalar', () => {
    const record = {
      address: { name: 'limit', scope: 'prod' },
      kind: 'scalar',
      lifespan: 'persistent',
    } as const;
    const text = encodeRecord(record, toScalar(true));
    expect(text).toBe(
      '{"address":{"name":"limit","scope":"prod"},"kind":"scalar","lifespan":"persistent","type":"Boolean","value":"true"}',
    );
    expect(decodeRecord(Buffer.from(text))).toEqual({
      ...record,
      scalar: { type: 'Boolean', value: 'true' },
    });
    for (const other of [
      '',
      '[]',
      '{}',
      'null',
      '{"address":null,"kind":"set","lifespan":"persistent"}',
      '{"kind":"tree"}',
    ])
      expect(decodeRecord(Buffer.from(other))).toBeUndefined();
  });

  const pairs: readonly (readonly [SharedValue, string, string])[] = [
    ['', 'String', ''],
    ['"quoted"', 'String', '"quoted"'],
    [true, 'Boolean', 'true'],
    [-(2 ** 31), 'Integer', '-2147483648'],
    [2 ** 31, 'Long', '2147483648'],
    [Number.MAX_SAFE_INTEGER, 'Long', '9007199254740991'],
    [0.1, 'Double', '0.1'],
    [2 ** 53, 'Double', '9007199254740992'],
    [Number.NaN, 'Double', 'NaN'],
    [Number.NEGATIVE_INFINITY, 'Double', '-Infinity'],
    [-0, 'Double', '-0.0'],
    [2n ** 70n, 'BigInteger', '1180591620717411303424'],
    [{ b: [1, 'x'], a: null }, 'Json', '{"a":null,"b":[1,"x"]}'],
    [[], 'Json', '[]'],
    [new Uint8Array([0, 255, 16]), 'Bytes', 'AP8Q'],
    [null, 'Null', 'null'],
    [new TypedText('BigDecimal', '1.10'), 'BigDecimal', '1.10'],
    [new TypedText('Instant', '2020-01-01T00:00:00Z'), 'Instant', '2020-01-01T00:00:00Z'],
  ];
  it.each(pairs)('%o is a %s and comes back', (value, type, text) => {
    expect(toScalar(value)).toEqual({ type, value: text });
    expect(fromScalar({ type, value: text })).toEqual(value);
  });

  it('keep what a type does not allow, or JavaScript cannot hold, as text', () => {
    const kept = [
      ['Integer', 'three'],
      ['Long', '9223372036854775807'],
      ['Boolean', 'TRUE'],
      ['Double', ''],
      ['Double', '0x10'],
      ['Json', '{'],
      ['Json', '1'],
      ['Bytes', 'a'],
      ['toString', 'x'],
    ] as const;
    for (const [type, value] of kept) expect(fromScalar({ type, value })).toEqual(new TypedText(type, value));
    expect(fromScalar({ type: 'Double', value: '1.0E21' })).toBe(1e21);
  });

  it('distinguish values of different types that have one text', () => {
    const ids = [3, '3', 3n].map((value) => scalarId(toScalar(value)));
    expect(new Set(ids).size).toBe(3);
    expect(scalarId({ type: 'a', value: 'bc' })).not.toBe(scalarId({ type: 'ab', value: 'c' }));
  });

  it('refuse what no scalar can hold', () => {
    expect(() => toScalar('\ud800')).toThrow(/value: expected a text without lone surrogates/);
    expect(() => toScalar({ at: undefined, n: 1n })).toThrow(/value: expected/);
  });
});
