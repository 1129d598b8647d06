import { LEASE_SETTINGS } from '../../../core/lease/lease-settings.js';
import { MAX_NODE_IDS } from '../../../core/lease/model/lease-state.js';
import { choice, duration, integer, upToOneDay } from '../../../core/settings/setting.js';
import { DISCOVERY_COMMANDS } from '../../discovery/discovery-rows.js';
import {
  ACQUIRING,
  type CommandRow,
  CREATING,
  DOORS,
  HOLDING,
  JSON_LINE,
  OF_CONSOLE,
  OF_NODE_IDS,
  OF_STORE,
  type OptionRow,
  type TableRow,
} from '../../kit/command-row.js';
import { HOLDING_OPTIONS, WAITING_OPTIONS } from '../../kit/holding.js';
import { PRODUCT_COMMANDS } from '../../products.js';
import { settingsOf } from '../../settings/settings-table.js';

const EPOCH: OptionRow = [
  '--epoch <ms>',
  'with --layout snowflake: where its time begins, in ms since 1970 (default: 1288834974657)',
  { kind: integer(0, 2 ** 48 - 1) },
];
const FORMATS = choice('decimal', 'base32', 'hex');
const LAYOUTS = choice('cluster16', 'snowflake');

const OWN_ROWS: readonly TableRow[] = [
  {
    name: 'run',
    door: 'A node id for each task',
    description: 'acquire a node id, run a command with it, release it when the command has ended',
    examples: ['run -- node server.js', 'run --store s3://bucket/prefix --nodes 20 -- node server.js'],
    runs: true,
    options: [
      [
        '--env <name=template>',
        'a variable for the command, any number of times: {id}, {version}, {taskId}, {url} and {clusterNodeId} (8 + id) stand for what was acquired, {{ and }} for braces',
        { repeatable: true, verbatim: true },
      ],
    ],
    settings: HOLDING,
    load: async () => (await import('./run-command.js')).runCommand,
  },
  {
    name: 'serve',
    door: 'A node id for each task',
    description: 'hold a node id for the other containers of a task, and show it over HTTP',
    examples: ['serve --http 127.0.0.1:7070', 'serve --store s3://bucket/prefix --wait-file /shared/node-id'],
    options: [['--wait-file <path>', 'a file that is there while the node id is held, and may be used']],
    settings: HOLDING,
    load: async () => (await import('./serve-command.js')).serveCommand,
  },
  {
    name: 'lock',
    door: 'One instance at a time',
    description: 'run a command while a lock is held: no other task with this lock runs one at the same time',
    arguments: [['<name>', 'the lock: 1 to 200 letters, digits and ._-']],
    examples: ['lock nightly -- ./report.sh', 'lock nightly --store s3://bucket/prefix --try -- ./report.sh'],
    runs: true,
    options: HOLDING_OPTIONS,
    settings: [...OF_STORE, 'task-id', 'duration', 'grace', 'wait-poll', 'ecs-protect'],
    load: async () => (await import('./lock-command.js')).lockCommand,
  },
  {
    name: 'once',
    door: 'One instance at a time',
    description: 'run a command once a period over all hosts, each of which has the same cron',
    arguments: [['<name>', 'the ticks and their lock: 1 to 200 letters, digits and ._-']],
    examples: [
      'once report --every 1d --store s3://bucket/prefix -- ./report.sh',
      'once report --cron @daily --tz Europe/Berlin -- ./report.sh',
    ],
    runs: 'optional',
    options: [
      ['--every <time>', 'the period, 1s to 366d; ticks are its multiples since 1970, in UTC'],
      ['--offset <time>', 'how much later the ticks are (default: 0s)'],
      ['--cron <text>', 'ticks by a cron expression in place of a period'],
      ['--tz <zone>', 'the time zone of --cron (default: UTC)'],
      [
        '--retry <n>',
        'how often a due tick may run again after a failure or a crash (default: 0)',
        { kind: integer(0, 1_000) },
      ],
      ['--catch-up', 'of missed ticks, run the latest one before the due one'],
      ['--forget', 'without a command: have the due tick count as run, where tick.json is damaged'],
      ...WAITING_OPTIONS.slice(1),
    ],
    settings: [...OF_STORE, 'task-id', 'duration', 'grace', 'wait-poll', 'ecs-protect'],
    load: async () => (await import('./once-command.js')).onceCommand,
  },
  {
    name: 'init',
    door: 'Look and operate',
    description: 'create the settings and all lease objects of a cluster',
    examples: [
      'init --store s3://bucket/prefix --nodes 20 --duration 30s',
      'init --store s3://bucket/prefix --repair',
    ],
    options: [
      ['--repair', 'restore damaged lease objects, and the map of shards'],
      [
        '--above-version <n>',
        'with --repair: a version that no tenure of a damaged node id has exceeded',
        { kind: integer(0, 2 ** 52 - 2 ** 32) },
      ],
      [
        '--restored',
        'the store has been restored from a copy: its leases and locks are not trusted for a while',
      ],
      JSON_LINE,
    ],
    zookeeper: 'as-provider',
    storeOnly: ['--repair', '--restored'],
    settings: CREATING,
    load: async () => (await import('./init-command.js')).initCommand,
  },
  {
    name: 'status',
    door: 'Look and operate',
    description: 'show who holds which node id',
    examples: ['status --store s3://bucket/prefix --watch', 'status --held --json'],
    options: [
      JSON_LINE,
      ['--watch', 'look again every second, until interrupted'],
      [
        '--all',
        'show all node ids, also where they do not fit the terminal, and of a cluster of more than 500',
      ],
      ['--from <id>', 'show the node ids from this one on', { kind: integer(0, MAX_NODE_IDS - 1) }],
      [
        '--limit <n>',
        'show at most n node ids of a large cluster (default: what fits the terminal, else 100)',
        { kind: integer(1, 10_000) },
      ],
      ['--held', 'show only held node ids'],
      ['--free', 'show only free node ids'],
      ['--locks', 'show the locks of the store instead'],
    ],
    storeOnly: ['--from', '--limit', '--held', '--free', '--locks'],
    settings: OF_NODE_IDS,
    load: async () => (await import('../status/status-command.js')).statusCommand,
  },
  {
    name: 'history',
    door: 'Look and operate',
    description: 'show who held which node id, and when',
    arguments: [['[id]', 'the node id (default: all)']],
    options: [
      JSON_LINE,
      [
        '--at <time>',
        'show only who held it then: 02:14, of the last 24 hours in UTC, or 2026-11-26T02:14:00Z',
      ],
    ],
    settings: OF_STORE,
    examples: ['history 3 --store s3://my-bucket/orders', 'history --at 02:14 --store s3://my-bucket/orders'],
    load: async () => (await import('../status/history-command.js')).historyCommand,
  },
  {
    name: 'scale',
    door: 'Look and operate',
    description: 'give the cluster more node ids, or fewer, with running tasks on it',
    examples: ['scale 40 --store s3://bucket/prefix', 'scale 10 --drain-timeout 30m'],
    arguments: [['<n>', 'how many node ids there are to be']],
    options: [
      [
        '--wait-timeout <time>',
        'how long to wait for tasks to make wider unique ids, where needed, up to 24h (default: 60s)',
        { kind: upToOneDay },
      ],
      [
        '--drain-timeout <time>',
        'how long holders of retired node ids may take to release them, before they are taken by force, 0s to 24h (default: 10m; add the --settings-interval of the tasks)',
        { kind: upToOneDay },
      ],
      JSON_LINE,
    ],
    settings: OF_NODE_IDS,
    load: async () => (await import('../scale/scale-command.js')).scaleCommand,
  },
  {
    name: 'tune',
    door: 'Look and operate',
    description: 'give the cluster or a lock another duration, with running tasks on it',
    examples: ['tune --duration 60s --store s3://bucket/prefix', 'tune --lock nightly --duration 30s'],
    options: [
      [
        '--duration <time>',
        'how long a lease is to last without renewal; holders follow with their renewals',
        { kind: LEASE_SETTINGS.duration.kind, own: true },
      ],
      [
        '--grace <time>',
        'how much longer other tasks are to wait (default: as before, and at least a thousandth of the duration)',
        { kind: LEASE_SETTINGS.grace.kind, own: true },
      ],
      ['--lock <name>', 'the times of this lock instead'],
      JSON_LINE,
    ],
    settings: OF_STORE,
    load: async () => (await import('./tune-command.js')).tuneCommand,
  },
  {
    name: 'release',
    door: 'Look and operate',
    description: 'take a node id away from its holder',
    examples: ['release 7 --force', 'release 7 --store s3://bucket/prefix --force --json'],
    arguments: [['<id>', 'the node id']],
    options: [['--force', 'do it'], JSON_LINE],
    zookeeper: 'as-provider',
    settings: OF_NODE_IDS,
    load: async () => (await import('./release-command.js')).releaseCommand,
  },
  {
    name: 'doctor',
    door: 'Look and operate',
    description: 'prove that the store keeps its conditions, look for damage, and examine ZooKeeper',
    examples: ['doctor --store s3://bucket/prefix', 'doctor --zookeeper zk1:2181 --json'],
    options: [
      JSON_LINE,
      [
        '--accept',
        'where an earlier probe has found the store wanting and this far longer one finds no fault: have it used again',
      ],
    ],
    storeOnly: ['--accept'],
    settings: [...OF_NODE_IDS, 'cluster', 'nodes', 'duration', 'settings-interval', 'service-base-path'],
    load: async () => (await import('../doctor/doctor-command.js')).doctorCommand,
  },
  {
    name: 'console',
    door: 'Look and operate',
    description: 'show in a browser who holds which node id, as it happens',
    examples: ['console --store s3://bucket/prefix', 'console --zookeeper zk1:2181 --http 127.0.0.1:8080'],
    options: [
      [
        '--allow-writes',
        'with --zookeeper: services, and the shared data of --console-data, may be changed, with the token of --bearer-token-file',
      ],
    ],
    settings: [...OF_NODE_IDS, ...OF_CONSOLE],
    load: async () => (await import('./console-command.js')).consoleCommand,
  },
  {
    name: 'health',
    door: 'Look and operate',
    description: 'ask a running instance whether it is ready: exit code 0 when it is, else 1',
    examples: ['health', 'health --url http://127.0.0.1:7070 --live'],
    options: [
      [
        '--url <url>',
        'where it answers (default: NODELEASE_URL, else as NODELEASE_HTTP says, else http://127.0.0.1:7070)',
      ],
      ['--live', 'whether it is worth keeping, rather than ready: until the lease is lost'],
      [
        '--timeout <time>',
        'how long to wait for the answer, 1ms to 60s (default: 2s)',
        { kind: duration({ min: 1, max: 60_000 }) },
      ],
      JSON_LINE,
    ],
    settings: [],
    load: async () => (await import('./health-command.js')).healthCommand,
  },
  {
    name: 'id',
    door: 'Unique ids',
    description:
      'print unique 64-bit ids, made with a node id that is acquired and released; logs only warnings unless configured',
    examples: ['id -n 3', 'id --store s3://bucket/prefix --format base32'],
    options: [
      [
        '-n, --count <k>',
        'how many, 1 to 1000000000, one on a line',
        { kind: integer(1, 1_000_000_000), default: '1' },
      ],
      [
        '--format <name>',
        'decimal, base32 (13 digits) or hex (16 digits)',
        { kind: FORMATS, default: 'decimal' },
      ],
      [
        '--layout <name>',
        'cluster16, whose node ids are as wide as the cluster says, or snowflake (41/10/12)',
        { kind: LAYOUTS, default: 'cluster16' },
      ],
      EPOCH,
      ['--json', 'one JSON object for each id, on one line'],
    ],
    zookeeper: 'as-provider',
    settings: ACQUIRING,
    load: async () => (await import('./id-command.js')).idCommand,
  },
  {
    name: 'decode',
    door: 'Unique ids',
    description: 'take a unique id apart: its time, its node, its place in the sequence',
    examples: ['decode 116446380033343496 --width 8', 'decode 1541815603606036480 --layout snowflake'],
    arguments: [['<id>', 'the id: decimal, 13 base-32 digits, or 16 hex digits']],
    options: [
      [
        '--format <name>',
        'of the id (default: decimal for digits without a 0 in front, else by its length)',
        { kind: FORMATS },
      ],
      [
        '--width <bits>',
        'how many bits a node id had when the id was made, 8 to 16: nodelease status shows how many it has now',
        { kind: integer(8, 16) },
      ],
      ['--layout <name>', 'cluster16, or snowflake (default: cluster16)', { kind: LAYOUTS }],
      EPOCH,
      JSON_LINE,
    ],
    settings: [],
    load: async () => (await import('./decode-command.js')).decodeCommand,
  },
  {
    name: 'demo',
    door: 'Try it, and learn',
    description: 'run a local fleet on the embedded store, to see it work',
    examples: ['demo', 'demo --once'],
    options: [
      ['--once', 'end when one take-over has been shown'],
      [
        '--http <host:port>',
        'where the console is (default: 127.0.0.1:7070, or any free port while that is taken)',
      ],
    ],
    settings: [],
    load: async () => (await import('../demo/demo-command.js')).demoCommand,
  },
  {
    name: 'completion',
    door: 'Try it, and learn',
    description: 'print a script that completes the words of nodelease in a shell',
    arguments: [['<shell>', 'bash, zsh or fish']],
    examples: [
      'completion bash > /etc/bash_completion.d/nodelease',
      'completion fish > ~/.config/fish/completions/nodelease.fish',
    ],
    settings: [],
    load: async () => (await import('./completion-command.js')).completionCommand(ROWS),
  },
  ...DISCOVERY_COMMANDS,
  ...PRODUCT_COMMANDS,
];

/** All commands and groups, in the order of the help; the name of a command in a group begins with the group's. */
export const ROWS = [...DOORS, undefined]
  .flatMap((door) => OWN_ROWS.filter((row) => row.door === door))
  .map((row) => ('load' in row ? { ...row, settings: [...row.settings, ...settingsOf(row.name)] } : row));

export const COMMANDS: readonly CommandRow[] = ROWS.filter((row) => 'load' in row);
