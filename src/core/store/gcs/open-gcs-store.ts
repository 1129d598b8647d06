import { callWithTimeout } from '../../base/abort.js';
import { checked, NAME, TEXT } from '../../base/arguments.js';
import { ConfigError } from '../../base/errors.js';
import { HttpClient } from '../http-client.js';
import { requiredBy } from '../optional-package.js';
import { checkEndpoint } from '../store-kind.js';
import { GcsLeaseStore, type GcsLeaseStoreOptions } from './gcs-lease-store.js';

/** Settings of {@link openGcsStore}: those of the store, and how to reach the service. */
export interface GcsStoreOptions extends Omit<GcsLeaseStoreOptions, 'client' | 'authorize'> {
  /**
   * The http(s) URL of the service, or of an emulator. No credentials are sent over http.
   * @default `STORAGE_EMULATOR_HOST`, else `https://storage.googleapis.com`
   */
  readonly endpoint?: string | undefined;
}

const SCOPE = 'https://www.googleapis.com/auth/devstorage.read_write';

/**
 * Makes a store with its own connections. Nothing is sent yet. Credentials are the application default
 * ones, asked for with the first request.
 *
 * @throws {ConfigError} when `google-auth-library` is missing
 */
export async function openGcsStore(options: GcsStoreOptions): Promise<GcsLeaseStore> {
  checked(options, { bucket: NAME, prefix: TEXT });
  const emulator = process.env.STORAGE_EMULATOR_HOST || undefined;
  const server = options.endpoint ?? (emulator?.includes('://') === false ? `http://${emulator}` : emulator);
  const label = options.endpoint === undefined ? 'STORAGE_EMULATOR_HOST' : 'endpoint';
  if (server !== undefined) checkEndpoint(server, label);
  const endpoint = new URL(server ?? 'https://storage.googleapis.com').href.replace(/\/$/, '');
  if (new URL(endpoint).pathname.endsWith(`/${options.bucket}`))
    throw new ConfigError(label, server, 'the server’s URL without the bucket');
  const authorize = endpoint.startsWith('https:')
    ? await defaultCredentials(`gs://${options.bucket}`, options)
    : async () => ({});
  return new GcsLeaseStore({ ...options, client: new HttpClient(endpoint), authorize });
}

async function defaultCredentials(
  url: string,
  { clock, requestTimeoutMs: timeoutMs }: GcsStoreOptions,
): Promise<GcsLeaseStoreOptions['authorize']> {
  const { GoogleAuth, gcpMetadata } = await import('google-auth-library').catch(
    requiredBy(url, 'google-auth-library'),
  );
  // Objects need no project: if none is given, the library looks for one with the first request, for seconds.
  const newAuth = () => {
    // A metadata server that was not there at first, as in a new pod, would stay unknown.
    gcpMetadata.resetIsAvailableCache();
    return new GoogleAuth({ scopes: SCOPE, projectId: 'unused' });
  };
  let auth = newAuth();
  return async (isRefused) => {
    // It keeps a token until its end by the clock of this host, which may have been set back.
    if (isRefused) auth = newAuth();
    try {
      return Object.fromEntries(await callWithTimeout({ clock, timeoutMs }, () => auth.getRequestHeaders()));
    } catch (error) {
      // All its callers wait for one request, which may never be answered.
      auth = newAuth();
      throw error;
    }
  };
}
