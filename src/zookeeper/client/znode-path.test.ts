import { describe, expect, it } from 'vitest';
import { checkZnodeName, parentOf, pathProblem, withinChroot } from './znode-path.js';

describe('the name of a znode', () => {
  it.each(['a', 'orders:v1', '..a', '...', 'zookeeper', 'grün', 'a b', '0a'])('may be %j', (name) => {
    expect(() => checkZnodeName(name, '--service')).not.toThrow();
    expect(pathProblem(`/x/${name}/y`)).toBeUndefined();
  });

  it.each([
    '',
    '/',
    'a/b',
    '.',
    '..',
    'a\n',
    '\u0000',
    '\u007f',
    '\u009f',
    '\ud83d\ude00',
    '\ue000',
    '\ufff0',
    '\uffff',
  ])('may not be %j', (name) => {
    expect(() => checkZnodeName(name, '--service')).toThrow(`--service: expected a name without "/"`);
  });
});

describe('a path', () => {
  it.each(['', 'a', 'a/b', '/a/', '//', '//a', '/a//b', '/.', '/a/..', '/a/../b', '/a\u0001'])(
    '%j is refused',
    (path) => {
      expect(pathProblem(path)).toBeTypeOf('string');
    },
  );

  it('is put below the chroot, the root being the chroot itself', () => {
    expect(withinChroot('', '/a/b')).toBe('/a/b');
    expect(withinChroot('', '/')).toBe('/');
    expect(withinChroot('/c', '/a/b')).toBe('/c/a/b');
    expect(withinChroot('/c', '/')).toBe('/c');
  });

  it('has a parent, up to the root', () => {
    expect(parentOf('/a/b')).toBe('/a');
    expect(parentOf('/a')).toBe('/');
    expect(parentOf('/')).toBe('/');
  });
});
