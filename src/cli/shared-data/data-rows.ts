import { type CommandRow, JSON_LINE, type OptionRow } from '../kit/command-row.js';
import type { ZooKeeperCommandSettings } from '../kit/on-zookeeper.js';
import type { DataCall, DataCommandOptions } from './data-command.js';

const NAME = ['<name>', 'its name'] as const;
const VALUE = ['<value>', 'the value'] as const;
const WHERE: readonly OptionRow[] = [
  ['--root <path>', 'where the nodes and data stand', { default: '/monastery/root' }],
  ['--scope <scope>', 'the scope of the name (default: none)'],
];
const TYPE: OptionRow = [
  '--type <type>',
  'of the value: String, Boolean, Integer, Long, Double, BigInteger, BigDecimal, Json, Bytes (base64) or Null',
  { default: 'String' },
];
const TYPE_OF_ENTRY: OptionRow = [
  '--type <type>',
  'of the key, and of the value of a set, where several entries have the same text',
];

/** @param run is given the module of the commands, the call and its arguments */
function row(
  name: string,
  description: string,
  args: CommandRow['arguments'] & {},
  options: readonly OptionRow[],
  run: (
    commands: typeof import('./data-command.js'),
    call: DataCall,
    ...args: readonly string[]
  ) => Promise<number>,
): CommandRow {
  return {
    ...{
      name: `data ${name}`,
      description,
      arguments: args,
      options: [...WHERE, ...options],
      zookeeper: 'required',
    },
    run: async (options, settings: ZooKeeperCommandSettings, io, ...rest) =>
      run(
        await import('./data-command.js'),
        { options: options as DataCommandOptions, settings, io },
        ...rest,
      ),
  };
}

/** The commands of the group `data`. */
export const DATA_COMMANDS: readonly CommandRow[] = [
  row(
    'ls',
    'show what shared data there is',
    [],
    [['--kind <kind>', 'scalar, set, list or map (default: all)'], JSON_LINE],
    (data, call) => data.listDataCommand(call),
  ),
  row(
    'get',
    'print a scalar, the entries of a collection, or the value of one',
    [NAME, ['[key]', 'the key of a map, the index of a list, or the value of a set']],
    [TYPE_OF_ENTRY, JSON_LINE],
    (data, call, name = '', key) => data.getDataCommand(call, name, key),
  ),
  row('set', 'write a scalar', [NAME, VALUE], [TYPE, JSON_LINE], (data, call, name = '', value = '') =>
    data.writeDataCommand(call, name, 'scalar', value),
  ),
  row(
    'put',
    'write an entry of a map',
    [NAME, ['<key>', 'its key'], VALUE],
    [TYPE, ['--key-type <type>', 'of the key', { default: 'String' }], JSON_LINE],
    (data, call, name = '', key = '', value = '') => data.writeDataCommand(call, name, 'map', value, key),
  ),
  row(
    'add',
    'add a value to a set, or append it to a list',
    [NAME, VALUE],
    [['--kind <kind>', 'set or list (default: whichever it is, a new set)'], TYPE, JSON_LINE],
    (data, call, name = '', value = '') => data.writeDataCommand(call, name, undefined, value),
  ),
  row(
    'rm',
    'remove an entry, or the whole of it',
    [NAME, ['[key]', 'the key of a map, the index of a list, or the value of a set (default: all of it)']],
    [TYPE_OF_ENTRY, JSON_LINE],
    (data, call, name = '', key) => data.removeDataCommand(call, name, key),
  ),
  row(
    'watch',
    'show what shared data there is, and then every change, until interrupted',
    [['[name]', 'only this']],
    [['--json', 'one JSON object for each change, on one line']],
    async (_, call, name) => (await import('./data-watch.js')).watchDataCommand(call, name),
  ),
];
