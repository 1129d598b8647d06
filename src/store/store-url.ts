import { fileURLToPath } from 'node:url';
import { ConfigError } from '../base/errors.js';

/** A bucket of an S3 service, and the part of it below `prefix`. */
export interface S3StoreUrl {
  readonly kind: 's3';
  /** In its normal form: no slash at the end. */
  readonly url: string;
  readonly bucket: string;
  /** Without a slash at either end; empty for the whole bucket. */
  readonly prefix: string;
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

/** Where the lease objects are kept. */
export type StoreUrl = S3StoreUrl | EtcdStoreUrl | FileStoreUrl | MemoryStoreUrl;

/**
 * Takes `s3://bucket[/prefix]`, `etcd://HOST:PORT[,HOST:PORT]…/prefix` (with TLS: `etcds:`), `file:DIR` (also `file:///DIR`) or `memory:` apart.
 *
 * @param setting named in the error, as the user wrote it
 * @throws {@link ConfigError} when it is none of these, with what is wrong with it
 */
export function parseStoreUrl(value: string, setting = '--store'): StoreUrl {
  const fail = (expected: string): never => {
    throw new ConfigError(setting, value, expected);
  };
  if (value.startsWith('s3://')) return parseS3(value, fail);
  if (/^etcds?:\/\//.test(value)) return parseEtcd(value, fail);
  if (value.startsWith('file:')) return parseFile(value, fail);
  if (value === 'memory:') return { kind: 'memory', url: value };
  return fail(
    value.startsWith('memory:') ? 'memory: with nothing behind it' : 's3://bucket/prefix, etcd://HOST:2379/prefix, file:DIR or memory:',
  );
}

type Fail = (expected: string) => never;

function parseS3(value: string, fail: Fail): S3StoreUrl {
  const [, bucket = '', rest = ''] = /^s3:\/\/([^/]*)\/?(.*)$/s.exec(value) ?? [];
  if (!isBucketName(bucket)) fail('a bucket name of 3 to 63 lower-case letters, digits, dots and hyphens after s3://');
  const prefix = parsePrefix(rest, 's3://bucket/prefix', fail);
  return { kind: 's3', url: prefix === '' ? `s3://${bucket}` : `s3://${bucket}/${prefix}`, bucket, prefix };
}

/** A prefix without a slash at its end; it may be empty. */
function parsePrefix(rest: string, example: string, fail: Fail): string {
  const prefix = rest.replace(/\/$/, '');
  if (prefix === '') return prefix;
  // A query or fragment would silently become a part of every key, which is never what its writer meant.
  if (/[?#\s\p{Cc}]/u.test(prefix)) fail(`a prefix without blanks, control characters, ? and # in ${example}`);
  if (prefix.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) {
    fail(`a prefix without empty, . and .. segments in ${example}`);
  }
  // S3 allows keys of 1,024 bytes; what is left is for the names of the objects.
  if (Buffer.byteLength(prefix) > 900) fail(`a prefix of at most 900 bytes in ${example}`);
  return prefix;
}

/** The naming rules of general purpose buckets: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html */
function isBucketName(name: string): boolean {
  return /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name) && !name.includes('..') && !/^\d+\.\d+\.\d+\.\d+$/.test(name);
}

const ETCD_SUCH_AS = 'etcd://HOST:2379[,HOST:2379]…/prefix';

function parseEtcd(value: string, fail: Fail): EtcdStoreUrl {
  const [, scheme = '', servers = '', rest = ''] = /^(etcds?):\/\/([^/]*)\/?(.*)$/s.exec(value) ?? [];
  if (servers.includes('@')) fail(`no user and password in the URL, but in NODELEASE_ETCD_AUTH or --etcd-auth: ${ETCD_SUCH_AS}`);
  const hosts = servers.split(',').map((server) => parseServer(server, fail));
  const prefix = parsePrefix(rest, ETCD_SUCH_AS, fail);
  if (prefix === '') fail(`a prefix, which nothing else in the cluster uses, in ${ETCD_SUCH_AS}`);
  const endpoints = hosts.map((host) => `${scheme === 'etcd' ? 'http' : 'https'}://${host}`);
  return { kind: 'etcd', url: `${scheme}://${hosts.join(',')}/${prefix}`, endpoints, prefix };
}

function parseServer(server: string, fail: Fail): string {
  const [, host = '', port = '2379'] = /^([\w.-]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i.exec(server) ?? [];
  if (host === '' || Number(port) < 1 || Number(port) > 65_535 || !URL.canParse(`http://${host}`)) {
    fail(`servers, each HOST or HOST:PORT, with commas between them, in ${ETCD_SUCH_AS}`);
  }
  return `${host}:${Number(port)}`;
}

function parseFile(value: string, fail: Fail): FileStoreUrl {
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
