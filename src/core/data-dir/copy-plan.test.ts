import { describe, expect, it } from 'vitest';
import { leadsOut } from './copy-plan.js';
import { exclusionOf } from './exclude.js';

describe('a symbolic link', () => {
  it.each([
    ['a', 'b'],
    ['a', './b//c'],
    ['d/a', '../b'],
    ['d/e/a', '../../b/c'],
    ['d/a', '..'],
    ['a', 'no-such-file'],
    ['a', '.'],
  ])('stays in the tree: %s -> %s', (path, target) => {
    expect(leadsOut(path, target)).toBe(false);
  });

  it.each([
    ['a', '/etc/passwd'],
    ['a', '/'],
    ['a', '..'],
    ['a', '../v4/b'],
    ['d/a', '../../b'],
    // Through another link, to a directory further up, this would lead out.
    ['a', 'd/e/link-to-top/../b'],
    ['d/a', '../e/../b'],
    ['d/e/a', 'link-to-top/../b'],
  ])('leads out of it, or might: %s -> %s', (path, target) => {
    expect(leadsOut(path, target)).toBe(true);
  });
});

describe('an exclude pattern', () => {
  it.each([
    ['runtime', ['runtime', 'a/runtime'], ['runtimes', 'runtime2', 'a/runtime/b']],
    ['*.tmp', ['a.tmp', 'd/.tmp'], ['atmp', 'a.tmp.old']],
    ['logs/old*', ['logs/old', 'logs/older'], ['old', 'a/logs/old', 'logs/old/x']],
    ['a+(b)', ['a+(b)'], ['aab']],
    ['*', ['a', 'b/c'], []],
    ['a*b*c', ['abc', 'a-b-c', 'd/abbcc'], ['acb', 'abcd', 'ab', 'a']],
    ['ab*ba', ['abba', 'd/abxba'], ['aba', 'abxb']],
    ['**a', ['a', 'ba', 'a\na'], ['ab']],
    ['a/*/c*', ['a/b/c', 'a/x.y/c1'], ['a/b/d/c', 'a/c', 'b/a/b/c']],
  ])('%s matches %j, and not %j', (pattern, matching, others) => {
    const isExcluded = exclusionOf([pattern], '--data-exclude');
    expect([matching.filter(isExcluded), others.filter(isExcluded)]).toEqual([matching, []]);
  });

  // Backtracking to each star would take longer than the age of the universe.
  it('takes no time that grows with its stars', () => {
    const isExcluded = exclusionOf([`${'*a'.repeat(60)}*b`], '--data-exclude');
    expect([isExcluded('a'.repeat(250)), isExcluded(`${'a'.repeat(250)}b`)]).toEqual([false, true]);
  });

  it.each(['', '/a', 'a/', 'a//b', './a', '../a'])('is refused when it is %j', (pattern) => {
    expect(() => exclusionOf(['ok', pattern], '--data-exclude')).toThrow(
      `--data-exclude: expected a name such as runtime or *.tmp, or a path from the top such as logs/old, got "${pattern}"`,
    );
  });
});
