import { describe, expect, it } from 'vitest';
import { ConfigError } from '../base/errors.js';
import { defaultStore } from './store-settings.js';
import { ACCESS, parseStoreUrl, STORE_FORMS, STORES, storeKindOf } from './stores.js';

describe('the list of stores', () => {
  it('has no scheme twice', () => {
    const all = STORES.flatMap(({ schemes }) => schemes);
    expect(all).toEqual([...new Set(all)]);
  });

  it.each(STORES)('shows a URL that $schemes.0 takes', (kind) => {
    expect(parseStoreUrl(kind.form).kind).toBe(kind);
    expect(storeKindOf(kind.form)).toBe(kind);
  });

  it.each(STORES.flatMap(({ own, schemes }) => (own ? [{ ...own, schemes }] : [])))(
    'has settings of $option by the names that the command line and the library read them by',
    ({ option, settings, schemes, tlsScheme }) => {
      expect(ACCESS).toHaveProperty(option);
      for (const [name, row] of Object.entries(settings)) {
        expect(name).toMatch(new RegExp(`^${option}-`));
        expect(row.option).toMatch(new RegExp(`^${option}\\.[a-zA-Z]+$`));
      }
      if (tlsScheme === undefined) return;
      expect(schemes).toContain(tlsScheme);
      for (const part of ['ca', 'cert', 'key']) expect(settings).toHaveProperty(`${option}-${part}`);
    },
  );
});

