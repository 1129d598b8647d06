import * as http from 'node:http';
import * as https from 'node:https';
import type { newPipeline, StoragePipelineOptions } from '@azure/storage-blob';
import { checked, NAME, TEXT } from '../../base/arguments.js';
import { ConfigError } from '../../base/errors.js';
import { KEPT_CONNECTIONS } from '../http-client.js';
import { requiredBy } from '../optional-package.js';
import { AzureLeaseStore, type AzureLeaseStoreOptions } from './azure-lease-store.js';
import { renewable } from './renewable-credential.js';

/** Settings of {@link openAzureStore}: those of the store, and how to reach the service. */
export interface AzureStoreOptions extends Omit<AzureLeaseStoreOptions, 'client'> {
  /**
   * The http(s) URL of the service: of another cloud, or of Azurite. The account follows it as a path, unless
   * its host begins with the account.
   * @default what `AZURE_STORAGE_CONNECTION_STRING` says, else `https://ACCOUNT.blob.core.windows.net`
   */
  readonly endpoint?: string | undefined;
}

/**
 * Without retries of the SDK: a blind retry of a conditional write turns a lost reply into a false conflict
 * (rule 5).
 */
function pipelineFor(address: string): StoragePipelineOptions & { readonly agent?: http.Agent } {
  const retryOptions = { maxTries: 1 };
  // An agent would replace the SDK's agent for a proxy.
  if (PROXY_VARIABLES.some((name) => process.env[name] || process.env[name.toLowerCase()]))
    return { retryOptions };
  return { retryOptions, agent: new (address.startsWith('https:') ? https : http).Agent(KEPT_CONNECTIONS) };
}

const PROXY_VARIABLES = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'];

/**
 * Makes a store with its own client. Nothing is sent yet. The key or signature of
 * `AZURE_STORAGE_CONNECTION_STRING` is used where it is set, else the default credential chain of
 * `@azure/identity`.
 *
 * @throws {ConfigError} when a package is missing, when the connection string is not one or is of another
 * account, for another value of `AZURE_TOKEN_CREDENTIALS`, and for credentials of the chain over http
 */
export async function openAzureStore(options: AzureStoreOptions): Promise<AzureLeaseStore> {
  const { account, container, endpoint } = checked(options, {
    account: NAME,
    container: NAME,
    prefix: TEXT,
  });
  const url = `azblob://${account}/${container}`;
  const { BlobServiceClient, ContainerClient, newPipeline } = await import('@azure/storage-blob').catch(
    requiredBy(url, '@azure/storage-blob'),
  );
  const open = (address: string, credential: Credential) =>
    new AzureLeaseStore({
      ...options,
      client: new ContainerClient(address, newPipeline(credential, pipelineFor(address))),
    });
  const given = process.env.AZURE_STORAGE_CONNECTION_STRING;
  if (given) {
    const service = usable(
      'AZURE_STORAGE_CONNECTION_STRING',
      'a connection string with AccountName, and AccountKey or SharedAccessSignature',
      () => BlobServiceClient.fromConnectionString(given),
    );
    const { accountName, credential } = service;
    if (accountName !== account)
      throw new ConfigError('store', url, `the account of AZURE_STORAGE_CONNECTION_STRING, ${accountName}`);
    if (endpoint === undefined) return open(service.getContainerClient(container).url, credential);
    // A shared access signature is the query of the connection string's URL.
    return open(`${containerUrl(endpoint, account, container)}${new URL(service.url).search}`, credential);
  }
  if (endpoint !== undefined && new URL(endpoint).protocol === 'http:') {
    const expected = 'https, or AZURE_STORAGE_CONNECTION_STRING with it (tokens are not sent over http)';
    throw new ConfigError('endpoint', endpoint, expected);
  }
  const { DefaultAzureCredential } = await import('@azure/identity').catch(
    requiredBy(url, '@azure/identity'),
  );
  const address = containerUrl(endpoint ?? `https://${account}.blob.core.windows.net`, account, container);
  const chain = usable(
    'AZURE_TOKEN_CREDENTIALS',
    'dev, prod, or one credential such as ManagedIdentityCredential',
    () => new DefaultAzureCredential(),
  );
  return open(address, renewable(chain, options));
}

type Credential = Parameters<typeof newPipeline>[0];

/** What the SDK makes of a variable. @throws {ConfigError} where it cannot */
function usable<T>(variable: string, expected: string, make: () => T): T {
  try {
    return make();
  } catch {
    // The SDK's message may quote the key.
    throw new ConfigError(variable, '…', expected);
  }
}

function containerUrl(endpoint: string, account: string, container: string): string {
  const { host, origin, pathname } = new URL(endpoint);
  const path = pathname.replace(/\/$/, '');
  const base = `${origin}${path}`;
  if (container !== account && path.endsWith(`/${container}`))
    throw new ConfigError('endpoint', endpoint, 'the server’s URL without the container');
  const isOfAccount = host.startsWith(`${account}.`) || base.endsWith(`/${account}`);
  return `${base}${isOfAccount ? '' : `/${account}`}/${container}`;
}
