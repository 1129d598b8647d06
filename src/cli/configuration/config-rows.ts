import {
  type Command,
  type CommandRow,
  JSON_CHANGES,
  JSON_LINE,
  type OptionRow,
  type WithZooKeeper,
} from '../kit/command-row.js';
import { OF_ZOOKEEPER } from '../kit/command-settings.js';

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
const NODE: OptionRow = ['--node <id>', 'as the node with this id sees it, with its overrides'];
const VIEW: readonly OptionRow[] = [NODE, NODES, ['--own', 'the values of the most specific context alone']];
const FORMAT: OptionRow = ['--format <name>', 'properties, json or env'];
const PUBLISHING: readonly OptionRow[] = [
  NODES,
  ['-m, --message <text>', 'why, for the history'],
  ['--expect <revision>', 'only where this revision stands, 0 for none; exit code 1 where it does not'],
  ['--author <name>', 'who, for the history (default: USER@HOST)'],
  JSON_LINE,
];

/** A command of the group, whose code is loaded when it is called. */
function row(
  name: string,
  description: string,
  options: readonly OptionRow[],
  load: () => Promise<Command<WithZooKeeper>>,
  args: CommandRow['arguments'] = [],
): CommandRow {
  return {
    name: `config ${name}`,
    description,
    arguments: args,
    options: [...WHICH, ...options],
    settings: OF_ZOOKEEPER,
    zookeeper: 'required',
    load,
  };
}

type Commands = Omit<typeof import('./config-commands.js'), 'changeRow' | 'revisionsText'>;

const command = (name: keyof Commands) => async () => (await import('./config-commands.js'))[name];

/** The commands of the group `config`. */
export const CONFIG_COMMANDS: readonly CommandRow[] = [
  row(
    'ls',
    'show the keys, their values, and which context each comes from',
    [...VIEW, JSON_LINE],
    command('ls'),
  ),
  row(
    'get',
    'print the value of a key: exit code 1 where it is not set',
    [...VIEW, JSON_LINE],
    command('get'),
    [['<key>', 'the key, such as db.pool-size']],
  ),
  row('set', 'publish values, all of them together', PUBLISHING, command('set'), [
    ['<key=value...>', 'the keys and their new values'],
  ]),
  row('unset', 'publish that keys are not set any more', PUBLISHING, command('unset'), [
    ['[key...]', 'the keys; with --nodes by default all overrides of these nodes'],
  ]),
  row(
    'import',
    'publish the values of a file, all of them together',
    [['--replace', 'unset all other keys of the context'], FORMAT, ...PUBLISHING],
    command('importFile'),
    [
      [
        '<file>',
        'the file, - for standard input; without --format its name tells the format, which is else properties',
      ],
    ],
  ),
  row('export', 'print the values as a file', [FORMAT, ...VIEW], command('exportFile')),
  row('history', 'show the revisions, the newest first', [NODES, JSON_LINE], command('history')),
  row(
    'diff',
    'show what was published after a revision, up to another one',
    [NODES, JSON_LINE],
    command('diff'),
    [
      ['<from>', 'a revision, 0 for before the first'],
      ['[to]', 'another one (default: the newest)'],
    ],
  ),
  row('rollback', 'publish what undoes all revisions after one', PUBLISHING, command('rollback'), [
    ['<revision>', 'its number, as config history shows it'],
  ]),
  row(
    'watch',
    'print every change, until interrupted',
    [NODE, JSON_CHANGES],
    async () => (await import('./config-watch-command.js')).watch,
  ),
  row('status', 'show which revision each node runs', [JSON_LINE], command('status')),
];
