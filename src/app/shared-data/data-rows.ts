import { choice } from '../../core/settings/setting.js';
import { JSON_CHANGES, JSON_LINE, type OptionRow, type TableRow, zooKeeperRows } from '../kit/command-row.js';

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

const row = zooKeeperRows('data', WHERE);

const command = (name: Exclude<keyof typeof import('./data-command.js'), 'checkOptions'>) => async () =>
  (await import('./data-command.js'))[name];

/** The group `data` and its commands. */
export const DATA_COMMANDS: readonly TableRow[] = [
  {
    name: 'data',
    door: 'With ZooKeeper',
    description:
      "look into Monastery's shared data in ZooKeeper, and change it: scalars, sets, lists and maps",
  },
  row(
    'ls',
    'show what shared data there is',
    ['data ls', 'data ls --kind map --json'],
    [],
    [
      [
        '--kind <kind>',
        'scalar, set, list or map (default: all)',
        { kind: choice('scalar', 'set', 'list', 'map') },
      ],
      JSON_LINE,
    ],
    command('ls'),
  ),
  row(
    'get',
    'print a scalar, the entries of a collection, or the value of one',
    ['data get settings', 'data get settings color --json'],
    [NAME, ['[key]', 'the key of a map, the index of a list, or the value of a set']],
    [TYPE_OF_ENTRY, JSON_LINE],
    command('get'),
  ),
  row(
    'set',
    'write a scalar',
    ['data set motto hello', 'data set limit --type Integer 20'],
    [NAME, VALUE],
    [TYPE, JSON_LINE],
    command('set'),
  ),
  row(
    'put',
    'write an entry of a map',
    ['data put settings color red', 'data put settings size --type Integer 20'],
    [NAME, ['<key>', 'its key'], VALUE],
    [TYPE, ['--key-type <type>', 'of the key', { default: 'String' }], JSON_LINE],
    command('put'),
  ),
  row(
    'add',
    'add a value to a set, or append it to a list',
    ['data add members alice', 'data add steps build --kind list'],
    [NAME, VALUE],
    [
      ['--kind <kind>', 'set or list (default: whichever it is, a new set)', { kind: choice('set', 'list') }],
      TYPE,
      JSON_LINE,
    ],
    command('add'),
  ),
  row(
    'rm',
    'remove an entry, or the whole of it',
    ['data rm settings color', 'data rm settings'],
    [NAME, ['[key]', 'the key of a map, the index of a list, or the value of a set (default: all of it)']],
    [TYPE_OF_ENTRY, JSON_LINE],
    command('rm'),
  ),
  row(
    'watch',
    'show what shared data there is, and then every change, until interrupted',
    ['data watch', 'data watch settings --json'],
    [['[name]', 'only this']],
    [JSON_CHANGES],
    async () => (await import('./data-watch.js')).watchData,
  ),
];
