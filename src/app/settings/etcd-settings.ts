import type { EtcdAccess } from '../../core/store/etcd/etcd-access.js';
import type { StoreUrl } from '../../core/store/store-url.js';
import { firstFlag, read, refuse, type SettingSources } from './sources.js';
import { readTlsFiles, tlsFile } from './tls-files.js';

/**
 * How to get into the etcd cluster; undefined where the store is another one.
 *
 * @throws {ConfigError} naming the setting as the user gave it, and what was expected
 */
export function readEtcd(sources: SettingSources, store: StoreUrl): EtcdAccess | undefined {
  if (store.kind !== 'etcd') {
    const useless = firstFlag(sources, ({ name }) => name.startsWith('etcd-'));
    if (useless) refuse({ ...useless, text: '…' }, 'a store of etcd:// or etcds:// with it');
    return undefined;
  }
  const auth = read(sources, 'etcd-auth');
  if (store.url.startsWith('etcds:')) return { auth, ...readTlsFiles(sources, 'etcd') };
  const useless = tlsFile(sources, 'etcd');
  if (useless) refuse(useless, 'a store of etcds:// with it (nothing is encrypted without)');
  return { auth };
}
