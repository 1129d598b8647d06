import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { conditionalWriteFault, removeBuckets } from '../bucket.js';
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
  /** Stops the server and removes its data; of a server that was there before, only this run's buckets. Idempotent. */
  stop(): Promise<void>;
}

/** A server without the facts that are the same for all of them. */
export type RunningServer = Omit<S3Server, 'bucketPrefix'>;

const HELP = `Tests need a real S3 server and none could be started. One of these will do:
  - Docker: start its daemon (or set DOCKER_HOST),
  - Go 1.24 or later on the PATH: MinIO is then built once and cached,
  - an S3 server of your own: set NODELEASE_TEST_S3_ENDPOINT, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY (and AWS_REGION).`;

/**
 * Starts, or finds, a real S3 server: the one that NODELEASE_TEST_S3_ENDPOINT names, else MinIO in a container where a
 * Docker API is reachable, else MinIO as a local process.
 *
 * @throws Error when there is none, or when the server does not keep conditional writes; tests are never skipped for that
 */
export async function startMinio(): Promise<S3Server> {
  const bucketPrefix = `nodelease-test-${randomBytes(4).toString('hex')}-`;
  const server = { ...(await startAny(bucketPrefix)), bucketPrefix };
  const fault = await conditionalWriteFault(server).catch((error: unknown) => `cannot be used: ${String(error)}`);
  if (fault !== undefined) {
    await server.stop().catch(() => {});
    throw new Error(`${server.description} ${fault}`);
  }
  return server;
}

async function startAny(bucketPrefix: string): Promise<RunningServer> {
  const endpoint = process.env.NODELEASE_TEST_S3_ENDPOINT;
  if (endpoint) return external(endpoint, bucketPrefix);
  // `container` or `process` insists on one kind; without it a container is preferred.
  const kind = process.env.NODELEASE_TEST_S3_SERVER;
  if (kind && kind !== 'container' && kind !== 'process')
    throw new Error(`NODELEASE_TEST_S3_SERVER: expected container or process, got ${kind}`);
  if (kind === 'container' || (!kind && process.env.DOCKER_HOST)) return startMinioContainer();
  const failures: string[] = [];
  if (!kind && existsSync('/var/run/docker.sock')) {
    try {
      return await startMinioContainer();
    } catch (error) {
      failures.push(`container: ${String(error)}`);
      process.stderr.write(`MinIO could not be started in a container, trying a local process: ${String(error)}\n`);
    }
  }
  try {
    return await startMinioProcess(await findMinio());
  } catch (error) {
    failures.push(`local process: ${String(error)}`);
  }
  throw new Error(`${HELP}\n${failures.join('\n')}`);
}

function external(endpoint: string, bucketPrefix: string): RunningServer {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_REGION: region } = process.env;
  if (!accessKeyId || !secretAccessKey) {
    throw new Error('NODELEASE_TEST_S3_ENDPOINT is set, so AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set too');
  }
  const server = { endpoint, region: region || 'us-east-1', accessKeyId, secretAccessKey };
  return {
    ...server,
    description: `${endpoint} (NODELEASE_TEST_S3_ENDPOINT)`,
    stop: () => removeBuckets({ ...server, bucketPrefix }),
  };
}
