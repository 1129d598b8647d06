import { choice } from '../../core/settings/values.js';
import { JSON_LINE, zooKeeperRows } from '../kit/command-row.js';
import { OF_SERVICES } from '../kit/command-settings.js';

const row = zooKeeperRows('discovery', [], { settings: OF_SERVICES });

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
        { kind: choice('service', 'endpoint'), default: 'service' },
      ],
      ['--strategy <name>', 'round-robin, random, sticky or weighted', { default: 'random' }],
    ],
    async () => (await import('./discovery-resolve-command.js')).resolveService,
  ),
];
