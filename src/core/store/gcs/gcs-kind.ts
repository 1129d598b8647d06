import { isAddress, parsePrefix, type StoreKind, splitPath } from '../store-kind.js';
import type { GcsStoreOptions } from './open-gcs-store.js';

/** A bucket of Google Cloud Storage, and the part of it below `prefix`. */
export const GCS: StoreKind<GcsStoreOptions> = {
  schemes: ['gs'],
  form: 'gs://bucket/prefix',
  endpoint: 'an emulator',
  cloudPrices: 'Cloud Storage Standard in one region',
  // Google's library has looked for a metadata server where there is none.
  muted: ['MetadataLookupWarning'],

  parse(text, { fail }) {
    const [bucket, path] = splitPath(text);
    if (!isBucket(bucket))
      fail('a bucket name of 3 to 63 lower-case letters, digits, dots, hyphens and underscores after gs://');
    return { bucket, prefix: parsePrefix(path, GCS.form, fail) };
  },

  open: async (options) => (await import('./open-gcs-store.js')).openGcsStore(options),
};

/**
 * https://cloud.google.com/storage/docs/buckets#naming: with dots up to 222 characters, of which 63 between
 * two dots.
 */
function isBucket(name: string): boolean {
  const parts = name.split('.');
  const isLong =
    name.length < 3 || name.length > 222 || parts.some((part) => part.length < 1 || part.length > 63);
  return /^[a-z0-9][a-z0-9._-]*[a-z0-9]$/.test(name) && !isLong && !isAddress(name);
}
