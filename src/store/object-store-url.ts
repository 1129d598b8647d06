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
export interface GcsStoreUrl {
  readonly kind: 'gs';
  readonly url: string;
  readonly bucket: string;
  /** Without a slash at either end; empty for the whole bucket. */
  readonly prefix: string;
}

/** Throws, with what was expected. */
export type Fail = (expected: string) => never;

/** Takes `s3://bucket[/prefix]` apart. */
export function parseS3(value: string, fail: Fail): S3StoreUrl {
  const [, bucket = '', rest = ''] = /^s3:\/\/([^/]*)\/?(.*)$/s.exec(value) ?? [];
  if (!isS3Bucket(bucket))
    fail('a bucket name of 3 to 63 lower-case letters, digits, dots and hyphens after s3://');
  const prefix = parsePrefix(rest, 's3://bucket/prefix', fail);
  return { kind: 's3', url: `s3://${bucket}${below(prefix)}`, bucket, prefix };
}

/** Takes `azblob://account/container[/prefix]` apart. */
export function parseAzure(value: string, fail: Fail): AzureStoreUrl {
  const [, account = '', container = '', rest = ''] =
    /^azblob:\/\/([^/]*)\/?([^/]*)\/?(.*)$/s.exec(value) ?? [];
  if (!/^[a-z0-9]{3,24}$/.test(account))
    fail('a storage account of 3 to 24 lower-case letters and digits after azblob://');
  if (!isContainer(container))
    fail(
      'a container of 3 to 63 lower-case letters, digits and single hyphens in azblob://account/container/prefix',
    );
  const prefix = parsePrefix(rest, 'azblob://account/container/prefix', fail);
  return {
    kind: 'azblob',
    url: `azblob://${account}/${container}${below(prefix)}`,
    account,
    container,
    prefix,
  };
}

/** Takes `gs://bucket[/prefix]` apart. */
export function parseGcs(value: string, fail: Fail): GcsStoreUrl {
  const [, bucket = '', rest = ''] = /^gs:\/\/([^/]*)\/?(.*)$/s.exec(value) ?? [];
  if (!isGcsBucket(bucket))
    fail('a bucket name of 3 to 63 lower-case letters, digits, dots, hyphens and underscores after gs://');
  const prefix = parsePrefix(rest, 'gs://bucket/prefix', fail);
  return { kind: 'gs', url: `gs://${bucket}${below(prefix)}`, bucket, prefix };
}

/** A prefix without a slash at its end; it may be empty. */
export function parsePrefix(rest: string, form: string, fail: Fail): string {
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

function below(prefix: string): string {
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
