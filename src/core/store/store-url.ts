import { ConfigError } from '../base/errors.js';
import { checkPlain } from '../base/plain-text.js';
import type { ParsedUrl, StoreKind } from './store-kind.js';
import { listed, STORES, storeKindOf } from './stores.js';

/** What the URL of a store may be, for messages. */
export const STORE_FORMS = listed(STORES.map(({ form }) => form));

/**
 * Takes the URL of a store apart.
 *
 * @param setting named in the error, as the user wrote it
 * @throws {@link ConfigError} for every other value, with what is wrong with it
 */
export function parseStoreUrl(value: string, setting = 'store'): ParsedUrl & { readonly kind: StoreKind } {
  const fail = (expected: string): never => {
    throw new ConfigError(setting, value, expected);
  };
  checkPlain(value, setting);
  const kind = storeKindOf(value);
  if (kind === undefined) return fail(STORE_FORMS);
  const scheme = value.slice(0, value.indexOf(':'));
  const root = `${scheme}${kind.form.includes('://') ? '://' : ':'}`;
  if (!value.startsWith(root)) fail(STORE_FORMS);
  const parts = kind.parse(value.slice(root.length), { scheme, setting, fail });
  return { kind, url: value.replace(/\/+$/, ''), ...parts };
}

/** Checks what a program gives as a store: a URL, or an object. @throws {ConfigError} */
export function checkStore(store: unknown, setting: string): void {
  if (typeof store === 'string') parseStoreUrl(store, setting);
  else if (!('read' in Object(store)))
    throw new ConfigError(setting, store, `${STORE_FORMS}, or a store of yours`);
}
