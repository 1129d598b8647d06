import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../core/base/errors.js';
import { payloadJson } from './payload-codec.js';

describe('a payload', () => {
  test.each<[string, unknown]>([
    ['an object', { nodeId: 7, version: 12, zones: ['a', null], deep: { on: true } }],
    ['an object of a class of Java’s', { '@class': 'java.util.TreeMap', a: 1 }],
    ['a text', 'text'],
    ['a number', -0.5],
    ['the greatest integer that every reader reads', Number.MAX_SAFE_INTEGER],
    ['a boolean', false],
    ['nothing', null],
    ['what Java writes for a list', ['java.util.ArrayList', [1, 2]]],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 })],
    ['the same object twice', [{ a: 1 }].map((one) => ({ one, two: one }))[0]],
    ['a "@class" that is not at the top', { a: { '@class': 5 } }],
  ])('may be %s', (_, value) => {
    expect(payloadJson(value)).toEqual(value);
  });

  test('may have keys of any name', () => {
    const value = JSON.parse('{"__proto__":{"a":1},"constructor":2}') as unknown;
    expect(JSON.stringify(payloadJson(value))).toBe('{"__proto__":{"a":1},"constructor":2}');
  });

  test('may come of another realm', () => {
    expect(payloadJson(runInNewContext('({ a: [1] })'))).toEqual({ a: [1] });
  });

  test('may say itself how it is written', () => {
    expect(payloadJson({ since: new Date(0), by: new URL('http://host/') })).toEqual({
      since: '1970-01-01T00:00:00.000Z',
      by: 'http://host/',
    });
  });

  const itself: Record<string, unknown> = {};
  itself.again = [itself];

  test.each<[string, unknown, string]>([
    ['nothing at all', undefined, 'instance.payload: expected something that JSON can hold, got undefined'],
    [
      'undefined within',
      { a: [{ b: undefined }] },
      'instance.payload.a[0].b: expected something that JSON can hold, got undefined',
    ],
    ['a hole', { a: Object.assign([1], { length: 3 }) }, 'instance.payload.a[1]: expected something'],
    [
      'a function',
      { a: () => 1 },
      'instance.payload.a: expected something that JSON can hold, got a function',
    ],
    ['a symbol', Symbol('x'), 'instance.payload: expected something that JSON can hold, got a symbol'],
    ['a symbol as a key', { [Symbol('x')]: 1 }, 'instance.payload: expected texts as keys'],
    ['a BigInt', { a: 5n }, 'instance.payload.a: expected something that JSON can hold, got a bigint'],
    ['NaN', { a: Number.NaN }, 'instance.payload.a: expected a finite number: JSON has no other, got NaN'],
    ['an infinite number', Number.POSITIVE_INFINITY, 'instance.payload: expected a finite number'],
    [
      'itself within',
      itself,
      'instance.payload.again[0]: expected something that JSON can hold, got an object that contains itself',
    ],
    [
      'an integer that others could read as another one',
      JSON.parse('{"a":[{"b":9007199254740993}]}'),
      'instance.payload.a[0].b: expected a whole number from -(2^53 - 1) to 2^53 - 1, or a greater one as a text, got 9007199254740992',
    ],
    ['a negative one', -(2 ** 53), 'instance.payload: expected a whole number from'],
    [
      'a map',
      { a: new Map([['b', 1]]) },
      'instance.payload.a: expected plain objects, arrays and values (or a toJSON method), got a Map',
    ],
    ['bytes', new Uint8Array(2), 'instance.payload: expected plain objects'],
    [
      'a bare array',
      [1, 2],
      'instance.payload: expected an object, a text, a number or a boolean (Java reads no array without its class), got an array',
    ],
    ['an empty array', [], 'instance.payload: expected an object'],
    ['two texts', ['a', 'b'], 'instance.payload: expected an object'],
    [
      'a class that is no text',
      { '@class': 5 },
      'instance.payload.@class: expected the name of a class that every Java reader has, got 5',
    ],
    ['an empty class', { '@class': '' }, 'instance.payload.@class: expected the name'],
    ['a class with spaces', { '@class': ' java.util.TreeMap' }, 'instance.payload.@class: expected the name'],
    [
      'too many levels',
      JSON.parse(`${'{"a":'.repeat(1_000)}1${'}'.repeat(1_000)}`),
      'instance.payload: expected fewer than 1000 levels of objects and arrays, got more',
    ],
  ])('that would be lost, or that Java cannot read, is refused: %s', (_, value, message) => {
    expect(() => payloadJson(value)).toThrow(ConfigError);
    expect(() => payloadJson(value)).toThrow(message);
  });
});
