import type { SettingRows } from '../../settings/setting.js';
import { checked, filePath } from '../../settings/values.js';
import { parseEtcdAuth } from './etcd-access.js';

const OF_ETCDS = { storeOnly: true, verbatim: 'option', kind: filePath } as const;

/** The settings of a store in etcd. */
export const ETCD_SETTINGS = {
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
