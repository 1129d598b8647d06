import { describe, expect, it } from 'vitest';
import { checkKnown, checkPlain, splitList } from './arguments.js';

describe('a text from outside', () => {
  it.each([
    ['file:leases\r', 'no carriage return'],
    ['file:lea\u0000ses', 'no control character in it (U+0000)'],
    ['file:lea\nses', 'no control character in it (U+000A)'],
    ['a\u0085b', 'no control character in it (U+0085)'],
    ['\ufefffile:leases', 'no byte order mark'],
    ['file:\ufeffleases', 'no byte order mark'],
    ['file:leases ', 'no blank at its start or end,'],
    [' file:leases', 'no blank at its start or end,'],
    ['file: leases', 'no blank at its start or end,'],
    ['s3:// leases', 'no blank at its start or end,'],
    ['file:leases\u00a0', 'no blank at its start or end (U+00A0)'],
    ['\u200bfile:leases', 'no blank at its start or end (U+200B)'],
    ['file:leases\u2060', 'no blank at its start or end (U+2060)'],
    ['"file:leases"', 'no quotes around it'],
    ["'file:leases'", 'no quotes around it'],
    ['file:"leases"', 'no quotes around it'],
    ['digest:"me:secret"', 'no quotes around it'],
    ['\u201cleases\u201d', 'no quotes around it'],
    ['""', 'no quotes around it'],
  ])('is refused as %j, with what is wrong with it', (text, expected) => {
    expect(() => checkPlain(text, 'NODELEASE_STORE')).toThrow(`NODELEASE_STORE: expected ${expected}`);
  });

  it.each([
    'file:/var/lib/node lease',
    'file:./"a" and "b".d',
    'it\u2019s',
    '12"',
    'a: b',
    'm\u00fcller \u2764\ufe0f',
    '\u0645\u06cc\u200c\u062e',
    '',
  ])('may be %j', (text) => expect(() => checkPlain(text, 'sticky')).not.toThrow());

  it('is not shown where it is a secret', () => {
    expect(() => checkPlain('root:s3cret ', 'etcd.auth', '…')).toThrow(/got "…"$/);
  });
});

it('options that a copy would lose are refused, such as a getter of a class, and others of a class are not', () => {
  class Settings {
    readonly own = 1;
    get timeoutMs() {
      return 0;
    }
    get unrelated() {
      return 0;
    }
  }
  expect(() => checkKnown(new Settings(), ['own', 'timeoutMs'])).toThrow(
    'options: expected only own properties, not a getter of a class, got "timeoutMs"',
  );
  expect(() => checkKnown(new Settings(), ['own', 'other'])).not.toThrow();
});

describe('a list with commas', () => {
  it('has items without blanks at their ends, and no semicolons', () => {
    expect(splitList('a b,c', 'x')).toEqual(['a b', 'c']);
    for (const text of ['a, b', 'a ,b', 'a;b', 'a,"b"'])
      expect(() => splitList(text, 'x'), text).toThrow('x: ');
  });
});
