import { SettingError } from './setting-error.js';

/** Where the lease objects stand in their bucket, unless somebody says otherwise. */
export const DEFAULT_PREFIX = 'leases';

/**
 * The prefix of the lease objects, checked. The whole bucket is no choice here: permissions on single keys
 * need a prefix to stand below, and IAM reads `*`, `?` and `${` in a resource as patterns.
 *
 * @throws {@link SettingError}
 */
export function checkedPrefix(prefix: string): string {
  const segments = prefix.split('/');
  if (
    !segments.every(
      (segment) => /^[A-Za-z0-9._-]{1,128}$/.test(segment) && segment !== '.' && segment !== '..',
    )
  ) {
    throw new SettingError(
      'prefix',
      prefix,
      'letters, digits, dots, hyphens and underscores, with single slashes between such parts',
    );
  }
  return prefix;
}
