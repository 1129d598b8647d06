import { checkArguments, checked, maybe, OBJECT, TEXT } from '../base/arguments.js';
import type { Clock, RandomSource } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import type { EtcdAccess } from './etcd/etcd-access.js';
import type { LeaseStore } from './lease-store.js';
import { parseStoreUrl, STORES, type StoreUrl, takesEndpoint } from './store-url.js';

/** What a store needs in addition to its URL. */
export interface OpenStoreOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /**
   * The http(s) URL of the service: an S3-compatible server, another cloud of Azure, an emulator. With `s3:`,
   * `azblob:` and `gs:` only.
   * @default the cloud's
   */
  readonly endpoint?: string | undefined;
  /** The region of the bucket. With `s3://` only. @default what the AWS environment says */
  readonly region?: string | undefined;
  /**
   * How to get into an etcd cluster. With `etcd://` and `etcds://` only.
   * @default without user and client certificate
   */
  readonly etcd?: EtcdAccess | undefined;
  /**
   * How long one request may take in all, in milliseconds. Keep it below the renewal interval. Stores on this
   * machine ignore it.
   */
  readonly requestTimeoutMs: number;
}

/**
 * Opens the store that a URL names. Only the driver that it needs is loaded: an SDK costs time and memory.
 * Resolves before the store has been reached; close it with `close()`.
 *
 * @throws {ConfigError} when the URL, the endpoint or the region cannot be used, or the package that the
 * store needs is not installed
 */
export async function openStore(url: string | StoreUrl, options: OpenStoreOptions): Promise<LeaseStore> {
  const { clock, random, endpoint } = checked(options, {
    endpoint: maybe(TEXT),
    region: maybe(TEXT),
    etcd: maybe(OBJECT),
  });
  checkArguments({ clock });
  if (typeof Object(url).kind !== 'string' && typeof url !== 'string')
    throw new ConfigError('store', url, STORES);
  const store = typeof url === 'string' ? parseStoreUrl(url) : url;
  if (endpoint !== undefined) {
    if (!takesEndpoint(store))
      throw new ConfigError('endpoint', endpoint, `no endpoint with the store ${store.url}`);
    checkEndpoint(endpoint);
  }
  switch (store.kind) {
    case 's3': {
      const { openS3Store } = await import('./s3/open-s3-store.js');
      return openS3Store({ ...options, ...store });
    }
    case 'etcd': {
      const { openEtcdStore } = await import('./etcd/open-etcd-store.js');
      const { observedAge } = await import('./observed-age.js');
      return observedAge(openEtcdStore({ ...options, ...store }), clock);
    }
    case 'azblob': {
      const { openAzureStore } = await import('./azure/open-azure-store.js');
      return openAzureStore({ ...options, ...store });
    }
    case 'gs': {
      const { openGcsStore } = await import('./gcs/open-gcs-store.js');
      return openGcsStore({ ...options, ...store });
    }
    case 'file': {
      const { FileLeaseStore } = await import('./file/file-lease-store.js');
      return new FileLeaseStore({ directory: store.directory, clock, random });
    }
    case 'memory': {
      const { MemoryLeaseStore } = await import('./memory/memory-lease-store.js');
      return new MemoryLeaseStore({ clock });
    }
  }
}

function checkEndpoint(endpoint: string): void {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new ConfigError('endpoint', endpoint, 'an http or https URL such as http://127.0.0.1:9000');
  }
  // A password in a URL ends up in process lists and logs; and the SDK would not use it.
  if (url.username !== '' || url.password !== '') {
    const expected = 'no credentials in the URL: they come from the default chain of the cloud';
    throw new ConfigError('endpoint', `${url.protocol}//…@${url.host}`, expected);
  }
}
