import { JSON_CHANGES, JSON_LINE, OF_SERVICES, type TableRow, zooKeeperRows } from '../kit/command-row.js';
import { SERVICE_COMMANDS } from '../services/services-rows.js';

const row = zooKeeperRows('discovery', []);
const serveRow = zooKeeperRows('discovery', [], {
  settings: [...OF_SERVICES, 'http', 'bearer-token-file'],
  defaults: { store: 'memory:' },
});

/** The group `discovery` and its commands. */
export const DISCOVERY_COMMANDS: readonly TableRow[] = [
  { name: 'discovery', door: 'With ZooKeeper', description: 'look into the discovery tree in ZooKeeper' },
  row(
    'ls',
    'show the announced nodes, services and endpoints',
    ['discovery ls', 'discovery ls --locks /locks'],
    [['[path]', 'only what stands there, such as /discovery/nodes']],
    [
      JSON_LINE,
      [
        '--locks <path[,path]...>',
        'instead, who holds the locks of nodelease zk or Curator there and below, and who waits',
      ],
    ],
    async () => (await import('./discovery-command.js')).listDiscovery,
  ),
  row(
    'watch',
    'show what is announced, and then every change, until interrupted',
    ['discovery watch', 'discovery watch --json'],
    [],
    [JSON_CHANGES],
    async () => (await import('./discovery-watch.js')).watchDiscovery,
  ),
  ...SERVICE_COMMANDS,
  serveRow(
    'serve',
    'answer over HTTP who offers which service, for programs without ZooKeeper',
    ['discovery serve --read-only', 'discovery serve --http 127.0.0.1:8080'],
    [],
    [
      ['--read-only', 'refuse to register and unregister instances'],
      [
        '--allow-writes',
        'the page at / may enable, disable and remove instances, with the token of --bearer-token-file',
      ],
      ['--strategy <name>', 'how /v1/anyservice chooses: round-robin (default), random, sticky or weighted'],
    ],
    async () => (await import('./discovery-serve-command.js')).serveDiscovery,
  ),
];
