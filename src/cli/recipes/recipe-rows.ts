import {
  type Command,
  type CommandRow,
  JSON_LINE,
  type OptionRow,
  type WithZooKeeper,
} from '../kit/command-row.js';
import { OF_ZOOKEEPER } from '../kit/command-settings.js';
import { HOLDING_OPTIONS, WAITING_OPTIONS } from '../kit/holding.js';
import type { HeldKind } from './hold-command.js';

/** A lock is lost for sure after half a session of silence, an entry of discovery after a whole one. */
const defaults = { 'zookeeper-session-timeout': '20s' };
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
    examples: [example, `zk ${kind} /locks/report ${flags}--timeout 1m -- ./report.sh`],
    runs: true,
    options: [...own, ...HOLDING_OPTIONS],
    settings: [...OF_ZOOKEEPER, 'task-id'],
    defaults,
    zookeeper: 'required',
    load: async () => (await import('./hold-command.js')).holdRecipe(kind, example),
  };
}

type RecipeCommands = typeof import('./recipe-commands.js');

/** A command that does one thing with a recipe. */
function single(
  name: string,
  description: string,
  examples: CommandRow['examples'],
  options: readonly OptionRow[],
  choose: (commands: RecipeCommands) => Command<WithZooKeeper>,
  more: CommandRow['arguments'] = [],
): CommandRow {
  return {
    name: `zk ${name}`,
    description,
    arguments: [PATH, ...more],
    examples,
    options: [...options, JSON_LINE],
    settings: OF_ZOOKEEPER,
    defaults,
    zookeeper: 'required',
    load: async () => choose(await import('./recipe-commands.js')),
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
  single(
    'barrier set',
    "set a barrier, Curator's DistributedBarrier",
    ['zk barrier set /barriers/import', 'zk barrier set /barriers/import --json'],
    [],
    ({ barrierCommand }) => barrierCommand('set'),
  ),
  single(
    'barrier wait',
    'wait until a barrier is open',
    ['zk barrier wait /barriers/import', 'zk barrier wait /barriers/import --timeout 10m'],
    WAITING_OPTIONS,
    ({ barrierCommand }) => barrierCommand('wait'),
  ),
  single(
    'barrier remove',
    'open a barrier',
    ['zk barrier remove /barriers/import', 'zk barrier remove /barriers/import --json'],
    [],
    ({ barrierCommand }) => barrierCommand('remove'),
  ),
  single(
    'counter',
    "print a counter of 64 bits, Curator's DistributedAtomicLong",
    ['zk counter /counters/orders', 'zk counter /counters/orders --add 1'],
    [['--add <n>', 'add that first, such as 1 or -5']],
    ({ counterCommand }) => counterCommand,
  ),
  single(
    'queue put',
    'put an item at the end of a queue, and print how many',
    ['zk queue put /queues/work job-17', 'zk queue put /queues/work --simple < jobs.txt'],
    [SIMPLE],
    ({ putCommand }) => putCommand,
    [['[item]', 'the item (default: each line of standard input)']],
  ),
  single(
    'queue take',
    'take the first items from a queue, and print each on a line',
    ['zk queue take /queues/work', 'zk queue take /queues/work -n 10 --timeout 30s'],
    [
      ['-n, --count <k>', 'how many, 1 to 1000000000 (default: 1)'],
      SIMPLE,
      [
        '--lock-path <path>',
        'the path of all takers for their locks: an item is had at least once then, and else at most once',
      ],
      ...WAITING_OPTIONS,
    ],
    ({ takeCommand }) => takeCommand,
  ),
];
