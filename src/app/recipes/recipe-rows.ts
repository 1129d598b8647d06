import { integer } from '../../core/settings/setting.js';
import {
  type CommandRow,
  JSON_LINE,
  OF_ZOOKEEPER,
  type OptionRow,
  type TableRow,
  zooKeeperRows,
} from '../kit/command-row.js';
import { HOLDING_OPTIONS, WAITING_OPTIONS } from '../kit/holding.js';
import type { HeldKind } from './hold-command.js';

// A lock is lost for sure after half a session of silence, an entry of discovery after a whole one.
const row = zooKeeperRows('zk', [], { defaults: { 'zookeeper-session-timeout': '20s' } });
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
  const examples = [
    `zk ${kind} /locks/report ${flags}-- ./report.sh`,
    `zk ${kind} /locks/report ${flags}--timeout 1m -- ./report.sh`,
  ] as const;
  const load = async () => (await import('./hold-command.js')).holdRecipe(kind);
  return {
    ...row(kind, description, examples, [PATH], [...own, ...HOLDING_OPTIONS], load),
    runs: true,
    settings: [...OF_ZOOKEEPER, 'task-id', 'ecs-protect'],
  };
}

const command = (name: keyof typeof import('./recipe-commands.js')) => async () =>
  (await import('./recipe-commands.js'))[name];

/** The group `zk` and its commands. */
export const RECIPE_COMMANDS: readonly TableRow[] = [
  {
    name: 'zk',
    door: 'With ZooKeeper',
    description:
      'coordinate tasks through ZooKeeper, as Apache Curator does: locks, elections, barriers, counters, queues',
  },
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
    [
      [
        '--leases <n>',
        'how many may hold at a time, 1 to 1000000; the same for all users',
        { kind: integer(1, 1_000_000) },
      ],
    ],
    '--leases 3 ',
  ),
  { name: 'zk barrier', description: 'a gate that is open unless a task has set it' },
  row(
    'barrier set',
    "set a barrier, Curator's DistributedBarrier",
    ['zk barrier set /barriers/import', 'zk barrier set /barriers/import --json'],
    [PATH],
    [JSON_LINE],
    command('setBarrier'),
  ),
  row(
    'barrier wait',
    'wait until a barrier is open',
    ['zk barrier wait /barriers/import', 'zk barrier wait /barriers/import --timeout 10m'],
    [PATH],
    [...WAITING_OPTIONS, JSON_LINE],
    command('waitForBarrier'),
  ),
  row(
    'barrier remove',
    'open a barrier',
    ['zk barrier remove /barriers/import', 'zk barrier remove /barriers/import --json'],
    [PATH],
    [JSON_LINE],
    command('removeBarrier'),
  ),
  row(
    'counter',
    "print a counter of 64 bits, Curator's DistributedAtomicLong",
    ['zk counter /counters/orders', 'zk counter /counters/orders --add 1'],
    [PATH],
    [['--add <n>', 'add that first, such as 1 or -5'], JSON_LINE],
    command('counterCommand'),
  ),
  { name: 'zk queue', description: 'a queue whose items are handed to one task each' },
  row(
    'queue put',
    'put an item at the end of a queue, and print how many',
    ['zk queue put /queues/work job-17', 'zk queue put /queues/work --simple < jobs.txt'],
    [PATH, ['[item]', 'the item (default: each line of standard input)']],
    [SIMPLE, JSON_LINE],
    command('putCommand'),
  ),
  row(
    'queue take',
    'take the first items from a queue, and print each on a line',
    ['zk queue take /queues/work', 'zk queue take /queues/work -n 10 --timeout 30s'],
    [PATH],
    [
      ['-n, --count <k>', 'how many, 1 to 1000000000 (default: 1)', { kind: integer(1, 1_000_000_000) }],
      SIMPLE,
      [
        '--lock-path <path>',
        'the path of all takers for their locks: an item is had at least once then, and else at most once',
      ],
      ...WAITING_OPTIONS,
      JSON_LINE,
    ],
    command('takeCommand'),
  ),
];
