import { type CommandRow, HOLDING, JSON_LINE, type OptionRow, WAITING } from '../kit/command-row.js';
import type { ZooKeeperCommandSettings } from '../kit/on-zookeeper.js';
import type { HeldKind } from './hold-command.js';
import type { RecipeCall } from './recipe-commands.js';

const PATH = ['<path>', 'its path, absolute within the chroot'] as const;
const SIMPLE: OptionRow = [
  '--simple',
  "the format of Curator's SimpleDistributedQueue, instead of DistributedQueue's",
];

/** A command that runs another one while it holds something in ZooKeeper. */
function holding(
  kind: HeldKind,
  description: string,
  own: readonly OptionRow[] = [],
  flags = '',
): CommandRow {
  const example = `zk ${kind} /locks/report ${flags}-- ./report.sh`;
  return {
    name: `zk ${kind}`,
    description,
    arguments: [PATH],
    example,
    options: [...own, ...HOLDING],
    zookeeper: 'required',
    run: async (options, settings: ZooKeeperCommandSettings, io, path = '', ...command) =>
      (await import('./hold-command.js')).holdRecipeCommand(
        { kind, path, example },
        command,
        options,
        settings,
        io,
      ),
  };
}

type RecipeCommands = typeof import('./recipe-commands.js');

/** A command that does one thing with a recipe. */
function single(
  name: string,
  description: string,
  options: readonly OptionRow[],
  run: (commands: RecipeCommands, call: RecipeCall, item?: string) => Promise<number>,
  more: CommandRow['arguments'] = [],
): CommandRow {
  return {
    ...{
      name: `zk ${name}`,
      description,
      arguments: [PATH, ...more],
      options: [...options, JSON_LINE],
      zookeeper: 'required',
    },
    run: async (given, settings: ZooKeeperCommandSettings, io, path = '', item) =>
      run(await import('./recipe-commands.js'), { path, options: given, settings, io }, item),
  };
}

/** The commands of the group `zk`. */
export const RECIPE_COMMANDS: readonly CommandRow[] = [
  holding('lock', "run a command while a lock is held: Curator's InterProcessMutex"),
  holding('elect', "run a command while this task leads: Curator's LeaderLatch"),
  holding(
    'rwlock',
    "run a command while a read lock or a write lock is held: Curator's InterProcessReadWriteLock",
    [
      ['--read', 'the lock that readers share'],
      ['--write', 'the lock that excludes all others'],
    ],
    '--write ',
  ),
  holding(
    'semaphore',
    "run a command while one of N leases is held: Curator's InterProcessSemaphoreV2",
    [['--leases <n>', 'how many may hold at a time, 1 to 1000000; the same for all users']],
    '--leases 3 ',
  ),
  single('barrier set', "set a barrier, Curator's DistributedBarrier", [], ({ barrierCommand }, call) =>
    barrierCommand('set', call),
  ),
  single('barrier wait', 'wait until a barrier is open', WAITING, ({ barrierCommand }, call) =>
    barrierCommand('wait', call),
  ),
  single('barrier remove', 'open a barrier', [], ({ barrierCommand }, call) =>
    barrierCommand('remove', call),
  ),
  single(
    'counter',
    "print a counter of 64 bits, Curator's DistributedAtomicLong",
    [['--add <n>', 'add that first, such as 1 or -5']],
    ({ counterCommand }, call) => counterCommand(call),
  ),
  single(
    'queue put',
    'put an item at the end of a queue, and print how many',
    [SIMPLE],
    ({ putCommand }, call, item) => putCommand(item, call),
    [['[item]', 'the item (default: each line of standard input)']],
  ),
  single(
    'queue take',
    'take the first items from a queue, and print each on a line',
    [
      ['-n, --count <k>', 'how many, 1 to 1000000000 (default: 1)'],
      SIMPLE,
      [
        '--lock-path <path>',
        'the path of all takers for their locks: an item is had at least once then, and else at most once',
      ],
      ...WAITING,
    ],
    ({ takeCommand }, call) => takeCommand(call),
  ),
];
