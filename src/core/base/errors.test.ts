import { describe, expect, it } from 'vitest';
import { ConfigError, StoreUnusableError } from './errors.js';

describe('an error about a setting', () => {
  it.each([
    ['s3://AKIA123:wJalr/K7+bPx@bucket/prefix', 's3://[redacted]@bucket/prefix'],
    ['https://token@host:9000', 'https://[redacted]@host:9000'],
    ['postgres://orders@db:5432,db2/app/x', 'postgres://orders@db:5432,db2/app/x'],
    ['postgres://orders:p4ss/w@db/app/x', 'postgres://[redacted]@db/app/x'],
    ['postgres://a@h1,b:p4ss@h2/app/x', 'postgres://[redacted]@h2/app/x'],
    ['postgres://h/app?user=me&password=p4ss&x=1', 'postgres://h/app?user=me&password=[redacted]&x=1'],
    ['host=h PGPASSWORD=p4ss dbname=app', 'host=h PGPASSWORD=[redacted] dbname=app'],
    [`host=h password='p4 ss' dbname=app`, 'host=h password=[redacted] dbname=app'],
    [`PGPASSWORD=${'x'.repeat(300)}`, 'PGPASSWORD=[redacted]'],
    ['AccountName=a;AccountKey=p4s/s==', 'AccountName=a;AccountKey=[redacted]'],
    ['s3://bucket/p?X-Amz-Signature=p4ss', 's3://bucket/p?X-Amz-Signature=[redacted]'],
    ['--from-secret=name, sig=SIGTERM', '--from-secret=name, sig=SIGTERM'],
    ['azblob://acct/leases/p?sv=1&sig=p4s%2Fs', 'azblob://acct/leases/p?sv=1&sig=[redacted]'],
    ['postgresql://orders:12@db/app/x', 'postgresql://[redacted]@db/app/x'],
    ['user:password@zk1:2181,zk2:2181', '[redacted]@zk1:2181,zk2:2181'],
    ['S3://user:p@ss@bucket', 'S3://[redacted]@bucket'],
    ['postgres://orders:p4 s@s/w@db/app/x', 'postgres://[redacted]@db/app/x'],
    ['etcd://orders:p4"s s@db:2379/x', 'etcd://[redacted]@db:2379/x'],
    ['user:pass word@zk1:2181,zk2:2181', '[redacted]@zk1:2181,zk2:2181'],
    ['postgres://orders@db-1:p4 ss@db/app', 'postgres://[redacted]@db/app'],
    ['s3://AK:/a b@bucket', 's3://[redacted]@bucket'],
    ['etcd://:p4 ss@db:2379', 'etcd://[redacted]@db:2379'],
    [' etcd://orders:p4 ss@db:2379', ' etcd://[redacted]@db:2379'],
  ])('neither shows nor keeps the credentials in %s', (value, shown) => {
    const error = new ConfigError('--store', value, 'something else');
    expect(error.message).toBe(`--store: expected something else, got "${shown}"`);
    expect(error.value).toBe(shown);
  });

  it.each([
    ...['s3://bucket/prefix', 'web@host', 'zk1:2181', '@', '', '{"a":1,"@class":"x"}'],
    ...['etcd://h1:2379,h2:2379/a b@c', 'http://[::1]:80/a b@c', 'file:a b@c', 'zk1:2181,zk2:2181/a b@c'],
    ...['postgres://orders@db:5432,db2/a b@c', 'http://h/a:b c@d', '/a:/b c@d'],
  ])('shows a value without credentials unchanged: %j', (value) => {
    expect(new ConfigError('--x', value, 'something else').value).toBe(value);
  });
});

describe('an error without a cause', () => {
  it('has no such property, which would be printed', () => {
    expect(new StoreUnusableError('STORE_MISSING', 'no', { cause: undefined })).not.toHaveProperty('cause');
    expect(new StoreUnusableError('STORE_MISSING', 'no', { cause: 'why' })).toHaveProperty('cause', 'why');
  });
});
