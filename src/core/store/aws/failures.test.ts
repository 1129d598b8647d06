import { expect, it } from 'vitest';
import { unusedProxy } from './failures.js';

it('a proxy that is set and not used is named', () => {
  expect(unusedProxy({})).toBe('');
  expect(unusedProxy({ https_proxy: 'http://proxy:3128' })).toBe(
    ' (https_proxy is set, and the store uses no proxy)',
  );
});
