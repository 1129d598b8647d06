import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { checked, maybe, NAME, TEXT } from '../../base/arguments.js';
import { ConfigError } from '../../base/errors.js';
import { ensureHome } from '../../base/host/facts.js';
import { KEPT_CONNECTIONS } from '../http-client.js';
import { type CredentialChain, credentialSource, RepeatedCredentials } from './credentials.js';
import { givenEndpoint } from './endpoint.js';
import { S3LeaseStore, type S3LeaseStoreOptions } from './s3-lease-store.js';
import { S3Client } from './sdk.js';

/** How to reach the S3 service. */
export interface S3ClientOptions {
  /**
   * The http(s) URL of an S3-compatible server.
   * @default `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, else AWS
   */
  readonly endpoint?: string | undefined;
  /**
   * @default `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's region, else `us-east-1` when there is an
   * endpoint
   */
  readonly region?: string | undefined;
  /** How long one request may take, in milliseconds. */
  readonly requestTimeoutMs: number;
}

/** Settings of {@link openS3Store}: those of the store, and how to reach the service. */
export interface S3StoreOptions extends Omit<S3LeaseStoreOptions, 'client'>, S3ClientOptions {}

/**
 * Makes a store with its own client. Nothing is sent yet.
 * @throws {ConfigError} when no region is known and no endpoint is given
 */
export async function openS3Store(options: S3StoreOptions): Promise<S3LeaseStore> {
  checked(options, { bucket: NAME, prefix: TEXT, endpoint: maybe(TEXT), region: maybe(TEXT) });
  const client = await createS3Client(options);
  const { config } = client;
  const newChain = () => config.credentialDefaultProvider({ ...config, parentClientConfig: config });
  const credentials = new RepeatedCredentials(newChain, options.clock);
  // Marked as memoized, so that the SDK keeps no credentials itself: it would not renew them in advance.
  config.credentials = Object.assign<CredentialChain, object>(credentials.provide, { memoized: true });
  return new S3LeaseStore({
    ...options,
    client: {
      send: client.send.bind(client) as typeof client.send,
      config,
      awaitedSource: () => (credentials.isAwaited ? credentialSource() : undefined),
      destroy: () => {
        credentials.close();
        client.destroy();
      },
    },
  });
}

const AGENT = { ...KEPT_CONNECTIONS, maxSockets: 16 };

const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

const WARNING_SWITCH = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED';

/**
 * Makes the SDK's client with its own retries off: a blind retry of a conditional write turns a lost reply
 * into a false conflict (rule 5). Credentials come from the AWS default chain, at the first request.
 *
 * @throws {ConfigError} when no region is known and no endpoint is given
 */
export async function createS3Client(options: S3ClientOptions): Promise<S3Client> {
  const endpoint = givenEndpoint(options.endpoint)?.url;
  const region = options.region ?? (process.env.AWS_REGION || process.env.AWS_DEFAULT_REGION || undefined);
  const config: S3ClientConfig & { readonly ignoreCache: true } = {
    maxAttempts: 1,
    retryMode: 'standard',
    // For the providers of credentials: a file is read whenever they are asked, since it may have been
    // rewritten.
    ignoreCache: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // The whole call has its own deadline; this one distinguishes a server that cannot be reached from one
    // that does not answer.
    requestHandler: {
      connectionTimeout: Math.ceil(options.requestTimeoutMs * 0.8),
      requestTimeout: options.requestTimeoutMs,
      throwOnRequestTimeout: true,
      socketTimeout: 0,
      httpAgent: AGENT,
      httpsAgent: AGENT,
    },
    // What the SDK has to say arrives as an error; standard error belongs to the program.
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
    const expected =
      'the region of the bucket: set it, or AWS_REGION (for a server that is not AWS, set an endpoint)';
    throw Object.assign(new ConfigError('region', undefined, expected), { cause });
  }
}

/** Steps of each request that do nothing for those of a store. */
const UNUSED_STEPS = [
  'loggerMiddleware',
  'recursionDetectionMiddleware',
  'regionRedirectMiddleware',
  'addExpectContinueMiddleware',
];

function makeClient(config: S3ClientConfig): S3Client {
  ensureHome(process.env);
  // The SDK greets every process on an older Node with six lines on standard error, once; which Node this
  // package supports is its own affair.
  const before = process.env[WARNING_SWITCH];
  process.env[WARNING_SWITCH] = 'true';
  try {
    const client = new S3Client(config);
    for (const step of UNUSED_STEPS) client.middlewareStack.remove(step);
    return client;
  } finally {
    if (before === undefined) delete process.env[WARNING_SWITCH];
    else process.env[WARNING_SWITCH] = before;
  }
}
