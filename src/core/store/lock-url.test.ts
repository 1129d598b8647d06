import { describe, expect, it } from 'vitest';
import { lockNameOf, nothingAt, refuseLock } from './lock-url.js';

describe('the URL of a store', () => {
  it.each([
    's3://bucket/locks/nightly',
    's3://bucket/locks/nightly/',
    's3://bucket/a/b/locks/nightly',
    's3://bucket/locks/a/locks/nightly',
    'gs://bucket/locks/nightly',
    'azblob://account/container/locks/nightly',
    'dynamodb://table/locks/nightly',
    'etcd://a:2379,b:2379/locks/nightly',
    'etcds://a:2379/p/locks/nightly',
    'postgres://me@a:5432,b:5432/db/p/locks/nightly',
    'postgres://a:5432/locks/locks/nightly',
    'file:locks/nightly',
    'file:.nodelease/locks/nightly',
    'file:/srv/./locks//nightly/',
    'file:///srv/locks/nightly',
  ])('is the place of a lock: %s', (url) => {
    expect(lockNameOf(url)).toBe('nightly');
    expect(() => refuseLock(url)).toThrow('where nodelease lock keeps lock nightly');
    expect(nothingAt(url)).toBe(`No task has used lock nightly yet: there is nothing at ${url}.`);
  });

  it.each([
    's3://bucket/locks',
    's3://locks/prod',
    's3://bucket/locks/prod/eu',
    's3://bucket/mylocks/prod',
    's3://bucket/locks/prod.json',
    's3://bucket/locks/.prod',
    'gs://locks/prod',
    'azblob://account/locks/prod',
    'etcd://locks/prod',
    'postgres://a:5432/locks/prod',
    'file:locks',
    'memory:',
    'own:locks/prod',
  ])('is that of node ids: %s', (url) => {
    expect(lockNameOf(url)).toBeUndefined();
    refuseLock(url);
    expect(nothingAt(url, 5)).toContain('nodelease init --nodes 5 creates one');
  });
});
