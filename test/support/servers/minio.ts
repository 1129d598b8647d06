import { randomBytes } from 'node:crypto';
import { conditionalWriteFault, removeBuckets } from '../bucket.js';
import { containerOrProcess } from './container-or-process.js';
import { startMinioContainer } from './minio-container.js';
import { findMinio, startMinioProcess } from './minio-process.js';

/** How to reach an S3 server with full rights. Plain data, so that it can be handed to test workers. */
export interface S3Access {
  /** For example `http://127.0.0.1:9000`. */
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Every bucket that the tests create begins with this; no other run uses it. */
  readonly bucketPrefix: string;
}

/** An S3 server that tests may use. */
export interface S3Server extends S3Access {
  /** Where it came from, for people. */
  readonly description: string;
  /**
   * Stops the server and removes its data; of a server that was there before, only this run's buckets.
   * Idempotent.
   */
  stop(): Promise<void>;
}

/** A server without the facts that are the same for all of them. */
export type RunningServer = Omit<S3Server, 'bucketPrefix'>;

/**
 * Starts, or finds, a real S3 server: the one that NODELEASE_TEST_S3_ENDPOINT names, else MinIO in a
 * container where a Docker API is reachable, else MinIO as a local process.
 *
 * @throws Error when there is none, or when the server does not keep conditional writes; tests are never
 * skipped for that
 */
export async function startMinio(): Promise<S3Server> {
  const bucketPrefix = `nodelease-test-${randomBytes(4).toString('hex')}-`;
  const server = { ...(await startAny(bucketPrefix)), bucketPrefix };
  const fault = await conditionalWriteFault(server).catch(
    (error: unknown) => `cannot be used: ${String(error)}`,
  );
  if (fault !== undefined) {
    await server.stop().catch(() => {});
    throw new Error(`${server.description} ${fault}`);
  }
  return server;
}

async function startAny(bucketPrefix: string): Promise<RunningServer> {
  const endpoint = process.env.NODELEASE_TEST_S3_ENDPOINT;
  if (endpoint) return external(endpoint, bucketPrefix);
  return containerOrProcess('MinIO', 'NODELEASE_TEST_S3_SERVER', {
    container: startMinioContainer,
    process: async () => startMinioProcess(await findMinio()),
  });
}

function external(endpoint: string, bucketPrefix: string): RunningServer {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_REGION: region,
  } = process.env;
  if (!accessKeyId || !secretAccessKey) {
    throw new Error(
      'NODELEASE_TEST_S3_ENDPOINT is set, so AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set too',
    );
  }
  const server = { endpoint, region: region || 'us-east-1', accessKeyId, secretAccessKey };
  return {
    ...server,
    description: `${endpoint} (NODELEASE_TEST_S3_ENDPOINT)`,
    stop: () => removeBuckets({ ...server, bucketPrefix }),
  };
}
