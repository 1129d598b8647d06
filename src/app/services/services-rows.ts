import { JSON_LINE } from '../kit/command-row.js';
import { OF_SERVICES } from '../kit/command-settings.js';
import { zooKeeperRows } from '../kit/group-rows.js';

const row = zooKeeperRows('discovery', [], { settings: OF_SERVICES });
const serveRow = zooKeeperRows('discovery', [], {
  settings: [...OF_SERVICES, 'http'],
  defaults: { store: 'memory:' },
});

/** The commands of the group `discovery` that are about services. */
export const SERVICE_COMMANDS = [
  row(
    'services',
    'show the services that Curator, Spring Cloud and Dubbo know of, and their instances',
    ['discovery services', 'discovery services orders --json'],
    [['[name]', 'only this service']],
    [JSON_LINE],
    async () => (await import('./discovery-services-command.js')).listServices,
  ),
  row(
    'prune',
    'remove the names of services that have no instance',
    ['discovery prune', 'discovery prune orders --json'],
    [['[name]', 'only this service']],
    [JSON_LINE],
    async () => (await import('./discovery-prune-command.js')).pruneServices,
  ),
  row(
    'resolve',
    'print the URL of one instance of a service, as the strategy picks it',
    ['discovery resolve orders', 'discovery resolve pay:visa --kind endpoint'],
    [['<name>', 'the service, or NAME[:KEY] of an endpoint']],
    [
      ['--json', 'the whole instance, as one JSON object on one line'],
      [
        '--kind <kind>',
        'what the name stands for: service, or endpoint, as nodelease run --announce has it',
        { default: 'service' },
      ],
      ['--strategy <name>', 'round-robin, random, sticky or weighted', { default: 'random' }],
    ],
    async () => (await import('./discovery-resolve-command.js')).resolveService,
  ),
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
      [
        '--bearer-token-file <path>',
        'changes need the token in this file; required beyond loopback, or else --read-only',
      ],
      ['--strategy <name>', 'how /v1/anyservice chooses: round-robin (default), random, sticky or weighted'],
    ],
    async () => (await import('./discovery-serve-command.js')).serveDiscovery,
  ),
];
