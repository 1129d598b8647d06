import { fileURLToPath } from 'node:url';
import { ConfigError } from '../base/errors.js';
import { type EtcdStoreUrl, parseEtcd } from './etcd/etcd-url.js';
import {
  type AzureStoreUrl,
  type GcsStoreUrl,
  parseAzure,
  parseGcs,
  parseS3,
  type S3StoreUrl,
} from './object-store-url.js';

export type { EtcdStoreUrl } from './etcd/etcd-url.js';
export type { AzureStoreUrl, GcsStoreUrl, S3StoreUrl } from './object-store-url.js';

/** A folder of this machine. */
export interface FileStoreUrl {
  readonly kind: 'file';
  readonly url: string;
  /** As given: relative to the working directory, or absolute. */
  readonly directory: string;
}

/** The memory of this process. */
export interface MemoryStoreUrl {
  readonly kind: 'memory';
  readonly url: string;
}

/** What the URL of a store may be, for messages. */
export const STORES =
  's3://bucket/prefix, azblob://account/container/prefix, gs://bucket/prefix, etcd://HOST:2379/prefix, file:DIR or memory:';

/** Where the lease objects are kept. */
export type StoreUrl =
  | S3StoreUrl
  | AzureStoreUrl
  | GcsStoreUrl
  | EtcdStoreUrl
  | FileStoreUrl
  | MemoryStoreUrl;

/** Whether the server of a store can be named by an endpoint. */
export function takesEndpoint({ kind }: StoreUrl): boolean {
  return kind === 's3' || kind === 'azblob' || kind === 'gs';
}

/**
 * Takes `s3://bucket[/prefix]`, `azblob://account/container[/prefix]`, `gs://bucket[/prefix]`,
 * `etcd://HOST:PORT[,HOST:PORT]…/prefix` (with TLS: `etcds:`), `file:DIR` (also `file:///DIR`) or `memory:`
 * apart.
 *
 * @param setting named in the error, as the user wrote it
 * @throws {@link ConfigError} when it is none of these, with what is wrong with it
 */
export function parseStoreUrl(value: string, setting = 'store'): StoreUrl {
  const fail = (expected: string): never => {
    throw new ConfigError(setting, value, expected);
  };
  if (value.startsWith('s3://')) return parseS3(value, fail);
  if (value.startsWith('azblob://')) return parseAzure(value, fail);
  if (value.startsWith('gs://')) return parseGcs(value, fail);
  if (/^etcds?:\/\//.test(value)) return parseEtcd(value, fail);
  if (value.startsWith('file:')) return parseFile(value, fail);
  if (value === 'memory:') return { kind: 'memory', url: value };
  return fail(value.startsWith('memory:') ? 'memory: with nothing behind it' : STORES);
}

function parseFile(value: string, fail: (expected: string) => never): FileStoreUrl {
  let directory = value.slice('file:'.length);
  if (directory.startsWith('//')) {
    if (!directory.startsWith('///')) fail('file:DIR or file:///DIR, without a host');
    try {
      directory = fileURLToPath(value);
    } catch {
      fail('file:DIR or a well-formed file:///DIR');
    }
  }
  if (directory === '' || directory.includes('\0')) fail('a folder after file:, for example file:.nodelease');
  return { kind: 'file', url: `file:${directory}`, directory };
}
