import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3';
import { checkPlain } from '../../base/arguments.js';
import type { Clock } from '../../base/clock.js';
import { ConfigError } from '../../base/errors.js';
import { ensureHome } from '../../base/host/facts.js';
import { KEPT_CONNECTIONS } from '../http-client.js';
import { checkEndpoint } from '../store-kind.js';
import type { AwsAccount } from './aws-store-driver.js';
import { type CredentialChain, credentialSource, RepeatedCredentials } from './credentials.js';

/** What the clients of all services have. */
interface AwsClient {
  readonly config: Pick<S3Client['config'], 'region' | 'credentials' | 'credentialDefaultProvider'>;
  readonly middlewareStack: { remove(step: string): boolean };
  destroy(): void;
}

/** How to reach a service of AWS. */
export interface AwsAccess {
  /**
   * The http(s) URL of another server than that of AWS.
   * @default that of the service's own variable `AWS_ENDPOINT_URL_…`, `AWS_ENDPOINT_URL`, else AWS
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

/** A server that the user has named, and the setting or variable that does so. */
interface GivenEndpoint {
  readonly name: string;
  readonly url: string;
}

/**
 * @param service as in the name of its variable
 * @param option the setting; undefined where the variables of the SDK count, the stronger one first
 */
export function givenEndpoint(service: string, option: string | undefined): GivenEndpoint | undefined {
  if (option !== undefined) return { name: 'endpoint', url: option };
  if (process.env.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS === 'true') return undefined;
  const variables = [`AWS_ENDPOINT_URL_${service}`, 'AWS_ENDPOINT_URL'];
  const given = variables.map((name) => ({ name, url: process.env[name]?.trim() ?? '' }));
  return given.find(({ url }) => url);
}

type AwsConfig = Pick<
  S3ClientConfig,
  'maxAttempts' | 'retryMode' | 'requestHandler' | 'logger' | 'endpoint' | 'region'
>;

const AGENT = { ...KEPT_CONNECTIONS, maxSockets: 16 };

const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

const WARNING_SWITCH = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED';

const ACCESS_KEYS = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'];

/**
 * Makes a client of the SDK with its own retries off: a blind retry of a conditional write turns a lost reply
 * into a false conflict (rule 5). Credentials come from the AWS default chain, at the first request.
 *
 * @param service as in the name of the variable of its endpoint
 * @throws {ConfigError} when no region is known and no endpoint is given, and for one that is no server's URL
 */
export async function createAwsClient<Client extends AwsClient>(
  service: string,
  { requestTimeoutMs, ...given }: AwsAccess,
  make: (config: AwsConfig) => Client,
): Promise<Client> {
  const endpoint = givenEndpoint(service, given.endpoint);
  if (endpoint) checkEndpoint(endpoint.url, endpoint.name);
  // The SDK does not use these next to a profile.
  for (const name of process.env.AWS_PROFILE ? ['AWS_PROFILE'] : ACCESS_KEYS)
    checkPlain(process.env[name] ?? '', name, '…');
  const variable = ['AWS_REGION', 'AWS_DEFAULT_REGION'].find((name) => process.env[name]) ?? '';
  const region = given.region ?? process.env[variable];
  checkPlain(region ?? '', given.region === undefined ? variable : 'region');
  const config: AwsConfig & { readonly ignoreCache: true } = {
    maxAttempts: 1,
    retryMode: 'standard',
    // For the providers of credentials: a file is read whenever they are asked, since it may have been
    // rewritten.
    ignoreCache: true,
    // The whole call has its own deadline; this one distinguishes a server that cannot be reached from one
    // that does not answer.
    requestHandler: {
      connectionTimeout: Math.ceil(requestTimeoutMs * 0.8),
      requestTimeout: requestTimeoutMs,
      throwOnRequestTimeout: true,
      socketTimeout: 0,
      httpAgent: AGENT,
      httpsAgent: AGENT,
    },
    // What the SDK has to say arrives as an error; standard error belongs to the program.
    logger: SILENT,
    ...(endpoint && { endpoint: endpoint.url }),
  };
  if (region !== undefined) return quietly(make, { ...config, region });
  const client = quietly(make, config);
  try {
    await client.config.region();
    return client;
  } catch (cause) {
    client.destroy();
    if (endpoint !== undefined) return quietly(make, { ...config, region: 'us-east-1' });
    const expected =
      'the region of the store: set it, or AWS_REGION (for a server that is not AWS, set an endpoint)';
    throw Object.assign(new ConfigError('region', undefined, expected), { cause });
  }
}

/** Has the source of a client's credentials asked again where it does not answer. */
export function repeatCredentials(client: AwsClient, clock: Clock): AwsAccount {
  const { config } = client;
  const newChain = () => config.credentialDefaultProvider({ ...config, parentClientConfig: config });
  const credentials = new RepeatedCredentials(newChain, clock);
  // Marked as memoized, so that the SDK keeps no credentials itself: it would not renew them in advance.
  config.credentials = Object.assign<CredentialChain, object>(credentials.provide, { memoized: true });
  return {
    config,
    awaitedSource: () => (credentials.isAwaited ? credentialSource() : undefined),
    destroy: () => {
      credentials.close();
      client.destroy();
    },
  };
}

/** Steps of each request that do nothing for those of a store. */
const UNUSED_STEPS = [
  'loggerMiddleware',
  'recursionDetectionMiddleware',
  'regionRedirectMiddleware',
  'addExpectContinueMiddleware',
];

function quietly<Client extends AwsClient>(make: (config: AwsConfig) => Client, config: AwsConfig): Client {
  ensureHome(process.env);
  // The SDK greets every process on an older Node with six lines on standard error, once; which Node this
  // package supports is its own affair.
  const before = process.env[WARNING_SWITCH];
  process.env[WARNING_SWITCH] = 'true';
  try {
    const client = make(config);
    for (const step of UNUSED_STEPS) client.middlewareStack.remove(step);
    return client;
  } finally {
    if (before === undefined) delete process.env[WARNING_SWITCH];
    else process.env[WARNING_SWITCH] = before;
  }
}
