import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../core/base/errors.js';
import { type FormatName, fileFormat } from './file-formats.js';

const parse = (format: FormatName, text: string) =>
  Object.fromEntries(fileFormat(format).parse(text, 'file'));
const format = (name: FormatName, properties: Readonly<Record<string, string>>) =>
  fileFormat(name).format(new Map(Object.entries(properties)));

/** What is hard to write in one of the formats. */
const HARD = {
  plain: 'x',
  empty: '',
  ' key with: = #!\\': 'a',
  leading: '  two spaces',
  trailing: 'space ',
  lines: 'one\ntwo\r\n\tthree\f',
  slashes: 'C:\\dir\\',
  quotes: `it's "so" $HOME \`x\``,
  unicode: 'grüß 日本 😀 \u0000\u2028',
};

describe('the format of properties', () => {
  it("is that of Java's Properties", () => {
    const text = [
      '# comment \\',
      '! another = one',
      'Truth = Beauty',
      ' Truth2:Beauty',
      'Truth3\t\t\t:Beauty',
      'fruits    apple, banana, pear, \\',
      '          cantaloupe, \\',
      '',
      'cheeses',
      '__proto__=own',
      'a\\=b\\:c\\ d = 1 = 2 ',
      'path=C:\\\\dir\\\\',
      'odd=C:\\dir\\u00e4\\',
      '   # kept',
      'nothing=',
      '=no key',
      '\\',
      '',
      'twice=1',
      'twice=2',
      'end=last\\',
    ].join('\n');
    const expected = {
      Truth: 'Beauty',
      Truth2: 'Beauty',
      Truth3: 'Beauty',
      fruits: 'apple, banana, pear, cantaloupe, ',
      cheeses: '',
      ['__proto__']: 'own',
      'a=b:c d': '1 = 2 ',
      path: 'C:\\dir\\',
      odd: 'C:dirä# kept',
      nothing: '',
      '': 'no key',
      twice: '2',
      end: 'last',
    };
    expect(parse('properties', text)).toEqual(expected);
    expect(parse('properties', text.replaceAll('\n', '\r\n'))).toEqual(expected);
    expect(parse('properties', text.replaceAll('\n', '\r'))).toEqual(expected);
    expect(() => parse('properties', 'a=\\u12')).toThrow('file: expected \\u with four hex digits');
  });

  it('brings back whatever is written, in ASCII', () => {
    const text = format('properties', HARD);
    expect(text).toMatch(/^[\x20-\x7e\n]*$/);
    expect(parse('properties', text)).toEqual(HARD);
    expect(format('properties', { 'a b': ' c d', ü: 'ß' })).toBe('a\\ b=\\ c d\n\\u00fc=\\u00df\n');
  });
});

describe('the format JSON', () => {
  it('brings back whatever is written, and takes nested objects', () => {
    expect(parse('json', format('json', HARD))).toEqual(HARD);
    expect(parse('json', '{"db":{"url":"x","ports":[1,{"a":true}]},"big":12345678901234567890}')).toEqual({
      'db.url': 'x',
      'db.ports[0]': '1',
      'db.ports[1].a': 'true',
      big: '12345678901234567890',
    });
    const deep = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
    for (const wrong of ['', '[', '[]', '"a"', '{"a":null}', deep])
      expect(() => parse('json', wrong)).toThrow(ConfigError);
  });
});

describe('the format of env files', () => {
  it('takes what shells and others write', () => {
    const text = `# comment\n\nA=1\nexport DB_URL="pg://a\\"b"\n  C_D = 'it is # so'\nE=x # y\nF=\nG='two\nlines'\nH=a#b\n`;
    const expected = {
      a: '1',
      'db.url': 'pg://a"b',
      'c.d': 'it is # so',
      e: 'x',
      f: '',
      g: 'two\nlines',
      h: 'a#b',
    };
    expect(parse('env', text)).toEqual(expected);
    expect(parse('env', text.replaceAll('\n', '\r\n'))).toEqual(expected);
    expect(() => parse('env', 'A=1\nwhat is this\n')).toThrow(
      'file: expected lines of the form NAME=value, got "what is this"',
    );
  });

  it('names variables as keys, brings their values back, and refuses two keys with one name', () => {
    expect(format('env', { 'db.pool-size': '10', 'a[0]': 'x y', '1st': '' })).toBe(
      "DB_POOL_SIZE=10\nA_0='x y'\n_1ST=\n",
    );
    const { ' key with: = #!\\': _, unicode: __, lines: ___, ...values } = HARD;
    const more = { ...values, lines: 'one\ntwo', windows: 'one\r\ntwo' };
    expect(parse('env', format('env', more))).toEqual(more);
    expect(() => format('env', { 'a.b': '1', 'a-b': '2' })).toThrow(
      'a-b: expected another variable than a.b has, got "A_B"',
    );
  });
});

describe('the format', () => {
  it('follows from the name of the file, unless it is named', () => {
    const formatOf = (file: string, name?: FormatName) =>
      Object.keys(Object.fromEntries(fileFormat(name, file).parse('{"a":\n"b"}', 'f')));
    expect(formatOf('X.JSON')).toEqual(['a']);
    expect(formatOf('x.json')).toEqual(['a']);
    expect(formatOf('x.properties')).toContain('{"a"');
    expect(formatOf('x.env', 'json')).toEqual(['a']);
    expect(fileFormat(undefined, '/app/.env')).toBe(fileFormat('env'));
    expect(() => fileFormat(undefined, 'application.yml')).toThrow(
      'FILE: expected properties, JSON or env, not YAML, got "application.yml"',
    );
  });
});
