// What the store uses of the SDK. In the bundled command line, `cli/s3-sdk.ts` takes the place of this
// module.

export {
  CreateSessionCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandInput,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
