import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../core/base/errors.js';
import type { MultiOperation } from '../client/zookeeper.js';
import { checkSize, planEdit, propertiesOf } from './context-tree.js';
import { merged } from './read-contexts.js';

const treeOf = (values: Readonly<Record<string, string>>) =>
  new Map(Object.entries(values).map(([path, value], version) => [path, { value, version }]));

/**
 * The content after the operations, which are carried out as a server does: strictly, one after the other.
 */
function carriedOut(
  tree: ReturnType<typeof treeOf>,
  operations: readonly MultiOperation[],
): Record<string, string> {
  const now = new Map([...tree].map(([path, { value }]) => [`/c${path}`, value]));
  const childrenOf = (path: string) => [...now.keys()].filter((other) => other.startsWith(`${path}/`));
  for (const each of operations) {
    const before = tree.get(each.path.slice(2));
    if ('version' in each && each.version !== before?.version) throw new Error(`bad version ${each.path}`);
    if (each.type === 'create') {
      if (
        now.has(each.path) ||
        (each.path !== '/c' && !now.has(each.path.slice(0, each.path.lastIndexOf('/'))))
      )
        throw new Error(`create ${each.path}`);
      now.set(each.path, String(each.data));
    } else if (each.type === 'set') now.set(each.path, String(each.data));
    else if (each.type === 'remove') {
      if (childrenOf(each.path).length > 0) throw new Error(`not empty ${each.path}`);
      now.delete(each.path);
    }
  }
  return Object.fromEntries([...now].map(([path, value]) => [path.slice(2), value]).sort());
}

const edited = (values: Readonly<Record<string, string>>, edit: Readonly<Record<string, string | null>>) => {
  const tree = treeOf(values);
  return carriedOut(tree, planEdit('/c', tree, new Map(Object.entries(edit))));
};

describe('the properties of a tree', () => {
  it('are what Spring reads: an empty znode counts where it has no children', () => {
    const tree = treeOf({
      '': 'ignored',
      '/a': '',
      '/a/b': '1',
      '/a/c': '',
      '/d': '2',
      '/d/e': '3',
      '/f.g': '4',
    });
    expect(Object.fromEntries(propertiesOf(tree))).toEqual({
      'a.b': '1',
      'a.c': '',
      d: '2',
      'd.e': '3',
      'f.g': '4',
    });
  });
});

describe('an edit', () => {
  it('makes parents, and the context itself', () => {
    expect(edited({}, { 'a.b.c': '1', a: '2' })).toEqual({ '': '', '/a': '2', '/a/b': '', '/a/b/c': '1' });
  });

  it('takes away what it empties, and nothing else', () => {
    const tree = { '': '', '/a': '', '/a/b': '', '/a/b/c': '1', '/other': '' };
    expect(edited(tree, { 'a.b.c': null })).toEqual({ '': '', '/other': '' });
    expect(edited(tree, { 'a.b.c': null, 'a.d': '2' })).toEqual({
      '': '',
      '/a': '',
      '/a/d': '2',
      '/other': '',
    });
    expect(edited({ '': '', '/a': '1', '/a/b': '2' }, { a: null })).toEqual({
      '': '',
      '/a': '',
      '/a/b': '2',
    });
    expect(edited({ '': '', '/a': '1', '/a/b': '2' }, { 'a.b': null })).toEqual({ '': '', '/a': '1' });
    expect(edited({ '': '', '/a': '1', '/a/b': '2' }, { a: null, 'a.b': null })).toEqual({ '': '' });
    expect(edited({ '': '', '/a': '1' }, { a: null, b: '' })).toEqual({ '': '', '/b': '' });
  });

  it('changes a key at each of its paths', () => {
    expect(edited({ '': '', '/a.b': '1', '/a': '', '/a/b': '2' }, { 'a.b': '3' })).toEqual({
      '': '',
      '/a': '',
      '/a.b': '3',
      '/a/b': '3',
    });
    expect(edited({ '': '', '/a.b': '1', '/a': '', '/a/b': '2' }, { 'a.b': null })).toEqual({ '': '' });
  });

  it('of random keys leaves the properties that it should, whatever the content was', () => {
    let seed = 1;
    const dice = (sides: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % sides;
    };
    const keys = ['a', 'b', 'a.a', 'a.b', 'b.a', 'a.a.a', 'a.a.b', 'b.a.a', 'c.a.a.a'];
    let refused = 0;
    let tree = treeOf({});
    for (let n = 0; n < 3_000; n += 1) {
      const edit = new Map(
        Array.from({ length: 1 + dice(4) }, () => [
          keys[dice(keys.length)] as string,
          [null, '', '1', '2'][dice(4)] as string | null,
        ]),
      );
      const wanted = new Map<string, string | null>([...propertiesOf(tree), ...edit]);
      try {
        tree = treeOf(carriedOut(tree, planEdit('/c', tree, edit)));
        expect(Object.fromEntries(propertiesOf(tree))).toEqual(
          Object.fromEntries([...wanted].filter(([, value]) => value !== null)),
        );
        // Nothing is left that holds no property.
        const leaves = [...tree.keys()].filter(
          (path) => path !== '' && ![...tree.keys()].some((other) => other.startsWith(`${path}/`)),
        );
        for (const leaf of leaves)
          expect(propertiesOf(tree).has(leaf.slice(1).replaceAll('/', '.'))).toBe(true);
      } catch (error) {
        // An empty value above other keys is the only thing that cannot be expressed.
        if (!(error instanceof ConfigError)) throw error;
        const all = [...wanted].filter(([, value]) => value !== null);
        expect(
          all.some(([key, value]) => value === '' && all.some(([other]) => other.startsWith(`${key}.`))),
        ).toBe(true);
        refused += 1;
      }
    }
    expect(refused).toBeGreaterThan(100);
    expect(refused).toBeLessThan(2_500);
  });

  it('that ZooKeeper could not take, or not list, is refused', () => {
    const big = { type: 'create', path: '/c/a', data: 'x'.repeat(999_800), mode: 'persistent' } as const;
    expect(() => checkSize([big])).toThrow(/^changes: expected at most 1000000 bytes in one revision/);
    expect(() => checkSize([{ ...big, data: 'x'.repeat(999_700) }])).not.toThrow();
    const many = treeOf(
      Object.fromEntries([
        ['', ''],
        ...Array.from({ length: 9_999 }, (_, n) => [`/${'k'.repeat(95)}${String(n).padStart(4, '0')}`, '1']),
      ]),
    );
    expect(() => planEdit('/c', many, new Map([['k', '1']]))).toThrow(
      /at most 1000000 bytes of keys in one context/,
    );
    expect(() => planEdit('/c', many, new Map([[`${'k'.repeat(95)}0000`, null]]))).not.toThrow();
  });
});

describe('merging', () => {
  it('takes each key from the first layer that has it', () => {
    const layer = (context: string, properties: Readonly<Record<string, string>>) => ({
      context,
      tree: new Map(Object.entries(properties).map(([key, value]) => [`/${key}`, { value }])),
    });
    const values = merged([
      layer('x@nodes=1', { b: '1' }),
      layer('x', { a: '2', b: '2' }),
      layer('application', { a: '3', c: '' }),
    ]);
    expect([...values]).toEqual([
      ['a', { value: '2', context: 'x' }],
      ['b', { value: '1', context: 'x@nodes=1' }],
      ['c', { value: '', context: 'application' }],
    ]);
  });
});
