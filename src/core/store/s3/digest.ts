import { createHash } from 'node:crypto';
import type { PutObjectCommandInput } from '@aws-sdk/client-s3';

/**
 * The digest that shows S3 that a body has arrived whole, as fields of a PutObject: Content-MD5, which every
 * server takes; SHA-256 in FIPS mode, where Node has no MD5.
 */
export function digestOf(
  body: Buffer,
  hash: typeof createHash = createHash,
): Pick<PutObjectCommandInput, 'ContentMD5' | 'ChecksumSHA256'> {
  try {
    return { ContentMD5: hash('md5').update(body).digest('base64') };
  } catch {
    return { ChecksumSHA256: hash('sha256').update(body).digest('base64') };
  }
}
