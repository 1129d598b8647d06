import { describe, expect, it } from 'vitest';
import { checkBasePath, DEFAULT_BASE_PATH, instancePath, servicePath } from './service-path.js';

describe('the paths of services', () => {
  it('are Curator’s', () => {
    expect(servicePath(DEFAULT_BASE_PATH, 'orders')).toBe('/services/orders');
    expect(instancePath('/a/b', 'orders', '%2F é')).toBe('/a/b/orders/%2F é');
    expect(instancePath('/', 'orders', 'one')).toBe('/orders/one');
  });

  it.each(['/', '/services', '/a/b c/é'])('may lie below %j', (path) => {
    expect(() => checkBasePath(path)).not.toThrow();
  });

  it.each(['', 'services', '/services/', '//', '/a//b', '/a/../b'])('may not lie below %j', (path) => {
    expect(() => checkBasePath(path, '--base-path')).toThrow(
      /^--base-path: expected an absolute path such as \/services/,
    );
  });

  it.each(['', '.', '..', 'a/b', 'a\u0007'])('have no step %j', (name) => {
    expect(() => servicePath('/services', name)).toThrow(/service: expected/);
    expect(() => instancePath('/services', 'orders', name)).toThrow(/instance id: expected/);
  });
});
