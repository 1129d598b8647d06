import type { StoreKind } from '../store-kind.js';
import { below, isAddress, parsePrefix, splitPath } from '../url-path.js';
import type { S3StoreOptions } from './open-s3-store.js';

/** A bucket of an S3 service, and the part of it below `prefix`. */
export const S3: StoreKind<S3StoreOptions> = {
  schemes: ['s3'],
  form: 's3://bucket/prefix',
  endpoint: 'the server of an S3-compatible store',
  region: 'the S3 bucket',
  cloudPrices: 'S3 Standard, us-east-1',

  parse(text, { fail }) {
    const [bucket, rest] = splitPath(text);
    if (!isBucket(bucket))
      fail('a bucket name of 3 to 63 lower-case letters, digits, dots and hyphens after s3://');
    const prefix = parsePrefix(rest, S3.form, fail);
    return { url: `s3://${bucket}${below(prefix)}`, bucket, prefix };
  },

  async open(options) {
    const { openS3Store } = await import('./open-s3-store.js');
    return openS3Store(options);
  },
};

/**
 * The naming rules of general purpose buckets:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
 */
function isBucket(name: string): boolean {
  return /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name) && !name.includes('..') && !isAddress(name);
}
