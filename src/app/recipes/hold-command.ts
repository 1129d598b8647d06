import { onAbort } from '../../core/base/abort.js';
import { explain } from '../../core/base/errors.js';
import { taskNames } from '../../core/base/host/task-id.js';
import type { Watch, ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { elect } from '../../zookeeper/recipes/elect.js';
import { lock } from '../../zookeeper/recipes/lock.js';
import { readLock, writeLock } from '../../zookeeper/recipes/read-write-lock.js';
import { semaphore } from '../../zookeeper/recipes/semaphore.js';
import { connectTo, type ZooKeeperCall } from '../kit/call.js';
import { type HoldingOptions, waitTimeout } from '../kit/holding.js';
import { UsageError } from '../kit/io.js';
import { lossOf } from '../supervisor/held.js';
import { type Hold, runHeldCommand } from '../supervisor/supervised-command.js';

/** The options, as they are on the command line; those of read/write locks and semaphores among them. */
interface Options extends HoldingOptions {
  readonly read?: boolean;
  readonly write?: boolean;
  readonly leases?: number;
}

/** What there is to hold, and how to contend for it. */
const CONTENDERS = {
  lock: (zookeeper: ZooKeeper, path: string, data: string) => lock(zookeeper, path, { data }),
  elect: (zookeeper: ZooKeeper, path: string, id: string) => elect(zookeeper, path, { id }),
  rwlock: (zookeeper: ZooKeeper, path: string, data: string, { read, write }: Options) => {
    if (read === write) throw new UsageError('expected one of --read and --write');
    return (read ? readLock : writeLock)(zookeeper, path, { data });
  },
  semaphore: (zookeeper: ZooKeeper, path: string, data: string, { leases }: Options) => {
    if (leases === undefined)
      throw new UsageError('expected --leases N, the same for all users of the semaphore');
    return semaphore(zookeeper, path, { data, leases });
  },
};

/** The znodes of kazoo's Lock, Election, ReadLock and WriteLock. */
const KAZOOS = /__r?lock__/;

export type HeldKind = keyof typeof CONTENDERS;

/**
 * `nodelease zk lock|elect|rwlock|semaphore PATH -- command`: runs the command while it holds that. The
 * command finds the path and the fencing token in its variables.
 */
export const holdRecipe =
  (kind: HeldKind) =>
  async (call: ZooKeeperCall<Options>, path: string, ...command: string[]): Promise<number> => {
    const { options, settings, io } = call;
    // A wrong one is an error before anything is connected.
    waitTimeout(options);
    const taskId = settings.taskId ?? (await taskNames(io)).taskId;
    const zookeeper = await connectTo(settings.zookeeper, io);
    let held: Hold | undefined;
    let others: Watch | undefined;
    try {
      const contender = CONTENDERS[kind](zookeeper, path, taskId, options);
      return await runHeldCommand(call, {
        command,
        acquire: async ({ log, signal, again, timeoutMs }) => {
          const facts = { lock: path, taskId };
          log.info(facts, `standing for ${path}`);
          // ZooKeeper that is away is waited for after a loss only, or for the time-out.
          if (!again && timeoutMs === undefined)
            await zookeeper.whenConnected({ signal }).catch((error: unknown) => {
              signal.throwIfAborted();
              throw error;
            });
          const handle = await contender.acquire({ timeoutMs, signal });
          held = handle;
          // A field named token would be taken for a secret.
          log.info(
            { ...facts, znode: handle.path, fencingToken: String(handle.token) },
            `acquired ${path} with token ${handle.token}`,
          );
          onAbort(handle.signal, () =>
            log.error({ ...facts, code: lossOf(handle)?.code }, explain(handle.signal.reason)),
          );
          others?.close();
          others = watchKazoo(zookeeper, path, (name) => {
            log.warn(
              { ...facts, znode: `${path}/${name}` },
              `kazoo contends for ${path} under names of its own: it does not see this holder, and may hold it too`,
            );
          });
          return handle;
        },
        variables: () => ({ LOCK_PATH: path }),
      });
    } finally {
      others?.close();
      // It goes with the session: where work may be left it has not been released, and the session has to
      // expire.
      if (!held?.isValid()) await zookeeper.close();
    }
  };

/** Calls `report` once, when a contender of kazoo's appears, which waits for its own kind alone. */
function watchKazoo(zookeeper: ZooKeeper, path: string, report: (name: string) => void): Watch {
  let isReported = false;
  return zookeeper.watchChildren(path, (names = []) => {
    const name = isReported ? undefined : names.find((each) => KAZOOS.test(each));
    if (name === undefined) return;
    isReported = true;
    report(name);
  });
}
