import { acquireAgain } from '../../../node/locks/elect.js';
import { checkLockName } from '../../../node/locks/lock-place.js';
import { acquireLock } from '../../../node/locks/store-lock.js';
import { storeAccess } from '../../../node/runtime/opened-store.js';
import type { Call } from '../../kit/call.js';
import type { HoldingOptions } from '../../kit/holding.js';
import { lockLog, taskNamesOf, warnIfPrivate } from '../../kit/log/lease-log.js';
import { runHeldCommand } from '../../supervisor/supervised-command.js';

/** `nodelease lock NAME -- command`: runs the command while it holds the lock of that name on the store. */
export async function lockCommand(
  call: Call<HoldingOptions>,
  name: string,
  ...command: string[]
): Promise<number> {
  const { settings, io } = call;
  checkLockName(name);
  const { store, waitPollMs, durationMs, graceMs } = settings;
  return runHeldCommand(call, {
    command,
    acquire: async ({ log, signal, again, timeoutMs }) => {
      if (!again) log.info({ lock: name, store }, `lock ${name} is kept in ${store}`);
      warnIfPrivate(store, log, 'no other task will see this lock');
      const { taskId } = await taskNamesOf(settings, io, log, signal);
      return (again ? acquireAgain : acquireLock)(name, {
        ...storeAccess(settings),
        store,
        waitPollMs,
        durationMs,
        graceMs,
        taskId,
        timeoutMs,
        signal,
        clock: io.clock,
        random: io.random,
        onEvent: lockLog(log.child({ taskId }), name),
      });
    },
    variables: () => ({ LOCK_NAME: name }),
  });
}
