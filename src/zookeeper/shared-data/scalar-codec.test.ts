import { describe, expect, it } from 'vitest';
import type { ScalarType } from './scalar-codec.js';
import { parseScalar, SCALAR_TYPES, scalarProblem, toScalar } from './scalar-codec.js';

describe('the text of a value on the command line', () => {
  it.each([
    ['String', '', ''],
    ['Boolean', 'false', 'false'],
    ['Integer', '+007', '7'],
    ['Integer', '-2147483648', '-2147483648'],
    ['Long', '9223372036854775807', '9223372036854775807'],
    ['Double', '-1.5e3', '-1.5e3'],
    ['BigInteger', '00123456789012345678901234567890', '123456789012345678901234567890'],
    ['BigDecimal', '1.10', '1.10'],
    ['Json', '{ "b": 1, "a": [true] }', '{"a":[true],"b":1}'],
    ['Bytes', 'AP8Q', 'AP8Q'],
    ['Null', 'null', 'null'],
  ] as const)('%s: %s is written as %s', (type, text, value) => {
    expect(parseScalar(type, text)).toMatchObject({ type, value });
  });

  it.each<[ScalarType, string]>([
    ['Boolean', 'yes'],
    ['Integer', '2147483648'],
    ['Integer', '1.0'],
    ['Integer', ''],
    ['Long', '9223372036854775808'],
    ['Double', 'one'],
    ['BigInteger', '0x10'],
    ['BigDecimal', '1,10'],
    ['Json', '1'],
    ['Json', '{'],
    ['Json', '["\\ud800"]'],
    ['Bytes', 'a'],
    ['Null', ''],
  ])('%s: %s is refused', (type, text) => {
    expect(parseScalar(type, text)).toBeUndefined();
    expect(scalarProblem({ type, value: text })).toBe(`its text is no ${type}`);
  });

  it('has no problem with what the library writes, and one with a type that it does not know', () => {
    expect(SCALAR_TYPES).toHaveLength(10);
    expect(scalarProblem({ type: 'Double', value: '-Infinity' })).toBeUndefined();
    expect(scalarProblem({ type: 'toString', value: 'x' })).toBe('unknown type toString');
  });
});

describe('a value of a program', () => {
  it.each<[string, unknown]>([
    ['a Date', new Date(0)],
    ['a Date within', { at: new Date(0) }],
    ['a Map', new Map([['a', 1]])],
    ['a Set within', [new Set([1])]],
    ['bytes within', { bytes: new Uint8Array([1]) }],
    ['a hole', new Array(2)],
  ])('that JSON does not hold, %s, is refused instead of written as another one', (_, value) => {
    expect(() => toScalar(value as object as readonly unknown[])).toThrow(
      /value: expected .* what JSON holds/,
    );
  });

  it('may be an object of a class, or without a prototype', () => {
    class Point {
      readonly x = 1;
    }
    expect(toScalar([new Point(), Object.assign(Object.create(null), { y: 2 })])).toEqual({
      type: 'Json',
      value: '[{"x":1},{"y":2}]',
    });
  });
});
