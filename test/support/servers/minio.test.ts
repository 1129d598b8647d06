import { describe, expect, inject, test } from 'vitest';
import { awsEnvironment, conditionalWriteFault, createBucket } from '../bucket.js';
import { startMinioProcess } from './minio-process.js';

describe('the S3 server of this run', () => {
  test('keeps conditional writes', async () => {
    const s3 = inject('s3');
    expect(await conditionalWriteFault({ ...s3, bucketPrefix: `${s3.bucketPrefix}again-` })).toBeUndefined();
  });

  test('gives every test its own bucket, in which it can look and meddle', async () => {
    const bucket = await createBucket(inject('s3'));
    expect((await createBucket(inject('s3'))).name).not.toBe(bucket.name);
    expect(await bucket.getRaw('p/0.json')).toBeUndefined();
    await bucket.putRaw('p/0.json', '{"ü":1}', { version: '3' });
    await bucket.putRaw('p/1.json', '');
    await bucket.putRaw('q', 'x');
    expect(await bucket.getRaw('p/0.json')).toMatchObject({
      body: '{"ü":1}',
      metadata: { version: '3' },
      etag: expect.stringMatching(/^".+"$/),
    });
    expect((await bucket.getRaw('p/1.json'))?.body).toBe('');
    expect(await bucket.listKeys()).toEqual(['p/0.json', 'p/1.json', 'q']);
    expect(await bucket.listKeys('p/')).toEqual(['p/0.json', 'p/1.json']);
    await bucket.deleteRaw('q');
    expect(await bucket.listKeys()).toEqual(['p/0.json', 'p/1.json']);
  });

  test('can be used through the AWS default credential chain', () => {
    const { accessKeyId, secretAccessKey } = inject('s3');
    expect(awsEnvironment(inject('s3'))).toMatchObject({
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    });
  });
});

test('a binary that is no server fails loudly and at once', async () => {
  await expect(startMinioProcess('/bin/false')).rejects.toThrow(
    'MinIO did not get ready: Error: it ended with 1',
  );
});
