import { Stack } from 'aws-cdk-lib';
import type { ICluster } from 'aws-cdk-lib/aws-ecs';
import { type IGrantable, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IBucket } from 'aws-cdk-lib/aws-s3';
import { checkedPrefix, DEFAULT_PREFIX } from './key-prefix.js';

/**
 * `hold`: tasks and operators, who acquire, renew and administer leases. `read`: `status`, `console` and
 * other readers.
 */
export type LeaseRights = 'hold' | 'read';

/** What rights, and where. */
export interface LeasePolicyProps {
  readonly bucket: IBucket;
  /** Without a slash at either end. @default leases */
  readonly prefix?: string;
  readonly rights: LeaseRights;
}

/**
 * The least that nodelease needs in its bucket: four actions of S3, each on as few keys as it is used on.
 *
 * - `s3:ListBucket`, for names below the prefix alone: one listing shows which ids are free. It also decides
 *   how S3 answers a read of an object that does not exist: 404 to users who may list that very name, else
 *   403, which looks the same as a denial. Hence a pattern and not the bare prefix: S3 compares the
 *   whole key with it then.
 * - `s3:GetObject` on the prefix: reading leases and the settings of the cluster; S3 asks for it at a write
 *   with `If-Match`, too.
 * - `s3:PutObject` on the prefix: creating, renewing, taking over, releasing. Only conditional writes ever
 *   leave nodelease.
 * - `s3:DeleteObject` on `probe-*` and `locks/probe-*` alone: the scratch objects of the probe that proves at the
 *   first start, in `init` and in `doctor` that the store honours conditions. Leases are never deleted.
 *
 * Readers have the first two. A bucket encrypted by a key of KMS needs `kms:Decrypt`, and
 * `kms:GenerateDataKey` to write, on that key.
 *
 * These are the statements, for a policy of any kind; those on a key of KMS are left to the caller.
 *
 * @throws {@link SettingError} when the prefix cannot be used
 */
export function leaseStatements(props: LeasePolicyProps): PolicyStatement[] {
  const { bucket, rights } = props;
  const prefix = checkedPrefix(props.prefix ?? DEFAULT_PREFIX);
  const objects = bucket.arnForObjects(`${prefix}/*`);
  const reading = [
    new PolicyStatement({
      sid: 'ListLeases',
      actions: ['s3:ListBucket'],
      resources: [bucket.bucketArn],
      conditions: { StringLike: { 's3:prefix': `${prefix}/*` } },
    }),
    new PolicyStatement({ sid: 'ReadLeases', actions: ['s3:GetObject'], resources: [objects] }),
  ];
  if (rights === 'read') return reading;
  return [
    ...reading,
    new PolicyStatement({ sid: 'WriteLeases', actions: ['s3:PutObject'], resources: [objects] }),
    new PolicyStatement({
      sid: 'RemoveScratchObjects',
      actions: ['s3:DeleteObject'],
      resources: ['probe-*', 'locks/probe-*'].map((key) => bucket.arnForObjects(`${prefix}/${key}`)),
    }),
  ];
}

/**
 * Gives the rights of {@link leaseStatements} to a role, and those on the bucket's key of KMS where it knows
 * one.
 *
 * @throws {@link SettingError} when the prefix cannot be used
 */
export function grantLeases(grantee: IGrantable, props: LeasePolicyProps): void {
  for (const statement of leaseStatements(props)) grantee.grantPrincipal.addToPrincipalPolicy(statement);
  const key = props.bucket.encryptionKey;
  if (key === undefined) return;
  if (props.rights === 'hold') key.grant(grantee, 'kms:Decrypt', 'kms:GenerateDataKey');
  else key.grant(grantee, 'kms:Decrypt');
}

/** Lets the tasks of a cluster protect themselves from scale-in: for `NODELEASE_ECS_PROTECT`. */
export function grantProtection(grantee: IGrantable, cluster: ICluster): void {
  const tasks = { service: 'ecs', resource: 'task', resourceName: `${cluster.clusterName}/*` };
  grantee.grantPrincipal.addToPrincipalPolicy(
    new PolicyStatement({
      sid: 'ProtectTasks',
      actions: ['ecs:GetTaskProtection', 'ecs:UpdateTaskProtection'],
      resources: [Stack.of(cluster).formatArn(tasks)],
    }),
  );
}
