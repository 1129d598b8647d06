import { describe, expect, it } from 'vitest';
import { ConfigError } from '../base/errors.js';
import { requiredBy } from './optional-package.js';

const missing = (name: string) => import(name).catch(requiredBy('gs://leases', name));

describe('a package that a store needs', () => {
  it('is named with the way to install it, where it is missing', async () => {
    const loading = missing('no-such-package-of-a-store');
    await expect(loading).rejects.toThrow(ConfigError);
    await expect(loading).rejects.toThrow(
      'store: expected the package no-such-package-of-a-store next to nodelease for this store (npm install no-such-package-of-a-store), got "gs://leases"',
    );
  });

  it('is not taken for missing where one of its imports is', async () => {
    const broken = Object.assign(new Error("Cannot find package 'other'"), { code: 'ERR_MODULE_NOT_FOUND' });
    await expect(Promise.reject(broken).catch(requiredBy('gs://leases', 'some-package'))).rejects.toBe(
      broken,
    );
  });
});
