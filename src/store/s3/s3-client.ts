import type {
  DeleteObjectCommand,
  DeleteObjectCommandOutput,
  GetObjectCommand,
  GetObjectCommandOutput,
  ListObjectsV2Command,
  ListObjectsV2CommandOutput,
  PutObjectCommand,
  PutObjectCommandOutput,
  S3ClientConfig,
} from '@aws-sdk/client-s3';
import { ConfigError } from '../../base/errors.js';
import { S3Client } from './sdk.js';

/** The requests that the store makes. */
export type S3Command = GetObjectCommand | PutObjectCommand | ListObjectsV2Command | DeleteObjectCommand;

/** What the store uses of the SDK's client, and nothing else. */
export interface S3Requests {
  /** Reads an object. */
  send(command: GetObjectCommand, options: { abortSignal: AbortSignal }): Promise<GetObjectCommandOutput>;
  /** Writes one, on its condition. */
  send(command: PutObjectCommand, options: { abortSignal: AbortSignal }): Promise<PutObjectCommandOutput>;
  /** Lists a page of them. */
  send(command: ListObjectsV2Command, options: { abortSignal: AbortSignal }): Promise<ListObjectsV2CommandOutput>;
  /** Deletes one: only scratch objects of the probe ever are. */
  send(command: DeleteObjectCommand, options: { abortSignal: AbortSignal }): Promise<DeleteObjectCommandOutput>;
  /** Closes its connections. */
  destroy(): void;
}

/** How to reach the S3 service. */
export interface S3ClientOptions {
  /** The http(s) URL of an S3-compatible server. @default `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, else AWS */
  readonly endpoint?: string;
  /** @default `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's region, else `us-east-1` when there is an endpoint */
  readonly region?: string;
  /** How long one request may take, in milliseconds. */
  readonly requestTimeoutMs: number;
}

// Enough for the probe's two races of eight writers, whose connections stay open until the next ones; a lease holder never needs more than one or two.
const MAX_SOCKETS = 16;

const WARNING_SWITCH = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED';

/**
 * Makes the SDK's client with its own retries off: a blind retry of a conditional write turns a lost reply into a false
 * conflict (rule 5). Credentials come from the AWS default chain, at the first request.
 *
 * @throws {@link ConfigError} when no region is known and no endpoint is given
 */
export async function createS3Client(options: S3ClientOptions): Promise<S3Requests> {
  const endpoint = options.endpoint ?? (process.env.AWS_ENDPOINT_URL_S3 || process.env.AWS_ENDPOINT_URL || undefined);
  const region = options.region ?? (process.env.AWS_REGION || process.env.AWS_DEFAULT_REGION || undefined);
  const config: S3ClientConfig = {
    maxAttempts: 1,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // The whole call has a deadline of its own; this one tells a server that cannot be reached from one that does not answer.
    requestHandler: {
      connectionTimeout: Math.ceil(options.requestTimeoutMs * 0.8),
      requestTimeout: options.requestTimeoutMs,
      throwOnRequestTimeout: true,
      socketTimeout: 0,
      httpAgent: { keepAlive: true, maxSockets: MAX_SOCKETS, maxFreeSockets: MAX_SOCKETS },
      httpsAgent: { keepAlive: true, maxSockets: MAX_SOCKETS, maxFreeSockets: MAX_SOCKETS },
    },
    // Whatever the SDK has to say arrives as an error; standard error belongs to the program.
    logger: SILENT,
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
  };
  if (region !== undefined) return makeClient({ ...config, region });
  const client = makeClient(config);
  try {
    await client.config.region();
    return client;
  } catch (cause) {
    client.destroy();
    if (endpoint !== undefined) return makeClient({ ...config, region: 'us-east-1' });
    throw Object.assign(
      new ConfigError(
        '--region',
        undefined,
        'the region of the bucket, here, in AWS_REGION or in the AWS profile (or --endpoint, for a server that is not AWS)',
      ),
      { cause },
    );
  }
}

const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

function makeClient(config: S3ClientConfig): S3Client {
  // The SDK greets every process on an older Node with six lines on standard error, once; which Node this package supports is its own affair.
  const before = process.env[WARNING_SWITCH];
  process.env[WARNING_SWITCH] = 'true';
  try {
    return new S3Client(config);
  } finally {
    if (before === undefined) delete process.env[WARNING_SWITCH];
    else process.env[WARNING_SWITCH] = before;
  }
}
