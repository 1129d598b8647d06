import type { Setting } from './setting.js';
import { filePath, onOff, text } from './values.js';

const OF_TLS = {
  needs: 'zookeeper-tls',
  kind: filePath,
} as const;
const OF_ETCDS = { storeOnly: true, verbatim: 'option', kind: filePath } as const;

/** The settings of TLS to ZooKeeper and etcd. */
export const TLS_SETTINGS = {
  'zookeeper-tls': {
    kind: onOff,
    option: 'zookeeper.tls',
    needs: 'zookeeper',
    sentence: 'connect to ZooKeeper with TLS; without it the four settings that follow are errors',
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
} satisfies Readonly<Record<string, Setting>>;
