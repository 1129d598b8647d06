import { checked, filePath, type SettingRows } from '../../settings/setting.js';
import { parsePrefix, parseServers, type StoreKind } from '../store-kind.js';
import { parseEtcdAuth } from './etcd-access.js';
import type { EtcdLeaseStoreOptions } from './etcd-lease-store.js';

const OF_ETCDS = { storeOnly: true, verbatim: 'option', kind: filePath } as const;

/** The settings of a store in etcd. */
const ETCD_SETTINGS = {
  'etcd-auth': {
    kind: checked('user', parseEtcdAuth),
    secret: true,
    default: 'none',
    option: 'etcd.auth',
    storeOnly: true,
    sentence: 'a user of the etcd cluster: USER:PASSWORD',
  },
  'etcd-ca': {
    ...OF_ETCDS,
    option: 'etcd.ca',
    sentence: 'the PEM file of the CAs of the etcd servers, else those that Node trusts',
  },
  'etcd-cert': {
    ...OF_ETCDS,
    option: 'etcd.cert',
    sentence: 'the PEM file of the client certificate for etcd',
  },
  'etcd-key': {
    ...OF_ETCDS,
    option: 'etcd.key',
    sentence: 'the PEM file of its private key, without a passphrase',
  },
} as const satisfies SettingRows;

const SUCH_AS = 'etcd://HOST:2379[,HOST:2379]…/prefix';

/** The keys of an etcd cluster that begin with `prefix` and a slash. */
export const ETCD: StoreKind<EtcdLeaseStoreOptions> = {
  schemes: ['etcd', 'etcds'],
  form: 'etcd://HOST:2379/prefix',
  own: { option: 'etcd', settings: ETCD_SETTINGS, tlsScheme: 'etcds' },

  parse(text, { scheme, fail }) {
    if (text.split('/', 1)[0]?.includes('@'))
      fail(`no user and password in the URL, but in NODELEASE_ETCD_AUTH or etcd.auth: ${SUCH_AS}`);
    if (text.includes('://')) fail(`${scheme}:// once, in front of the first server, in ${SUCH_AS}`);
    const { servers, path } = parseServers(text, 'prefix', 2379, SUCH_AS, fail);
    const hosts = servers.map(({ address }) => address);
    const prefix = parsePrefix(path, SUCH_AS, fail, 'cluster');
    const endpoints = hosts.map((host) => `${scheme === 'etcd' ? 'http' : 'https'}://${host}`);
    return { url: `${scheme}://${hosts.join(',')}/${prefix}`, endpoints, prefix };
  },

  async open(options) {
    const { observedAge } = await import('../observed-age.js');
    return observedAge(new (await import('./etcd-lease-store.js')).EtcdLeaseStore(options), options.clock);
  },
};
