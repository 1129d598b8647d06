import { GetObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { adminClient, awsEnvironment, createBucket, type TestBucket } from './bucket.js';
import { type CamundaObject, camundaHeld, camundaReleased } from './camunda-objects.js';
import type { S3Access } from './servers/minio.js';

/** A bucket with nothing in it but what Camunda 8.9 would write, and how the command line reaches it. */
export interface CamundaBucket extends TestBucket {
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /**
   * Writes an object with its Content-Type and metadata. Resolves to its etag; `ifMatch` makes it
   * conditional.
   */
  put(object: CamundaObject, ifMatch?: string): Promise<string>;
  /** Every key with its etag and the time of its writing, which show whether anything was written. */
  state(): Promise<readonly string[]>;
  /**
   * A task that has read the object, and takes the lease by its first renewal, whatever has happened
   * meanwhile.
   */
  starter(
    id: number,
    taskId: string,
    options?: { readonly durationMs?: number; readonly aheadMs?: number },
  ): Promise<CamundaTask>;
}

export async function camundaBucket(s3: S3Access): Promise<CamundaBucket> {
  const client = adminClient(s3);
  const bucket = await createBucket(s3);
  const put = async (
    { key, body, metadata, contentType }: CamundaObject,
    ifMatch?: string,
  ): Promise<string> => {
    const condition = ifMatch === undefined ? {} : { IfMatch: ifMatch };
    const object = {
      Bucket: bucket.name,
      Key: key,
      Body: Buffer.from(body),
      ContentType: contentType,
      Metadata: { ...metadata },
    };
    return (await client.send(new PutObjectCommand({ ...object, ...condition }))).ETag ?? '';
  };
  return {
    ...bucket,
    put,
    options: ['--store', `s3://${bucket.name}`, '--endpoint', s3.endpoint],
    env: awsEnvironment(s3),
    state: async () => {
      const keys = await bucket.listKeys();
      return Promise.all(keys.map(async (key) => JSON.stringify([key, await bucket.getRaw(key)])));
    },
    starter: async (id, taskId, { durationMs = 15_000, aheadMs = 0 } = {}) => {
      const { etag, version } = await read(client, bucket.name, id);
      return new CamundaTask(
        { id, taskId, version: version + 1, etag },
        put,
        () => Date.now() + durationMs + aheadMs,
      );
    },
  };
}

async function read(
  client: S3Client,
  Bucket: string,
  id: number,
): Promise<{ readonly etag: string; readonly version: number }> {
  const { ETag = '', Metadata } = await client.send(new GetObjectCommand({ Bucket, Key: `${id}.json` }));
  return { etag: ETag, version: Number(Metadata?.version ?? 0) };
}

/** A task that holds a lease as Camunda's does: it renews by PUT alone, and releases by an empty body. */
export class CamundaTask {
  #known: Readonly<Record<number, number>>;

  constructor(
    private readonly lease: {
      readonly id: number;
      readonly taskId: string;
      readonly version: number;
      etag: string;
    },
    private readonly put: CamundaBucket['put'],
    private readonly expiry: () => number,
  ) {
    this.#known = { [lease.id]: lease.version };
  }

  /** @param known what it knows of the others' versions by now */
  async renew(known = this.#known): Promise<void> {
    this.#known = known;
    const { id, taskId, version, etag } = this.lease;
    this.lease.etag = await this.put(
      camundaHeld({ id, taskId, version, timestamp: this.expiry(), known }),
      etag,
    );
  }

  async release(): Promise<void> {
    this.lease.etag = await this.put(camundaReleased(this.lease.id, this.lease.version), this.lease.etag);
  }
}
