import { type Kinds, maybe, OBJECT, TEXT } from '../base/arguments.js';
import type { Setting } from '../settings/setting.js';
import { AZURE } from './azure/azure-kind.js';
import { ETCD } from './etcd/etcd-kind.js';
import { FILE } from './file/file-kind.js';
import { GCS } from './gcs/gcs-kind.js';
import { MEMORY } from './memory/memory-kind.js';
import { S3 } from './s3/s3-kind.js';
import type { StoreKind } from './store-kind.js';

// A new store is a line here; a field of StoreAccess, where it has options of its own.
const ALL = [S3, AZURE, GCS, ETCD, FILE, MEMORY];

/** Every kind of store, in the order of messages. */
export const STORES: readonly StoreKind[] = ALL;

/** The kind of the store with this URL; undefined for a store of the user's own. */
export function storeKindOf(url: string): StoreKind | undefined {
  const [, scheme = ''] = /^(\w+):/.exec(url) ?? [];
  return STORES.find(({ schemes }) => schemes.includes(scheme));
}

type RowsOf<Kind> = Kind extends { readonly own: { readonly settings: infer Rows } } ? keyof Rows : never;

/** The settings that one kind of store has alone. */
export const OWN_SETTINGS: Readonly<Record<RowsOf<(typeof ALL)[number]>, Setting>> = Object.assign(
  {},
  ...STORES.map(({ own }) => own?.settings),
);

/** The fields of `StoreAccess`, with what they may be. */
export const ACCESS: Kinds = {
  endpoint: maybe(TEXT),
  region: maybe(TEXT),
  ...Object.fromEntries(STORES.flatMap(({ own }) => (own ? [[own.option, maybe(OBJECT)]] : []))),
};

/** `a, b or c`. */
export function listed(texts: readonly string[], word = 'or'): string {
  return texts.join(', ').replace(/, ([^,]*)$/, ` ${word} $1`);
}
