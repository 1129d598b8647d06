import { isAddress, parsePrefix, type StoreKind, splitPath } from '../store-kind.js';
import type { S3StoreOptions } from './open-s3-store.js';

/** A bucket of an S3 service, and the part of it below `prefix`. */
export const S3: StoreKind<S3StoreOptions> = {
  schemes: ['s3'],
  form: 's3://bucket/prefix',
  endpoint: 'the server of an S3-compatible store',
  region: 'the S3 bucket',
  cloudPrices: 'S3 Standard, us-east-1',

  parse(text, { fail }) {
    const [bucket, path] = splitPath(text);
    if (!isBucket(bucket))
      fail('a bucket name of 3 to 63 lower-case letters, digits, dots and hyphens after s3://');
    return { bucket, prefix: parsePrefix(path, S3.form, fail) };
  },

  open: async (options) => (await import('./open-s3-store.js')).openS3Store(options),
};

/**
 * The naming rules of general purpose buckets:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
 */
function isBucket(name: string): boolean {
  return /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name) && !name.includes('..') && !isAddress(name);
}
