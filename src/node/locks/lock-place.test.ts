import { describe, expect, it } from 'vitest';
import { parseStoreUrl } from '../../core/store/stores.js';
import { lockPlace } from './lock-place.js';

describe('the location of a lock', () => {
  it.each([
    ['s3://bucket', 's3://bucket/locks/nightly'],
    ['s3://bucket/', 's3://bucket/locks/nightly'],
    ['s3://bucket/a/b', 's3://bucket/a/b/locks/nightly'],
    ['file:.nodelease', 'file:.nodelease/locks/nightly'],
    ['file:dir/', 'file:dir/locks/nightly'],
    ['file:/', 'file:/locks/nightly'],
    ['file:///with%20blank', 'file:/with blank/locks/nightly'],
    ['memory:', 'memory:'],
  ])('is a separate store below %s, with a URL that operators may use', async (store, expected) => {
    const place = await lockPlace(store, 'nightly');
    expect(place).toBe(expected);
    expect(parseStoreUrl(place as string).url).toBe(expected);
  });

  it('is not what is no store, of a function that should open one', async () => {
    const forgotten = (() => undefined) as never;
    await expect(lockPlace(forgotten, 'nightly')).rejects.toThrow('store: expected a store');
  });
});
