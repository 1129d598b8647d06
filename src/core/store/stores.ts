import { type Kinds, maybe, OBJECT, TEXT } from '../base/arguments.js';
import { AZURE } from './azure/azure-kind.js';
import { ETCD } from './etcd/etcd-kind.js';
import { FILE } from './file/file-kind.js';
import { GCS } from './gcs/gcs-kind.js';
import { MEMORY } from './memory/memory-kind.js';
import { S3 } from './s3/s3-kind.js';
import type { StoreKind } from './store-kind.js';

/**
 * Every kind of store, in the order of messages. A new one is a line here, and a field of `StoreAccess` if it has
 * settings of its own.
 */
export const STORES: readonly StoreKind[] = [S3, AZURE, GCS, ETCD, FILE, MEMORY];

/** The kind of the store with this URL; undefined for a store of the user's own. */
export function storeKindOf(url: string): StoreKind | undefined {
  const [, scheme = ''] = /^(\w+):/.exec(url) ?? [];
  return STORES.find(({ schemes }) => schemes.includes(scheme));
}

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
