import { describe, expect, it } from 'vitest';
import { ConfigError } from '../base/errors.js';
import { variablesOf } from './environment.js';
import { checkKey, checkValue, contextsOf, overlap, parseNodeRange, rangesOf, revisionOf, revisionPath, rootOf } from './layout.js';

describe('the contexts', () => {
  it("are Spring's, the most specific first", () => {
    expect(contextsOf({ app: 'testApp', profile: 'dev' })).toEqual(['testApp,dev', 'testApp', 'application,dev', 'application']);
    expect(contextsOf({ app: 'testApp' })).toEqual(['testApp', 'application']);
    expect(contextsOf({ app: 'application', profile: 'dev' })).toEqual(['application,dev', 'application']);
    expect(contextsOf({ app: 'application' })).toEqual(['application']);
  });

  it('have names that stand for one context each', () => {
    for (const app of ['', '.', '.nodelease', 'a/b', 'a,b', 'a@nodes=1', 'a\u0000']) expect(() => contextsOf({ app })).toThrow(ConfigError);
    expect(() => contextsOf({ app: 'a', profile: 'b,c' })).toThrow(
      'profile: expected a name without ",", "@nodes=" and a "." at its beginning, got "b,c"',
    );
    expect(rootOf({ app: 'a' })).toBe('/config');
    for (const root of ['config', '/', '/config/', '/a//b'])
      expect(() => rootOf({ app: 'a', root })).toThrow(/^root: expected an absolute path/);
  });
});

describe('ranges of node ids', () => {
  it('are written in one way', () => {
    expect(parseNodeRange('0-3', 'nodes')).toEqual({ from: 0, to: 3, text: '0-3' });
    expect(parseNodeRange('5', 'nodes').text).toBe('5');
    expect(parseNodeRange('05-5', 'nodes').text).toBe('5');
    for (const text of ['', '-', '3-', '-3', '3-1', 'a', '1-2-3', '1000001'])
      expect(() => parseNodeRange(text, 'nodes')).toThrow(ConfigError);
  });

  it('are found beside their context, others left out', () => {
    const names = ['shop', 'shop@nodes=10-20', 'shop@nodes=2', 'shop@nodes=02', 'shop@nodes=x', 'shop,dev@nodes=1', 'ashop@nodes=1'];
    expect(rangesOf('shop', names).map(({ text }) => text)).toEqual(['2', '10-20']);
  });

  it('overlap where a node id is in both', () => {
    const overlaps = (a: string, b: string) => overlap(parseNodeRange(a, ''), parseNodeRange(b, ''));
    expect([overlaps('0-3', '3-5'), overlaps('0-9', '4'), overlaps('4', '0-9')]).toEqual([true, true, true]);
    expect([overlaps('0-3', '4-5'), overlaps('7', '6')]).toEqual([false, false]);
  });
});

describe('keys and values', () => {
  it('are those that a path can stand for, and UTF-8', () => {
    for (const key of ['a', 'db.pool-size', 'servers[0]', 'mit Ümlaut', 'a=b']) checkKey(key);
    for (const key of ['', '.', 'a.', '.a', 'a..b', 'a/b', 'a.\u0007', 'a.\u{1f600}']) expect(() => checkKey(key)).toThrow(ConfigError);
    checkValue('a', 'grüß 😀\n');
    expect(() => checkValue('a', 'x\udc00')).toThrow('a: expected a text of whole characters');
    expect(() => checkValue('a', 3 as unknown as string)).toThrow('a: expected a text');
  });

  it('are variables of the environment, unless two keys have the same', () => {
    const variables = (...keys: string[]) => [...variablesOf(new Map(keys.map((key) => [key, 'x']))).keys()];
    expect(variables('db.pool-size', 'servers[0].url', '1st')).toEqual(['DB_POOL_SIZE', 'SERVERS_0_URL', '_1ST']);
    expect(() => variables('a.b', 'A_B')).toThrow(/^A_B: expected another variable than a\.b has/);
    expect(() => variablesOf(new Map([['a', '\0']]))).toThrow(ConfigError);
  });
});

it('the znode of a revision is found by its number', () => {
  expect(revisionPath('/config', 'shop,dev', 12)).toBe('/config/.nodelease/history/shop,dev/rev-0000000012');
  expect([revisionOf('rev-0000000012'), revisionOf('rev-12'), revisionOf('other')]).toEqual([12, undefined, undefined]);
});
