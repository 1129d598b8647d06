import { describe, expect, it } from 'vitest';
import { parseStoreUrl } from './store-url.js';
import { ACCESS, STORES, storeKindOf } from './stores.js';

describe('the list of stores', () => {
  it('has no scheme twice', () => {
    const all = STORES.flatMap(({ schemes }) => schemes);
    expect(all).toEqual([...new Set(all)]);
  });

  it.each(STORES)('shows a URL that $schemes.0 takes', (kind) => {
    expect(parseStoreUrl(kind.form).kind).toBe(kind);
    expect(storeKindOf(kind.form)).toBe(kind);
  });

  it.each(STORES.flatMap(({ own, schemes }) => (own ? [{ ...own, schemes }] : [])))(
    'has settings of $option by the names that the command line and the library read them by',
    ({ option, settings, schemes, tlsScheme }) => {
      expect(ACCESS).toHaveProperty(option);
      for (const [name, row] of Object.entries(settings)) {
        expect(name).toMatch(new RegExp(`^${option}-`));
        expect(row.option).toMatch(new RegExp(`^${option}\\.[a-zA-Z]+$`));
      }
      if (tlsScheme === undefined) return;
      expect(schemes).toContain(tlsScheme);
      for (const part of ['ca', 'cert', 'key']) expect(settings).toHaveProperty(`${option}-${part}`);
    },
  );
});
