import { withoutSecrets } from '../../base/redaction.js';
import { givenEndpoint } from '../aws/aws-client.js';

/**
 * Says that the address of a bucket is given as the server, where that is so: S3 takes a listing there for
 * the read of an object. Consoles show such addresses: `https://BUCKET.HOST` and `https://HOST/BUCKET`.
 *
 * @param store its URL
 * @param isCertain whether the server has answered that there is no such object: then any path is one too
 * much. Otherwise the bucket is looked for, and may just have the name of a host or of a folder
 */
export function bucketInEndpoint(
  store: string,
  option: string | undefined,
  isCertain = false,
): string | undefined {
  const given = givenEndpoint('S3', option);
  if (given === undefined || !URL.canParse(given.url)) return undefined;
  const bucket = /^s3:\/\/([^/]+)/.exec(store)?.[1] ?? '';
  const { protocol, host, pathname } = new URL(given.url);
  const folders = pathname.split('/');
  const at = folders.indexOf(bucket);
  const isInHost = host.startsWith(`${bucket}.`);
  if (!isInHost && at === -1 && (!isCertain || pathname === '/')) return undefined;
  const path = isInHost || at === -1 ? '' : folders.slice(0, at).join('/');
  const server = `${protocol}//${isInHost ? host.slice(bucket.length + 1) : host}${path}`;
  const suchAs = server === given.url ? '' : `, such as ${server}`;
  return `${given.name} ${withoutSecrets(given.url)}: expected the server’s URL without a bucket${suchAs}; the bucket is in ${store}`;
}
