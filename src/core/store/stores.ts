import { checkPlain, type Kinds, maybe, OBJECT, TEXT } from '../base/arguments.js';
import { ConfigError } from '../base/errors.js';
import { AZURE } from './azure/azure-kind.js';
import { DYNAMODB } from './dynamodb/dynamodb-kind.js';
import type { EtcdAccess } from './etcd/etcd-access.js';
import { ETCD } from './etcd/etcd-kind.js';
import { FILE } from './file/file-kind.js';
import { GCS } from './gcs/gcs-kind.js';
import { MEMORY } from './memory/memory-kind.js';
import { POSTGRES } from './postgres/postgres-kind.js';
import { S3 } from './s3/s3-kind.js';
import type { ParsedUrl, StoreKind } from './store-kind.js';

/**
 * Every kind of store, in the order of messages. A new one is a line here, and a field of `StoreAccess` if it has
 * settings of its own.
 */
export const STORES: readonly StoreKind[] = [S3, AZURE, GCS, DYNAMODB, ETCD, POSTGRES, FILE, MEMORY];

/** The kind of the store with this URL; undefined for a store of the user's own. */
export function storeKindOf(url: string): StoreKind | undefined {
  const [, scheme = ''] = /^(\w+):/.exec(url) ?? [];
  return STORES.find(({ schemes }) => schemes.includes(scheme));
}

/** How to reach a store. Each option is for the kinds of stores that have it. */
export interface StoreAccess {
  /**
   * The http(s) URL of the server of a cloud's store: an S3-compatible one, another cloud of the same kind, an
   * emulator. @default the cloud's
   */
  readonly endpoint?: string | undefined;
  /** The region of an S3 bucket. @default what the AWS environment says */
  readonly region?: string | undefined;
  /** Access to an etcd cluster. @default without user and client certificate */
  readonly etcd?: EtcdAccess | undefined;
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
  if (kind === undefined)
    return fail(/^[./]/.test(value) ? `file:${value} for that folder, or ${STORE_FORMS}` : STORE_FORMS);
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
