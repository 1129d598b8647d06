import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';

// The least that a program on S3 does: bundled, it is what the start of nodelease is compared with. It takes
// the server and the bucket from its arguments.

async function main() {
  const [, , endpoint = '', bucket] = process.argv;
  const client = new S3Client({ endpoint, forcePathStyle: true });
  const object = { Bucket: bucket, Key: 'get-and-put.json' };
  await client.send(new PutObjectCommand({ ...object, Body: '{}', ContentType: 'application/json' }));
  const { Body } = await client.send(new GetObjectCommand(object));
  process.stdout.write((await Body?.transformToString()) ?? '');
  client.destroy();
}

void main();
