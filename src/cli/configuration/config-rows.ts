import { type CommandRow, JSON_LINE, type OptionRow } from '../commands/command-row.js';
import type { ZooKeeperCommandSettings } from '../commands/zookeeper-command.js';
import type { ConfigCall } from './config-call.js';

const WHICH: readonly OptionRow[] = [
  ['--app <name>', 'the application whose configuration is meant; "application" is what all of them share'],
  ['--profile <name>', 'its profile (default: the context without one)'],
  ['--root <path>', 'the parent of all contexts (default: /config)'],
];
const NODE: OptionRow = ['--node <id>', 'as the node with this id sees it, with its overrides'];
const NODES: OptionRow = ['--nodes <range>', 'the overrides for these node ids, such as 0-3, instead of the values for all', { own: true }];
const VIEW: readonly OptionRow[] = [NODE, NODES, ['--own', 'the values of the most specific context alone']];
const FORMAT: OptionRow = ['--format <name>', 'properties, json or env'];
const PUBLISHING: readonly OptionRow[] = [
  ['-m, --message <text>', 'why, for the history'],
  ['--expect <revision>', 'only where this revision stands, 0 for none; exit code 1 where it does not'],
  ['--author <name>', 'who, for the history (default: USER@HOST)'],
];

type Load<Commands> = () => Promise<Commands>;

function row<Commands>(
  name: string,
  description: string,
  options: readonly OptionRow[],
  load: Load<Commands>,
  run: (commands: Commands, call: ConfigCall, ...args: readonly string[]) => Promise<number>,
  args: CommandRow['arguments'] = [],
): CommandRow {
  return {
    ...{ name: `config ${name}`, description, arguments: args, options: [...WHICH, ...options], zookeeper: 'required' },
    run: async (given, settings: ZooKeeperCommandSettings, io, ...values) => run(await load(), { options: given, settings, io }, ...values),
  };
}

const reading = () => import('./config-read-commands.js');
const publishing = () => import('./config-publish-commands.js');
const watching = () => import('./config-watch-command.js');

const REVISION = ['<revision>', 'its number, as config history shows it'] as const;

/** The commands of the group `config`. */
export const CONFIG_COMMANDS: readonly CommandRow[] = [
  row('ls', 'show the keys, their values, and which context each comes from', [...VIEW, JSON_LINE], reading, (to, call) =>
    to.listConfig(call),
  ),
  row(
    'get',
    'print the value of a key: exit code 1 where it is not set',
    [...VIEW, JSON_LINE],
    reading,
    (to, call, key = '') => to.getConfig(call, key),
    [['<key>', 'the key, such as db.pool-size']],
  ),
  row(
    'set',
    'publish values, all of them together',
    [NODES, ...PUBLISHING, JSON_LINE],
    publishing,
    (to, call, ...pairs) => to.setConfig(call, pairs),
    [['<key=value...>', 'the keys and their new values']],
  ),
  row(
    'unset',
    'publish that keys are not set any more',
    [NODES, ...PUBLISHING, JSON_LINE],
    publishing,
    (to, call, ...keys) => to.unsetConfig(call, keys),
    [['[key...]', 'the keys; with --nodes by default all overrides of these nodes']],
  ),
  row(
    'import',
    'publish the values of a file, all of them together',
    [['--replace', 'unset all other keys of the context'], FORMAT, NODES, ...PUBLISHING, JSON_LINE],
    publishing,
    (to, call, file = '') => to.importConfig(call, file),
    [['<file>', 'the file, - for standard input; without --format its name tells the format, which is else properties']],
  ),
  row('export', 'print the values as a file', [FORMAT, ...VIEW], reading, (to, call) => to.exportConfig(call)),
  row('history', 'show the revisions, the newest first', [JSON_LINE], reading, (to, call) => to.configHistory(call)),
  row(
    'diff',
    'show what was published after a revision, up to another one',
    [JSON_LINE],
    reading,
    (to, call, from = '', until) => to.configDiff(call, from, until),
    [
      ['<from>', 'a revision, 0 for before the first'],
      ['[to]', 'another one (default: the newest)'],
    ],
  ),
  row(
    'rollback',
    'publish what undoes all revisions after one',
    [...PUBLISHING, JSON_LINE],
    publishing,
    (to, call, revision = '') => to.rollbackConfig(call, revision),
    [REVISION],
  ),
  row(
    'watch',
    'print every change, until interrupted',
    [
      NODE,
      ['--exec <command>', 'a command for the shell, run after each change, one at a time'],
      ['--json', 'one JSON object for each change, on one line'],
    ],
    watching,
    (to, call) => to.watchConfig(call),
  ),
  row('status', 'show which revision each node runs', [JSON_LINE], reading, (to, call) => to.configStatus(call)),
];
