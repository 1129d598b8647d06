import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../core/base/errors.js';
import {
  checkProperty,
  contextsOf,
  contextsOfNode,
  overridesOf,
  revisionOf,
  revisionPath,
  rootOf,
} from './layout.js';

describe('the contexts', () => {
  it("are Spring's, the most specific first", () => {
    expect(contextsOf({ app: 'testApp', profile: 'dev' })).toEqual([
      'testApp,dev',
      'testApp',
      'application,dev',
      'application',
    ]);
    expect(contextsOf({ app: 'testApp' })).toEqual(['testApp', 'application']);
    expect(contextsOf({ app: 'application', profile: 'dev' })).toEqual(['application,dev', 'application']);
    expect(contextsOf({ app: 'application' })).toEqual(['application']);
  });

  it('have names that mean one context each', () => {
    for (const app of ['', '.', '.nodelease', 'a/b', 'a,b', 'a@nodes=1', 'a\u0000'])
      expect(() => contextsOf({ app })).toThrow(ConfigError);
    expect(() => contextsOf({ app: 'a', profile: 'b,c' })).toThrow(
      'profile: expected a name without ",", "@nodes=" and a "." at its beginning, got "b,c"',
    );
    expect(rootOf({ app: 'a' })).toBe('/config');
    for (const root of ['config', '/', '/config/', '/a//b'])
      expect(() => rootOf({ app: 'a', root })).toThrow(/^root: expected an absolute path/);
  });
});

describe('overrides for node ids', () => {
  it('are written in one way', () => {
    expect(['0-3', '5', '05-5'].map((nodes) => overridesOf('shop', nodes, 'nodes'))).toEqual([
      ...['shop@nodes=0-3', 'shop@nodes=5', 'shop@nodes=5'],
    ]);
    for (const text of ['', '-', '3-', '-3', '3-1', 'a', '1-2-3', '1000001'])
      expect(() => overridesOf('shop', text, '--nodes')).toThrow(
        /^--nodes: expected a node id or a range of them/,
      );
  });

  it('come before their context, the narrowest range first, others left out', () => {
    const names = [
      'shop',
      'shop@nodes=2-20',
      'shop@nodes=1-3',
      'shop@nodes=2',
      'shop@nodes=02',
      'shop@nodes=x',
      'ashop@nodes=2',
      'b@nodes=2-4',
    ];
    expect(contextsOfNode(['shop', 'b'], names, 2)).toEqual([
      ...['shop@nodes=2', 'shop@nodes=1-3', 'shop@nodes=2-20', 'shop', 'b@nodes=2-4', 'b'],
    ]);
    expect(contextsOfNode(['shop', 'b'], names, 21)).toEqual(['shop', 'b']);
    expect(contextsOfNode(['shop'], ['shop@nodes=3-5', 'shop@nodes=2-4'], 4)).toEqual([
      'shop@nodes=2-4',
      'shop@nodes=3-5',
      'shop',
    ]);
  });
});

it('keys are what a path can mean, and values are UTF-8', () => {
  for (const key of ['a', 'db.pool-size', 'servers[0]', 'mit Ümlaut', 'a=b']) checkProperty(key, null);
  for (const key of ['', '.', 'a.', '.a', 'a..b', 'a/b', 'a.\u0007', 'a.\u{1f600}'])
    expect(() => checkProperty(key, '1')).toThrow(ConfigError);
  checkProperty('a', 'grüß 😀\n');
  expect(() => checkProperty('a', 'x\udc00')).toThrow('a: expected a text of whole characters');
  expect(() => checkProperty('a', 3 as unknown as string)).toThrow('a: expected a text');
});

it('the znode of a revision is found by its number', () => {
  expect(revisionPath('/config', 'shop,dev', 12)).toBe('/config/.nodelease/history/shop,dev/rev-0000000012');
  expect([revisionOf('rev-0000000012'), revisionOf('rev-12'), revisionOf('other')]).toEqual([
    12,
    undefined,
    undefined,
  ]);
});
