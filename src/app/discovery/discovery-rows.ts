import { JSON_CHANGES, JSON_LINE } from '../kit/command-row.js';
import { zooKeeperRows } from '../kit/group-rows.js';

const row = zooKeeperRows('discovery', []);

/** The group `discovery` and its commands. */
export const DISCOVERY_COMMANDS = [
  { name: 'discovery', description: 'look into the discovery tree in ZooKeeper' },
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
];
