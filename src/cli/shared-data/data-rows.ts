import { type CommandRow, JSON_LINE, type OptionRow } from '../commands/command-row.js';
import type { ZooKeeperCommandSettings } from '../commands/zookeeper-command.js';
import type { DataCommandOptions } from './data-command.js';
import type { DataCall } from './data-write-commands.js';

const NAME = ['<name>', 'its name'] as const;
const WHERE: readonly OptionRow[] = [
  ['--root <path>', 'where the nodes and data stand', { default: '/monastery/root' }],
  ['--scope <scope>', 'the scope of the name (default: none)'],
];
const KIND: OptionRow = ['--kind <kind>', 'scalar, set, list or map (default: whichever it is)'];
const TYPE: OptionRow = [
  '--type <type>',
  'of the value: String, Boolean, Integer, Long, Double, BigInteger, BigDecimal, Json, Bytes (base64) or Null',
  { default: 'String' },
];
const TYPE_OF_ENTRY: OptionRow = ['--type <type>', 'of the key, and of the value of a set, where several entries have the same text'];

/** A command that looks, and changes nothing. */
function reading(
  name: string,
  description: string,
  options: readonly OptionRow[],
  run: (options: DataCommandOptions, settings: ZooKeeperCommandSettings, io: DataCall['io'], ...args: readonly string[]) => Promise<number>,
  args: CommandRow['arguments'] = [],
): CommandRow {
  return { name: `data ${name}`, description, arguments: args, options: [...WHERE, ...options], zookeeper: 'required', run };
}

type DataWriteCommands = typeof import('./data-write-commands.js');

/** A command that makes one change. */
function writing(
  name: string,
  description: string,
  options: readonly OptionRow[],
  args: CommandRow['arguments'],
  run: (commands: DataWriteCommands, call: DataCall, ...args: readonly string[]) => Promise<number>,
): CommandRow {
  return {
    ...{ name: `data ${name}`, description, arguments: args ?? [], options: [...WHERE, ...options, JSON_LINE], zookeeper: 'required' },
    run: async (given, settings: ZooKeeperCommandSettings, io, datum = '', ...rest) =>
      run(await import('./data-write-commands.js'), { name: datum, options: given as DataCommandOptions, settings, io }, ...rest),
  };
}

/** The commands of the group `data`. */
export const DATA_COMMANDS: readonly CommandRow[] = [
  reading('ls', 'show what shared data there is', [KIND, JSON_LINE], async (options, settings, io) =>
    (await import('./data-command.js')).listDataCommand(options, settings, io),
  ),
  reading(
    'get',
    'print a scalar, the entries of a collection, or the value of one',
    [TYPE_OF_ENTRY, JSON_LINE],
    async (options, settings, io, name = '', key) => (await import('./data-command.js')).getDataCommand(name, key, options, settings, io),
    [NAME, ['[key]', 'the key of a map, the index of a list, or the value of a set']],
  ),
  writing('set', 'write a scalar', [TYPE], [NAME, ['<value>', 'its value']], ({ setCommand }, call, value = '') => setCommand(call, value)),
  writing(
    'put',
    'write an entry of a map',
    [TYPE, ['--key-type <type>', 'of the key', { default: 'String' }]],
    [NAME, ['<key>', 'its key'], ['<value>', 'its value']],
    ({ putCommand }, call, key = '', value = '') => putCommand(call, key, value),
  ),
  writing(
    'add',
    'add a value to a set, or append it to a list',
    [['--kind <kind>', 'set or list (default: whichever it is, a new set)'], TYPE],
    [NAME, ['<value>', 'the value']],
    ({ addCommand }, call, value = '') => addCommand(call, value),
  ),
  writing(
    'rm',
    'remove an entry, or the whole of it',
    [TYPE_OF_ENTRY],
    [NAME, ['[key]', 'the key of a map, the index of a list, or the value of a set (default: all of it)']],
    ({ removeCommand }, call, key) => removeCommand(call, key),
  ),
  reading(
    'watch',
    'show what shared data there is, and then every change, until interrupted',
    [['--json', 'one JSON object for each change, on one line']],
    async (options, settings, io, name) => (await import('./data-watch.js')).watchDataCommand(name, options, settings, io),
    [['[name]', 'only this']],
  ),
];