describe('a store URL', () => {
  it.each([
    ['s3://leases', { kind: 's3', bucket: 'leases', prefix: '', url: 's3://leases' }],
    ['s3://leases/', { kind: 's3', bucket: 'leases', prefix: '', url: 's3://leases' }],
    ['s3://leases//', { kind: 's3', bucket: 'leases', prefix: '', url: 's3://leases' }],
    [
      's3://my.leases-1/prod/orders',
      { kind: 's3', bucket: 'my.leases-1', prefix: 'prod/orders', url: 's3://my.leases-1/prod/orders' },
    ],
    ['s3://leases/prod/', { kind: 's3', bucket: 'leases', prefix: 'prod', url: 's3://leases/prod' }],
    [
      'azblob://acct1/leases/prod/orders/',
      {
        kind: 'azblob',
        account: 'acct1',
        container: 'leases',
        prefix: 'prod/orders',
        url: 'azblob://acct1/leases/prod/orders',
      },
    ],
    [
      'azblob://acct1/leases',
      { kind: 'azblob', account: 'acct1', container: 'leases', prefix: '', url: 'azblob://acct1/leases' },
    ],
    [
      'gs://my_leases.example/prod/',
      { kind: 'gs', bucket: 'my_leases.example', prefix: 'prod', url: 'gs://my_leases.example/prod' },
    ],
    [
      'dynamodb://my.leases_1/prod/orders/',
      {
        kind: 'dynamodb',
        table: 'my.leases_1',
        prefix: 'prod/orders',
        url: 'dynamodb://my.leases_1/prod/orders',
      },
    ],
    ['file:.nodelease', { kind: 'file', directory: '.nodelease', url: 'file:.nodelease' }],
    [
      'file:/var/lib/node lease',
      { kind: 'file', directory: '/var/lib/node lease', url: 'file:/var/lib/node lease' },
    ],
    ['file:////var//lease', { kind: 'file', directory: '/var//lease', url: 'file:/var//lease' }],
    ['file:///var/node%20lease', { kind: 'file', directory: '/var/node lease', url: 'file:/var/node lease' }],
    ['memory:', { kind: 'memory', url: 'memory:' }],
    [
      'etcd://h1/p/q,h2:2380/p/q',
      {
        kind: 'etcd',
        url: 'etcd://h1:2379,h2:2380/p/q',
        endpoints: ['http://h1:2379', 'http://h2:2380'],
        prefix: 'p/q',
      },
    ],
    ['etcd://h1/p', { kind: 'etcd', url: 'etcd://h1:2379/p', endpoints: ['http://h1:2379'], prefix: 'p' }],
    [
      'etcds://etcd-1.example:2381,[::1]:02379/prod/orders/',
      {
        kind: 'etcd',
        url: 'etcds://etcd-1.example:2381,[::1]:2379/prod/orders',
        endpoints: ['https://etcd-1.example:2381', 'https://[::1]:2379'],
        prefix: 'prod/orders',
      },
    ],
    [
      'postgres://orders@db-1/leases/prod/fleet',
      {
        kind: 'postgres',
        url: 'postgres://orders@db-1/leases/prod/fleet',
        servers: [{ host: 'db-1', port: 5432, address: 'db-1:5432' }],
        user: 'orders',
        database: 'leases',
        prefix: 'prod/fleet',
      },
    ],
    [
      'postgres://me%40team@db-1/my%20db/p',
      {
        kind: 'postgres',
        url: 'postgres://me%40team@db-1/my%20db/p',
        servers: [{ host: 'db-1', port: 5432, address: 'db-1:5432' }],
        user: 'me@team',
        database: 'my db',
        prefix: 'p',
      },
    ],
    [
      'postgresql://db-1:6432,[::1]/leases/p/',
      {
        kind: 'postgres',
        url: 'postgresql://db-1:6432,[::1]/leases/p',
        servers: [
          { host: 'db-1', port: 6432, address: 'db-1:6432' },
          { host: '::1', port: 5432, address: '[::1]:5432' },
        ],
        user: '',
        database: 'leases',
        prefix: 'p',
      },
    ],
    [
      'postgres://me@db-1/leases/p/,db-2/leases/p/',
      {
        kind: 'postgres',
        url: 'postgres://me@db-1,db-2/leases/p',
        servers: [
          { host: 'db-1', port: 5432, address: 'db-1:5432' },
          { host: 'db-2', port: 5432, address: 'db-2:5432' },
        ],
        user: 'me',
        database: 'leases',
        prefix: 'p',
      },
    ],
  ])('%s is understood', (value, expected) => {
    const { kind, ...parts } = parseStoreUrl(value);
    expect({ kind: kind.schemes[0], ...parts }).toEqual(expected);
    expect(parseStoreUrl(parts.url)).toEqual({ kind, ...parts });
  });

  it.each([
    ['', STORE_FORMS],
    ['leases', STORE_FORMS],
    ['http://127.0.0.1:9000/leases', STORE_FORMS],
    ['s3:leases', STORE_FORMS],
    ['s3://', 'a bucket name'],
    ['s3:///prefix', 'a bucket name'],
    ['s3://ab', 'a bucket name'],
    ['s3://Leases', 'a bucket name'],
    ['s3://under_score', 'a bucket name'],
    ['s3://two..dots', 'a bucket name'],
    ['s3://-leases', 'a bucket name'],
    ['s3://192.168.0.1', 'a bucket name'],
    [`s3://${'b'.repeat(64)}`, 'a bucket name'],
    ['s3://leases//prod', 'a prefix without empty'],
    ['s3://leases/prod//', 'a prefix without empty'],
    ['s3://leases/a//b', 'a prefix without empty'],
    ['s3://leases/a/../b', 'a prefix without empty'],
    ['s3://leases/./b', 'a prefix without empty'],
    ['s3://leases/prod?region=eu-west-1', 'a prefix without blanks'],
    ['s3://leases/my prod', 'a prefix without blanks'],
    [`s3://leases/${'p'.repeat(901)}`, 'a prefix of at most 900 bytes'],
    ['azblob://', 'a storage account'],
    ['azblob://my-account/leases', 'a storage account'],
    ['azblob://acct1', 'a container of'],
    ['azblob://acct1/', 'a container of'],
    ['azblob://acct1/ab', 'a container of'],
    ['azblob://acct1/two--hyphens', 'a container of'],
    ['azblob://acct1/Leases', 'a container of'],
    [
      'azblob://acct1/leases/a//b',
      'a prefix without empty, . and .. segments in azblob://account/container/prefix',
    ],
    ['azblob://acct1/leases/a\\b', 'a prefix without backslashes in azblob://account/container/prefix'],
    ['gs://', 'a bucket name'],
    ['gs://ab', 'a bucket name'],
    ['gs://Leases', 'a bucket name'],
    ['gs://two..dots', 'a bucket name'],
    ['gs://192.168.0.1', 'a bucket name'],
    [`gs://${'b'.repeat(64)}`, 'a bucket name'],
    ['gs://leases/prod?x=1', 'a prefix without blanks, control characters, ? and # in gs://bucket/prefix'],
    ['dynamodb://', 'a table name of 3 to 255'],
    ['dynamodb://ab/p', 'a table name of 3 to 255'],
    [`dynamodb://${'t'.repeat(256)}/p`, 'a table name of 3 to 255'],
    ['dynamodb://my table/p', 'a table name of 3 to 255'],
    ['dynamodb://leases', 'a prefix, which nothing else in the table uses, in dynamodb://table/prefix'],
    ['dynamodb://leases/', 'a prefix, which nothing else in the table uses'],
    ['dynamodb://leases/a//b', 'a prefix without empty, . and .. segments in dynamodb://table/prefix'],
    ['dynamodb:leases/p', STORE_FORMS],
    ['file:', 'a folder after file:'],
    ['file://host/dir', 'file:DIR or file:///DIR, without a host'],
    ['file:~/leases', 'a folder without ~ or $ at its start'],
    ['file:$HOME/leases', 'a folder without ~ or $ at its start'],
    ['~/leases', `expected ${STORE_FORMS}`],
    ['file:///a%2', 'well-formed'],
    ['etcd://h1:2379', 'a prefix, which nothing else in the cluster uses'],
    ['etcd://h1:2379/', 'a prefix, which nothing else in the cluster uses'],
    ['etcd:h1/p', STORE_FORMS],
    ['etcd:///p', 'a server is empty'],
    ['etcd://h1,/p', 'a server is empty'],
    ['etcd://h1/p,h2/q', 'or is the same behind each'],
    ['etcd://h1/p,h2', 'or is the same behind each'],
    ['etcd://h1/p,q', 'or is the same behind each'],
    ['etcd://h1/p;h2/p', 'commas separate servers'],
    ['etcd://h1/p,etcd://h2/p', 'etcd:// once, in front of the first server'],
    ['etcd://2001:db8::7:2379/p', 'an IPv6 address in brackets'],
    ['file:///a%0D', 'no carriage return'],
    ['etcd://h1:0/p', 'servers, each HOST or HOST:PORT'],
    ['etcd://h1:65536/p', 'servers, each HOST or HOST:PORT'],
    ['etcd://h1:x/p', 'servers, each HOST or HOST:PORT'],
    ['etcd://300.1.1.1/p', 'servers, each HOST or HOST:PORT'],
    ['etcd://::1/p', 'servers, each HOST or HOST:PORT'],
    ['etcd://me:secret@h1/p', 'no user and password in the URL'],
    ['etcds://h1/a//b', 'a prefix without empty'],
    ['etcd://h1/p?x=1', 'a prefix without blanks'],
    ['postgres:h/db/p', STORE_FORMS],
    [
      'postgres://me:secret@h/db/p',
      'no password in the URL, but in PGPASSWORD or a password file (PGPASSFILE)',
    ],
    ['postgres://me:@h/db/p', 'no password in the URL'],
    ['postgres:///db/p', 'a server is empty'],
    ['postgres://me@h:0/db/p', 'servers, each HOST or HOST:PORT'],
    ['postgres://me@h', 'a database, and a prefix that no other fleet has'],
    ['postgres://me@h/db', 'a database, and a prefix that no other fleet has'],
    ['postgres://me@h/db/', 'a database, and a prefix that no other fleet has'],
    ['postgres://me@h/100%/p', '%25 for a percent sign'],
    ['postgres://me@h//p', 'a database, and a prefix that no other fleet has'],
    ['postgres://me@h/db/p?sslmode=require', 'a prefix without blanks'],
    ['postgres://me@h/db/a//b', 'a prefix without empty'],
    ['memory:x', 'memory: with nothing behind it'],
  ])('%j is refused with the reason', (value, reason) => {
    expect(() => parseStoreUrl(value, 'NODELEASE_STORE')).toThrow(ConfigError);
    expect(() => parseStoreUrl(value, 'NODELEASE_STORE')).toThrow(reason);
    expect(() => parseStoreUrl(value, 'NODELEASE_STORE')).toThrow(`NODELEASE_STORE: expected`);
  });
});

describe('the store of a program that names none', () => {
  it('is a folder below the working directory', () => {
    expect(defaultStore({ env: {}, processId: 4711, root: '/no/such/folder' })).toBe('file:.nodelease');
  });

  it('is refused in a container, whose folder no other one sees', () => {
    const ask = () =>
      defaultStore({
        env: { KUBERNETES_SERVICE_HOST: '10.0.0.1' },
        processId: 4711,
        root: '/no/such/folder',
      });
    expect(ask).toThrow(ConfigError);
    expect(ask).toThrow(
      /^store: expected one that all tasks reach, such as s3:\/\/bucket\/prefix \(in a container \(KUBERNETES_SERVICE_HOST is set\)/,
    );
  });
});
