import { choice, integer } from '../../core/settings/setting.js';
import { JSON_CHANGES, JSON_LINE, type OptionRow, type TableRow, zooKeeperRows } from '../kit/command-row.js';

/** A revision, or a node id. */
const WHOLE_NUMBER = { kind: integer(0, 1_000_000_000) };
const WHICH: readonly OptionRow[] = [
  ['--app <name>', 'the application whose configuration is meant; "application" is what all of them share'],
  ['--profile <name>', 'its profile (default: the context without one)'],
  ['--root <path>', 'the parent of all contexts (default: /config)'],
];
const NODES: OptionRow = [
  '--nodes <range>',
  'the overrides for these node ids, such as 0-3, instead of the values for all',
  { own: true },
];
const NODE: OptionRow = ['--node <id>', 'as the node with this id sees it, with its overrides', WHOLE_NUMBER];
const VIEW: readonly OptionRow[] = [NODE, NODES, ['--own', 'the values of the most specific context alone']];
const FORMAT: OptionRow = [
  '--format <name>',
  'properties, json or env',
  { kind: choice('properties', 'json', 'env') },
];
const PUBLISHING: readonly OptionRow[] = [
  NODES,
  ['-m, --message <text>', 'why, for the history', { verbatim: true }],
  [
    '--expect <revision>',
    'only where this revision stands, 0 for none; exit code 1 where it does not',
    WHOLE_NUMBER,
  ],
  ['--author <name>', 'who, for the history (default: USER@HOST)'],
  JSON_LINE,
];

const row = zooKeeperRows('config', WHICH);

const command = (name: keyof typeof import('./config-commands.js')) => async () =>
  (await import('./config-commands.js'))[name];

/** The group `config` and its commands. */
export const CONFIG_COMMANDS: readonly TableRow[] = [
  {
    name: 'config',
    door: 'With ZooKeeper',
    description: 'publish configuration in ZooKeeper, in the layout of Spring Cloud Zookeeper Config',
  },
  row(
    'ls',
    'show the keys, their values, and which context each comes from',
    ['config ls --app shop', 'config ls --app shop --profile prod --node 3'],
    [],
    [...VIEW, JSON_LINE],
    command('ls'),
  ),
  row(
    'get',
    'print the value of a key: exit code 1 where it is not set',
    ['config get --app shop db.pool-size', 'config get --app shop db.pool-size --node 3'],
    [['<key>', 'the key, such as db.pool-size']],
    [...VIEW, JSON_LINE],
    command('get'),
  ),
  row(
    'set',
    'publish values, all of them together',
    ['config set --app shop db.pool-size=20 -m bigger', 'config set --app shop --nodes 0-3 debug=true'],
    [['<key=value...>', 'the keys and their new values']],
    PUBLISHING,
    command('set'),
  ),
  row(
    'unset',
    'publish that keys are not set any more',
    ['config unset --app shop debug', 'config unset --app shop --nodes 0-3'],
    [['[key...]', 'the keys; with --nodes by default all overrides of these nodes']],
    PUBLISHING,
    command('unset'),
  ),
  row(
    'import',
    'publish the values of a file, all of them together',
    ['config import --app shop shop.properties', 'config import --app shop --replace --format json -'],
    [
      [
        '<file>',
        'the file, - for standard input; without --format its name shows the format, which is else properties',
      ],
    ],
    [['--replace', 'unset all other keys of the context'], FORMAT, ...PUBLISHING],
    command('importFile'),
  ),
  row(
    'export',
    'print the values as a file',
    ['config export --app shop', 'config export --app shop --node 3 --format env'],
    [],
    [FORMAT, ...VIEW],
    command('exportFile'),
  ),
  row(
    'history',
    'show the revisions, the newest first',
    ['config history --app shop', 'config history --app shop --json'],
    [],
    [NODES, JSON_LINE],
    command('history'),
  ),
  row(
    'diff',
    'show what was published after a revision, up to another one',
    ['config diff --app shop 3', 'config diff --app shop 3 5'],
    [
      ['<from>', 'a revision, 0 for before the first'],
      ['[to]', 'another one (default: the newest)'],
    ],
    [NODES, JSON_LINE],
    command('diff'),
  ),
  row(
    'rollback',
    'publish what undoes all revisions after one',
    ['config rollback --app shop 3', 'config rollback --app shop 3 --expect 5'],
    [['<revision>', 'its number, as config history shows it']],
    PUBLISHING,
    command('rollback'),
  ),
  row(
    'watch',
    'print every change, until interrupted',
    ['config watch --app shop', 'config watch --app shop --node 3 --json'],
    [],
    [NODE, JSON_CHANGES],
    command('watch'),
  ),
  row(
    'status',
    'show which revision each node runs',
    ['config status --app shop', 'config status --app shop --json'],
    [],
    [JSON_LINE],
    command('status'),
  ),
];
