// What `doctor` and `audit` use of the SDK in addition to `sdk.ts`. It is apart, so that the start of `run` does not
// load it. In the bundled command line these commands come from the bundle, whichever client sends them.

export {
  GetBucketLifecycleConfigurationCommand,
  GetBucketReplicationCommand,
  GetBucketVersioningCommand,
  GetObjectLockConfigurationCommand,
  type LifecycleRule,
  ListObjectVersionsCommand,
  type ListObjectVersionsCommandInput,
  type ObjectVersion,
} from '@aws-sdk/client-s3';
