import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageRoot } from '../../../../test/support/package-root.js';
import { describeBucket } from './describe-bucket.js';

type Reply = object | number;

/** A bucket that answers with these outputs, with a status that is no success, or that it has none. */
function look(replies: Readonly<Record<string, Reply>>, keyPrefix = 'orders/') {
  const send = async (command: object) => {
    const reply =
      replies[command.constructor.name.replace(/^Get(Bucket)?|(Configuration)?Command$/g, '')] ?? 404;
    if (typeof reply === 'object') return reply;
    throw Object.assign(new Error('refused'), { $metadata: { httpStatusCode: reply } });
  };
  const { signal } = new AbortController();
  return describeBucket({ bucket: 'leases', keyPrefix, client: { send }, signal });
}

const rule = (more: object) => ({ ID: 'tidy', Status: 'Enabled', ...more });
const expiring = { Expiration: { Days: 30 } };
const versioned = { Versioning: { Status: 'Enabled' } };
const retention = (more: object) => ({
  ObjectLock: { ObjectLockConfiguration: { Rule: { DefaultRetention: { Mode: 'GOVERNANCE', ...more } } } },
});

it('a plain bucket has nothing to say, nor a server that does not know such configurations', async () => {
  expect(await look({})).toEqual([]);
  expect(await look({ Versioning: {}, ObjectLock: 501, Lifecycle: 405, Replication: 500 })).toEqual([]);
});

it('what may not be read is one line, which says that no lease needs the rights', async () => {
  expect(await look({ Versioning: 403, Lifecycle: 403 })).toEqual([
    {
      ...{ id: 'bucket-configuration', status: 'ok' },
      detail:
        'not looked at for want of s3:GetBucketVersioning, s3:GetLifecycleConfiguration; no lease needs these rights',
    },
  ]);
});

it('versioning keeps each renewal: for ever, for the days of a rule, or longer by a retention', async () => {
  const noncurrent = { NoncurrentVersionExpiration: { NoncurrentDays: 2 } };
  const removed = { Lifecycle: { Rules: [rule(noncurrent)] } };
  const elsewhere = { Lifecycle: { Rules: [rule({ ...noncurrent, Filter: { Prefix: 'orders/locks' } })] } };
  const kept = async (replies: Readonly<Record<string, Reply>>) => {
    const facts = await look(replies);
    return facts
      .filter(({ id }) => id === 'bucket-versioning')
      .map(({ status, keptDays }) => [status, keptDays]);
  };
  expect(await kept(versioned)).toEqual([['warning', Number.POSITIVE_INFINITY]]);
  expect(await kept({ ...versioned, ...elsewhere })).toEqual([['warning', Number.POSITIVE_INFINITY]]);
  expect(await kept({ ...versioned, ...removed })).toEqual([['ok', 2]]);
  expect(await kept({ ...versioned, ...removed, ...retention({ Days: 14 }) })).toEqual([['ok', 14]]);
  expect(await kept({ ...versioned, ...removed, ...retention({ Years: 1 }) })).toEqual([['ok', 365]]);
  expect(await kept({ Versioning: { Status: 'Suspended' } })).toEqual([]);
});

it('a default retention of Object Lock is named', async () => {
  expect(await look(retention({ Days: 1 }))).toMatchObject([
    {
      id: 'bucket-object-lock',
      status: 'warning',
      detail: expect.stringMatching(/^a default retention of 1 day \(GOVERNANCE\)/),
    },
  ]);
});

it.each([
  ['the whole bucket', {}],
  ['a prefix around it', { Filter: { Prefix: 'ord' } }],
  ['a prefix in it', { Prefix: 'orders/locks/' }],
  ['sizes up to some', { Filter: { ObjectSizeLessThan: 500 } }],
])(
  'a rule that expires objects of %s is a fault: it removes leases and their versions',
  async (_, filter) => {
    const facts = await look({ Lifecycle: { Rules: [rule({ ...expiring, ...filter })] } });
    expect(facts).toMatchObject([
      {
        id: 'bucket-lifecycle',
        status: 'fault',
        detail: expect.stringMatching(/^rule tidy removes .* after 30 days/),
      },
    ]);
  },
);

it.each([
  ['is disabled', { ...expiring, Status: 'Disabled' }],
  ['is for another prefix', { ...expiring, Filter: { Prefix: 'logs/' } }],
  ['is for tagged objects', { ...expiring, Filter: { Tag: { Key: 'a', Value: 'b' } } }],
  [
    'is for tagged objects of a prefix',
    { ...expiring, Filter: { And: { Prefix: '', Tags: [{ Key: 'a', Value: 'b' }] } } },
  ],
  ['is for large objects', { ...expiring, Filter: { ObjectSizeGreaterThan: 100_000 } }],
  ['removes delete markers', { Expiration: { ExpiredObjectDeleteMarker: true } }],
  ['removes parts of uploads', { AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 } }],
])('a rule that %s is none for leases', async (_, more) => {
  expect(await look({ Lifecycle: { Rules: [rule(more)] } })).toEqual([]);
});

it('the rules of infra, which remove scratch objects, are none for leases; one for all of locks is', async () => {
  const { Rules } = JSON.parse(readFileSync(join(packageRoot, 'infra/ecs/lifecycle.json'), 'utf8'));
  expect(await look({ Lifecycle: { Rules } })).toEqual([]);
  const ofLocks = rule({ ...expiring, Filter: { Prefix: 'orders/locks/' } });
  expect(await look({ Lifecycle: { Rules: [ofLocks] } })).toMatchObject([{ status: 'fault' }]);
});

it('a rule that archives objects, and one that expires them on a day, are named', async () => {
  const archiving = { Transitions: [{ Days: 90, StorageClass: 'GLACIER' }] };
  const facts = await look({
    Lifecycle: { Rules: [rule(archiving), rule({ Expiration: { Date: new Date('2027-01-01') } })] },
  });
  expect(facts.map(({ status, detail }) => [status, detail.slice(0, 60)])).toEqual([
    ['warning', 'rule tidy moves objects to GLACIER after 90 days, where no t'],
    ['fault', 'rule tidy removes lease objects and cluster.json on 2027-01-'],
  ]);
});

it('replication is named with its copy, which must not be used as a store', async () => {
  const copies = (more: object) => ({
    Replication: {
      ReplicationConfiguration: {
        Rules: [{ Status: 'Enabled', Destination: { Bucket: 'arn:aws:s3:::copy' }, ...more }],
      },
    },
  });
  expect(await look(copies({}))).toMatchObject([
    {
      ...{ id: 'bucket-replication', status: 'warning' },
      detail: expect.stringMatching(/^copies each renewal to copy, .*never use the copy as a store/),
    },
  ]);
  expect(await look(copies({ Filter: { Prefix: 'logs/' } }))).toEqual([]);
});
