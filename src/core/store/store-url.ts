import { fileURLToPath } from 'node:url';
import { ConfigError } from '../base/errors.js';
import { checkPlain } from '../base/plain-text.js';
import { isPort } from '../base/ports.js';
import { splitServers } from '../base/server-list.js';

/** A bucket of an S3 service, and the part of it below `prefix`. */
export interface S3StoreUrl {
  readonly kind: 's3';
  /** In its normal form: no slash at the end. */
  readonly url: string;
  readonly bucket: string;
  /** Without a slash at either end; empty for the whole bucket. */
  readonly prefix: string;
}

/** A container of Azure Blob Storage, and the part of it below `prefix`. */
export interface AzureStoreUrl {
  readonly kind: 'azblob';
  readonly url: string;
  /** The storage account. */
  readonly account: string;
  readonly container: string;
  /** Without a slash at either end; empty for the whole container. */
  readonly prefix: string;
}

/** A bucket of Google Cloud Storage, and the part of it below `prefix`. */
export interface GcsStoreUrl extends Omit<S3StoreUrl, 'kind'> {
  readonly kind: 'gs';
}

/** The keys of an etcd cluster that begin with `prefix` and a slash. */
export interface EtcdStoreUrl {
  readonly kind: 'etcd';
  readonly url: string;
  /** `http://HOST:PORT` or `https://HOST:PORT` of each server that may be asked. */
  readonly endpoints: readonly string[];
  /** Without a slash at either end; never empty. */
  readonly prefix: string;
}

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
 * @throws {@link ConfigError} for every other value, with what is wrong with it
 */
export function parseStoreUrl(value: string, setting = 'store'): StoreUrl {
  const fail: Fail = (expected) => {
    throw new ConfigError(setting, value, expected);
  };
  checkPlain(value, setting);
  const [, scheme = '', host = '', rest = ''] = /^(\w+):\/\/([^/]*)\/?(.*)$/s.exec(value) ?? [];
  if (scheme === 's3') return parseS3(host, rest, fail);
  if (scheme === 'azblob') return parseAzure(host, rest, fail);
  if (scheme === 'gs') return parseGcs(host, rest, fail);
  if (scheme === 'etcd' || scheme === 'etcds')
    return parseEtcd(scheme, value.slice(`${scheme}://`.length), fail);
  if (value.startsWith('file:')) return parseFile(value, setting, fail);
  if (value === 'memory:') return { kind: 'memory', url: value };
  return fail(value.startsWith('memory:') ? 'memory: with nothing behind it' : STORES);
}

/** Checks what a program gives as a store: a URL, or an object. @throws {ConfigError} */
export function checkStore(store: unknown, setting: string): void {
  if (typeof store === 'string') parseStoreUrl(store, setting);
  else if (!('read' in Object(store)))
    throw new ConfigError(setting, store, `${STORES}, or a store of yours`);
}

/** Throws, with what was expected. */
type Fail = (expected: string) => never;

function parseS3(bucket: string, rest: string, fail: Fail): S3StoreUrl {
  if (!isS3Bucket(bucket))
    fail('a bucket name of 3 to 63 lower-case letters, digits, dots and hyphens after s3://');
  const prefix = parsePrefix(rest, 's3://bucket/prefix', fail);
  return { kind: 's3', url: `s3://${bucket}${below(prefix)}`, bucket, prefix };
}

function parseAzure(account: string, path: string, fail: Fail): AzureStoreUrl {
  const [container = ''] = path.split('/', 1);
  if (!/^[a-z0-9]{3,24}$/.test(account))
    fail('a storage account of 3 to 24 lower-case letters and digits after azblob://');
  if (!isContainer(container))
    fail(
      'a container of 3 to 63 lower-case letters, digits and single hyphens in azblob://account/container/prefix',
    );
  const prefix = parsePrefix(path.slice(container.length + 1), 'azblob://account/container/prefix', fail);
  const url = `azblob://${account}/${container}${below(prefix)}`;
  return { kind: 'azblob', url, account, container, prefix };
}

