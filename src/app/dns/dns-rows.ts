import { type CommandRow, OF_SERVICES, OF_STORE } from '../kit/command-row.js';
import { namesOf } from '../settings/settings-table.js';
import { DNS_SETTINGS } from './dns-settings.js';

// Its own option says where to answer.
const OF_NAMES = namesOf(DNS_SETTINGS).filter((name) => name !== 'dns');

/** The commands on DNS. */
export const DNS_COMMANDS: readonly CommandRow[] = [
  {
    name: 'dns',
    door: 'With ZooKeeper',
    description:
      'answer DNS questions for services and node ids in ZooKeeper, and for node ids and shards in a store',
    examples: ['dns --zookeeper zk1:2181', 'dns --store s3://bucket/prefix --listen 127.0.0.1:5353'],
    options: [['--listen <host:port>', 'where to answer, by UDP and TCP', { default: '127.0.0.1:8600' }]],
    settings: [...OF_STORE, ...OF_SERVICES, ...OF_NAMES, 'http', 'bearer-token-file'],
    defaults: { store: 'memory:', http: 'nowhere' },
    load: async () => (await import('./dns-command.js')).dnsCommand,
  },
];
