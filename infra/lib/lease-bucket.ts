import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import { AnyPrincipal, Effect, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { checkedPrefix, DEFAULT_PREFIX } from './key-prefix.js';

/** Settings of a {@link LeaseBucket}. */
export interface LeaseBucketProps {
  /** Where the lease objects stand, without a slash at either end. @default leases */
  readonly prefix?: string;
  /**
   * A key of KMS to encrypt with. Every write and read of a lease then needs KMS as well: one more service
   * that a renewal fails with, more permissions, and, as far as the bucket key does not save them, requests
   * that are paid for. @default the keys of S3 (SSE-S3), free of charge
   */
  readonly encryptionKey?: IKey;
}

/** The name of the request metrics, of which {@link LeaseAlarms} reads. */
export const REQUEST_METRICS = 'leases';

/**
 * A bucket for lease objects. It and its policy stay when their stack goes: with it would go the versions, and
 * with them the fencing.
 *
 * Its policy refuses, to every user, what would break the protocol: requests without TLS, writes of a lease
 * without `If-None-Match` or `If-Match`, and the deletion of a lease or a lock (its versions would start again at
 * 1), of the settings and of the map of shards. An administrator who means it has to take the policy off first.
 *
 * It keeps no old versions of objects: a renewal every few seconds would pile up thousands of them a day
 * behind every key. What they would protect from, an overwrite or a deletion by mistake, is refused above.
 *
 * Source of the conditions: Amazon S3 User Guide, "Enforce conditional writes on Amazon S3 buckets".
 */
export class LeaseBucket extends Construct {
  readonly bucket: Bucket;
  readonly prefix: string;

  /** @throws {@link SettingError} when the prefix cannot be used */
  constructor(scope: Construct, id: string, props: LeaseBucketProps = {}) {
    super(scope, id);
    const { encryptionKey } = props;
    this.prefix = checkedPrefix(props.prefix ?? DEFAULT_PREFIX);
    this.bucket = new Bucket(this, 'Bucket', {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      versioned: false,
      removalPolicy: RemovalPolicy.RETAIN,
      ...(encryptionKey === undefined
        ? { encryption: BucketEncryption.S3_MANAGED }
        : { encryption: BucketEncryption.KMS, encryptionKey, bucketKeyEnabled: true }),
      lifecycleRules: [
        { id: 'incomplete-uploads', abortIncompleteMultipartUploadAfter: Duration.days(1) },
        // What a probe leaves behind that was killed in the middle.
        { id: 'scratch-objects', prefix: `${this.prefix}/probe-`, expiration: Duration.days(1) },
        {
          id: 'scratch-objects-of-locks',
          prefix: `${this.prefix}/locks/probe-`,
          expiration: Duration.days(1),
        },
      ],
      metrics: [{ id: REQUEST_METRICS, prefix: `${this.prefix}/` }],
    });
    this.bucket.addToResourcePolicy(this.#refuseUnconditionalWrites());
    this.bucket.addToResourcePolicy(this.#refuseDeletion());
    this.bucket.policy?.applyRemovalPolicy(RemovalPolicy.RETAIN);
  }

  #refuseUnconditionalWrites(): PolicyStatement {
    return new PolicyStatement({
      sid: 'OnlyConditionalWrites',
      effect: Effect.DENY,
      principals: [new AnyPrincipal()],
      actions: ['s3:PutObject'],
      resources: [this.bucket.arnForObjects(`${this.prefix}/*`)],
      conditions: {
        // Both have to be absent for the statement to apply.
        Null: { 's3:if-none-match': 'true', 's3:if-match': 'true' },
        // Requests that begin a multipart upload, or add to one, know no conditions; the one that completes
        // it does.
        Bool: { 's3:ObjectCreationOperation': 'true' },
      },
    });
  }

  #refuseDeletion(): PolicyStatement {
    // Each name of a lease, the cluster's settings, the map of shards, and all of each lock; no scratch object of a
    // probe.
    const locks = ['locks/cluster.json', 'locks/*/*'];
    const keys = [
      'cluster.json',
      'shards.json',
      ...locks,
      ...Array.from({ length: 10 }, (_, digit) => `${digit}*`),
    ];
    return new PolicyStatement({
      sid: 'LeasesAreNeverDeleted',
      effect: Effect.DENY,
      principals: [new AnyPrincipal()],
      actions: ['s3:DeleteObject', 's3:DeleteObjectVersion'],
      resources: keys.map((key) => this.bucket.arnForObjects(`${this.prefix}/${key}`)),
    });
  }
}