function parseGcs(bucket: string, rest: string, fail: Fail): GcsStoreUrl {
  if (!isGcsBucket(bucket))
    fail('a bucket name of 3 to 63 lower-case letters, digits, dots, hyphens and underscores after gs://');
  const prefix = parsePrefix(rest, 'gs://bucket/prefix', fail);
  return { kind: 'gs', url: `gs://${bucket}${below(prefix)}`, bucket, prefix };
}

const ETCD_SUCH_AS = 'etcd://HOST:2379[,HOST:2379]…/prefix';

function parseEtcd(scheme: string, text: string, fail: Fail): EtcdStoreUrl {
  if (text.split('/', 1)[0]?.includes('@'))
    fail(`no user and password in the URL, but in NODELEASE_ETCD_AUTH or etcd.auth: ${ETCD_SUCH_AS}`);
  if (text.includes('://')) fail(`${scheme}:// once, in front of the first server, in ${ETCD_SUCH_AS}`);
  const list = splitServers(text, 'prefix');
  if (typeof list === 'string') return fail(`${ETCD_SUCH_AS} (${list})`);
  const hosts = list.servers.map((server) => parseServer(server, fail));
  const prefix = parsePrefix(list.path.slice(1), ETCD_SUCH_AS, fail);
  if (prefix === '') fail(`a prefix, which nothing else in the cluster uses, in ${ETCD_SUCH_AS}`);
  const endpoints = hosts.map((host) => `${scheme === 'etcd' ? 'http' : 'https'}://${host}`);
  return { kind: 'etcd', url: `${scheme}://${hosts.join(',')}/${prefix}`, endpoints, prefix };
}

function parseServer(server: string, fail: Fail): string {
  const [, host = '', port = '2379'] = /^([\w.-]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i.exec(server) ?? [];
  if (host === '' || !isPort(Number(port)) || !URL.canParse(`http://${host}`)) {
    fail(
      `servers, each HOST or HOST:PORT (an IPv6 address in brackets), with commas between them, in ${ETCD_SUCH_AS}`,
    );
  }
  return `${host}:${Number(port)}`;
}

function parseFile(value: string, setting: string, fail: Fail): FileStoreUrl {
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
  // What was encoded, too.
  checkPlain(directory, setting);
  return { kind: 'file', url: `file:${directory}`, directory };
}

/** A prefix without a slash at its end; it may be empty. */
function parsePrefix(rest: string, form: string, fail: Fail): string {
  const prefix = rest.replace(/\/$/, '');
  if (prefix === '') return prefix;
  // A query or fragment would silently become a part of every key, which is never what its writer meant.
  if (/[?#\s\p{Cc}]/u.test(prefix)) fail(`a prefix without blanks, control characters, ? and # in ${form}`);
  if (prefix.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) {
    fail(`a prefix without empty, . and .. segments in ${form}`);
  }
  // Keys have 1,024 bytes; what is left is for the names of the objects.
  if (Buffer.byteLength(prefix) > 900) fail(`a prefix of at most 900 bytes in ${form}`);
  return prefix;
}

/** The prefix as the end of a URL. */
export function below(prefix: string): string {
  return prefix === '' ? '' : `/${prefix}`;
}

/**
 * The naming rules of general purpose buckets:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
 */
function isS3Bucket(name: string): boolean {
  return /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name) && !name.includes('..') && !isAddress(name);
}

/**
 * https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
 */
function isContainer(name: string): boolean {
  return name.length >= 3 && name.length <= 63 && /^[a-z0-9]+(-[a-z0-9]+)*$/.test(name);
}

/**
 * https://cloud.google.com/storage/docs/buckets#naming: with dots up to 222 characters, of which 63 between
 * two dots.
 */
function isGcsBucket(name: string): boolean {
  const parts = name.split('.');
  const isLong =
    name.length < 3 || name.length > 222 || parts.some((part) => part.length < 1 || part.length > 63);
  return /^[a-z0-9][a-z0-9._-]*[a-z0-9]$/.test(name) && !isLong && !isAddress(name);
}

function isAddress(name: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$/.test(name);
}
