import { type CommandRow, HOLDING, type OptionRow } from '../commands/command-row.js';
import type { ZooKeeperCommandSettings } from '../commands/zookeeper-command.js';
import type { HeldKind } from './hold-command.js';

/** A command that runs another one while it holds something in ZooKeeper. */
function holding(kind: HeldKind, description: string, own: readonly OptionRow[] = [], flags = ''): CommandRow {
  const example = `zk ${kind} /locks/report ${flags}-- ./report.sh`;
  return {
    name: `zk ${kind}`,
    description,
    arguments: [['<path>', 'its path, absolute within the chroot']],
    example,
    options: [...own, ...HOLDING],
    zookeeper: 'required',
    run: async (options, settings: ZooKeeperCommandSettings, io, path = '', ...command) =>
      (await import('./hold-command.js')).holdRecipeCommand({ kind, path, example }, command, options, settings, io),
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
];
