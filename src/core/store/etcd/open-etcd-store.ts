import { checked, listOf, maybe, OBJECT, TEXT } from '../../base/arguments.js';
import { ConfigError } from '../../base/errors.js';
import { prepareTlsFiles } from '../../base/tls.js';
import { type EtcdAccess, parseEtcdAuth } from './etcd-access.js';
import { EtcdLeaseStore, type EtcdLeaseStoreOptions } from './etcd-lease-store.js';

/** Settings of {@link openEtcdStore}. */
export interface EtcdStoreOptions
  extends Omit<EtcdLeaseStoreOptions, 'auth' | 'secureContext' | 'hasCertificate'> {
  readonly etcd?: EtcdAccess | undefined;
}

/**
 * Makes a store with its own connections. Nothing is sent yet.
 *
 * @throws {ConfigError} when what it gets into the cluster with cannot be used
 */
export function openEtcdStore(given: EtcdStoreOptions): EtcdLeaseStore {
  const { etcd = {}, ...options } = checked(given, { endpoints: listOf(TEXT), etcd: maybe(OBJECT) });
  const { auth, ...files } = etcd;
  const isSecure = options.endpoints.every((endpoint) => endpoint.startsWith('https:'));
  const [useless] = Object.entries(files).find(([, content]) => content !== undefined) ?? [];
  // Without a word, what is meant to be encrypted would not be.
  if (useless !== undefined && !isSecure)
    throw new ConfigError(`etcd.${useless}`, '…', 'a store of etcds:// (nothing is encrypted without)');
  return new EtcdLeaseStore({
    ...options,
    auth: auth === undefined ? undefined : parseEtcdAuth(auth, 'etcd.auth'),
    secureContext: isSecure ? prepareTlsFiles(files, 'etcd.') : undefined,
    hasCertificate: files.cert !== undefined,
  });
}
