import { App, Stack } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { Key } from 'aws-cdk-lib/aws-kms';
import { describe, expect, it } from 'vitest';
import { LOCK_NAME } from '../../src/core/store/lock-url.js';
import { LeaseBucket, type LeaseBucketProps } from '../lib/lease-bucket.js';
import { like } from './policy-judge.js';
import { plain, resourcesOf, statementsOf } from './stacks.js';

function bucket(props: LeaseBucketProps = {}): Template {
  const stack = new Stack(new App(), 'Stack');
  new LeaseBucket(stack, 'Leases', props);
  return Template.fromStack(stack);
}

describe('the bucket of the leases', () => {
  const template = bucket();

  it('refuses requests without TLS, and with an outdated one, to everybody', () => {
    const [noTls, oldTls] = statementsOf(template, 'AWS::S3::BucketPolicy');
    for (const statement of [noTls, oldTls]) {
      expect(statement).toMatchObject({ Effect: 'Deny', Principal: { AWS: '*' }, Action: 's3:*' });
      expect(resourcesOf(statement)).toEqual(['<LeasesBucket>', '<LeasesBucket>/*']);
    }
    expect(noTls?.Condition).toEqual({ Bool: { 'aws:SecureTransport': 'false' } });
    expect(oldTls?.Condition).toEqual({ NumericLessThan: { 's3:TlsVersion': 1.2 } });
  });

  it('refuses a write that bears neither condition, and no other', () => {
    const statement = statementsOf(template, 'AWS::S3::BucketPolicy').find(
      ({ Sid }) => Sid === 'OnlyConditionalWrites',
    );
    expect(statement).toMatchObject({ Effect: 'Deny', Principal: { AWS: '*' }, Action: 's3:PutObject' });
    expect(plain(statement?.Resource)).toBe('<LeasesBucket>/leases/*');
    expect(statement?.Condition).toEqual({
      Null: { 's3:if-none-match': 'true', 's3:if-match': 'true' },
      Bool: { 's3:ObjectCreationOperation': 'true' },
    });
  });

  it('refuses the deletion of every lease, of the settings and of the map of shards, but not of the probes’ scratch objects', () => {
    const statement = statementsOf(template, 'AWS::S3::BucketPolicy').find(
      ({ Sid }) => Sid === 'LeasesAreNeverDeleted',
    );
    expect(statement).toMatchObject({
      Effect: 'Deny',
      Principal: { AWS: '*' },
      Action: ['s3:DeleteObject', 's3:DeleteObjectVersion'],
    });
    const patterns = resourcesOf(statement);
    const refused = (key: string) =>
      patterns.some((pattern) => like(`<LeasesBucket>/leases/${key}`, pattern));
    for (const key of ['cluster.json', 'shards.json', '0.json', '9.json', '12.json', '65527.json'])
      expect(refused(key), key).toBe(true);
    for (const key of ['cluster.json', 'nightly/0.json', 'nightly/cluster.json', 'nightly/tick.json'])
      expect(refused(`locks/${key}`), key).toBe(true);
    for (const key of ['probe-0123456789abcdef.json', 'locks/probe-0123456789abcdef.json'])
      expect(refused(key), key).toBe(false);
    // What begins so may be deleted: it is no name of a lock.
    expect(LOCK_NAME.test('probe-nightly')).toBe(false);
  });

  it('has no further statements', () => {
    expect(statementsOf(template, 'AWS::S3::BucketPolicy')).toHaveLength(4);
  });

  it('is private, encrypted, without old versions, and stays with its policy when its stack goes', () => {
    template.hasResource('AWS::S3::BucketPolicy', {
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
    });
    template.hasResource('AWS::S3::Bucket', {
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        BucketEncryption: {
          ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } }],
        },
        PublicAccessBlockConfiguration: {
          BlockPublicAcls: true,
          BlockPublicPolicy: true,
          IgnorePublicAcls: true,
          RestrictPublicBuckets: true,
        },
        OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' }] },
        VersioningConfiguration: Match.absent(),
      },
    });
  });

  it('expires nothing but what a probe left behind, and uploads that were not completed', () => {
    const [resource] = Object.values(template.findResources('AWS::S3::Bucket'));
    expect(resource?.Properties.LifecycleConfiguration.Rules).toEqual([
      {
        Id: 'incomplete-uploads',
        Status: 'Enabled',
        AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 },
      },
      { Id: 'scratch-objects', Status: 'Enabled', Prefix: 'leases/probe-', ExpirationInDays: 1 },
      {
        Id: 'scratch-objects-of-locks',
        Status: 'Enabled',
        Prefix: 'leases/locks/probe-',
        ExpirationInDays: 1,
      },
    ]);
  });

  it('takes a key of KMS, with a bucket key to save requests', () => {
    const stack = new Stack(new App(), 'Stack');
    new LeaseBucket(stack, 'Leases', { encryptionKey: new Key(stack, 'Key') });
    Template.fromStack(stack).hasResourceProperties('AWS::S3::Bucket', {
      BucketEncryption: {
        ServerSideEncryptionConfiguration: [
          { BucketKeyEnabled: true, ServerSideEncryptionByDefault: { SSEAlgorithm: 'aws:kms' } },
        ],
      },
    });
  });

  it.each(['', '/leases', 'leases/', 'a//b', 'a/../b', 'le ases', 'leases*', `\${aws:username}`, 'a?'])(
    'refuses the prefix "%s"',
    (prefix) => {
      expect(() => bucket({ prefix })).toThrow(/^prefix: expected letters, digits/);
    },
  );

  it('takes a prefix of several parts', () => {
    const [, , writes] = statementsOf(bucket({ prefix: 'prod/orders_1' }), 'AWS::S3::BucketPolicy');
    expect(plain(writes?.Resource)).toBe('<LeasesBucket>/prod/orders_1/*');
  });
});
