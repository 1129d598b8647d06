import { randomBytes } from 'node:crypto';
import {
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import type { S3Access } from './servers/minio.js';

/** An object as it lies in the bucket. */
export interface RawObject {
  readonly body: string;
  /** Lower-case keys. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly etag: string;
  readonly lastModified: Date;
}

/** A bucket of one test, and a way to look behind the store's back. */
export interface TestBucket {
  readonly name: string;
  /** Writes an object without any condition. */
  putRaw(key: string, body: string, metadata?: Readonly<Record<string, string>>): Promise<void>;
  /** The object, or undefined when there is none of that key. */
  getRaw(key: string): Promise<RawObject | undefined>;
  /** Every key of the bucket, or those below a prefix, in order. */
  listKeys(prefix?: string): Promise<string[]>;
  /** Deletes an object, as an operator by mistake. */
  deleteRaw(key: string): Promise<void>;
}

/** A client with full rights on the test server, path style, with the SDK's own retries. */
export function adminClient(s3: S3Access): S3Client {
  return new S3Client({
    endpoint: s3.endpoint,
    region: s3.region,
    forcePathStyle: true,
    credentials: { accessKeyId: s3.accessKeyId, secretAccessKey: s3.secretAccessKey },
  });
}

/** The environment in which a process finds the test server's credentials through the AWS default chain. */
export function awsEnvironment(s3: S3Access): Record<string, string> {
  return {
    AWS_ACCESS_KEY_ID: s3.accessKeyId,
    AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
    AWS_REGION: s3.region,
  };
}

/**
 * Creates a bucket that no other test uses. It goes with the server, or at the end of the run.
 * @param isVersioned whether it keeps what writes replace
 */
export async function createBucket(s3: S3Access, isVersioned = false): Promise<TestBucket> {
  const name = `${s3.bucketPrefix}${randomBytes(6).toString('hex')}`;
  const client = adminClient(s3);
  await client.send(new CreateBucketCommand({ Bucket: name }));
  const VersioningConfiguration = { Status: 'Enabled' } as const;
  if (isVersioned)
    await client.send(new PutBucketVersioningCommand({ Bucket: name, VersioningConfiguration }));
  return {
    name,

    async putRaw(key, body, metadata = {}) {
      // As bytes: an empty string would be taken for no body at all, of unknown length.
      await client.send(
        new PutObjectCommand({ Bucket: name, Key: key, Body: Buffer.from(body), Metadata: { ...metadata } }),
      );
    },

    async getRaw(key) {
      const reply = await client
        .send(new GetObjectCommand({ Bucket: name, Key: key }))
        .catch((error: { name?: string }) => {
          if (error.name === 'NoSuchKey') return undefined;
          throw error;
        });
      if (!reply?.Body) return undefined;
      return {
        body: await reply.Body.transformToString('utf-8'),
        metadata: reply.Metadata ?? {},
        etag: reply.ETag ?? '',
        lastModified: reply.LastModified ?? new Date(Number.NaN),
      };
    },

    listKeys: (prefix) => listKeys(client, name, prefix),

    async deleteRaw(key) {
      await client.send(new DeleteObjectCommand({ Bucket: name, Key: key }));
    },
  };
}

/**
 * Tries whether the server refuses a second create and a stale etag.
 *
 * @returns what it does wrong, or undefined when it keeps both conditions
 */
export async function conditionalWriteFault(s3: S3Access): Promise<string | undefined> {
  const client = adminClient(s3);
  const Bucket = `${s3.bucketPrefix}conditions`;
  const put = (key: string, condition: { IfNoneMatch?: string; IfMatch?: string }, Body: string) =>
    client.send(new PutObjectCommand({ Bucket, Key: key, Body, ...condition })).then(
      () => true,
      (error: { $metadata?: { httpStatusCode?: number } }) => {
        if (error.$metadata?.httpStatusCode === 412) return false;
        throw error;
      },
    );
  try {
    await client.send(new CreateBucketCommand({ Bucket }));
    if (!(await put('a', { IfNoneMatch: '*' }, '1'))) return 'refuses to create an object that is not there';
    if (await put('a', { IfNoneMatch: '*' }, '2')) return 'ignores If-None-Match';
    if (await put('a', { IfMatch: '"00000000000000000000000000000000"' }, '3')) return 'ignores If-Match';
    return undefined;
  } finally {
    client.destroy();
  }
}

/** Removes every bucket of this run, objects included. */
export async function removeBuckets(s3: S3Access): Promise<void> {
  const client = adminClient(s3);
  const { Buckets = [] } = await client.send(new ListBucketsCommand({}));
  for (const { Name: Bucket = '' } of Buckets.filter((bucket) => bucket.Name?.startsWith(s3.bucketPrefix))) {
    for (let left = true; left; ) {
      const page = await client.send(new ListObjectVersionsCommand({ Bucket }));
      const rows = [...(page.Versions ?? []), ...(page.DeleteMarkers ?? [])];
      for (const { Key, VersionId } of rows)
        await client.send(new DeleteObjectCommand({ Bucket, Key, VersionId }));
      left = rows.length > 0;
    }
    await client.send(new DeleteBucketCommand({ Bucket }));
  }
  client.destroy();
}

async function listKeys(client: S3Client, Bucket: string, prefix?: string): Promise<string[]> {
  const keys: string[] = [];
  let token: string | undefined;
  do {
    const page = await client.send(
      new ListObjectsV2Command({
        Bucket,
        ...(prefix === undefined ? {} : { Prefix: prefix }),
        ...(token === undefined ? {} : { ContinuationToken: token }),
      }),
    );
    for (const object of page.Contents ?? []) if (object.Key !== undefined) keys.push(object.Key);
    token = page.NextContinuationToken;
  } while (token !== undefined);
  return keys;
}
