import { filePath, onOff, type SettingRows, text } from '../../core/settings/setting.js';

const OF_TLS = {
  needs: 'zookeeper-tls',
  kind: filePath,
} as const;
/** The settings of TLS to ZooKeeper. */
export const ZOOKEEPER_TLS_SETTINGS = {
  'zookeeper-tls': {
    kind: onOff,
    option: 'zookeeper.tls',
    needs: 'zookeeper',
    sentence: 'connect to ZooKeeper with TLS',
  },
  'zookeeper-ca': {
    ...OF_TLS,
    option: 'zookeeper.tls.ca',
    sentence: 'the PEM file of the CAs of the ZooKeeper servers, else the CAs that Node trusts',
  },
  'zookeeper-cert': {
    ...OF_TLS,
    option: 'zookeeper.tls.cert',
    sentence: 'the PEM file of the client certificate for ZooKeeper',
  },
  'zookeeper-key': {
    ...OF_TLS,
    option: 'zookeeper.tls.key',
    sentence: 'the PEM file of its private key, without a passphrase',
  },
  'zookeeper-servername': {
    ...OF_TLS,
    kind: text('host', /^[\w.:-]{1,253}$/, 'a host name or an IP address'),
    option: 'zookeeper.tls.servername',
    sentence: 'the name in the certificates of all ZooKeeper servers, else the host of each',
  },
} as const satisfies SettingRows;
