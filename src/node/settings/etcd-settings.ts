import type { EtcdAccess } from '../../core/store/etcd/etcd-access.js';
import type { StoreUrl } from '../../core/store/store-url.js';
import { find, firstFlag, read, refuse, type SettingSources } from './sources.js';
import { readTlsFiles } from './tls-files.js';

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
  const given = (part: 'ca' | 'cert' | 'key') => find(sources, `etcd-${part}`);
  const auth = read(sources, 'etcd-auth');
  if (store.url.startsWith('etcds:')) return { auth, ...readTlsFiles(given, '--etcd-') };
  // Variables too: without a word, what is meant to be encrypted would not be.
  const useless = given('ca') ?? given('cert') ?? given('key');
  if (useless) refuse(useless, 'a store of etcds:// with it (nothing is encrypted without)');
  return { auth };
}
