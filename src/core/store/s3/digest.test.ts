import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { standInStore } from '../../../../test/support/stand-in-store.js';
import { digestOf } from './digest.js';

const md5 = (text: string) => createHash('md5').update(text).digest('base64');

it('every write has a Content-MD5, also of an empty object, as a bucket with a default retention demands', async () => {
  const { server, store, close } = await standInStore();
  try {
    const written = await store.create('0.json', '', {});
    if (written.status === 'written') await store.replace('0.json', 'new', {}, written.etag);
    expect(server.requests.map(({ headers }) => headers['content-md5'])).toEqual([md5(''), md5('new')]);
  } finally {
    await close();
  }
});

it('a write has a SHA-256 where Node has no MD5, as in FIPS mode', () => {
  const inFips: typeof createHash = (name, options) => {
    if (name === 'md5') throw new Error('digital envelope routines::unsupported');
    return createHash(name, options);
  };
  const sha256 = createHash('sha256').update('new').digest('base64');
  expect(digestOf(Buffer.from('new'), inFips)).toEqual({ ChecksumSHA256: sha256 });
});
