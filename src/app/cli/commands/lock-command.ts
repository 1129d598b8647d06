import { acquireAgain } from '../../../node/locks/elect.js';
import { checkLockName } from '../../../node/locks/lock-place.js';
import { acquireLock } from '../../../node/locks/store-lock.js';
import type { Call } from '../../kit/call.js';
import type { HoldingOptions } from '../../kit/holding.js';
import { runHeldCommand } from '../../supervisor/supervised-command.js';
import { lockOptions } from './lock-options.js';

/** `nodelease lock NAME -- command`: runs the command while it holds the lock of that name on the store. */
export async function lockCommand(
  call: Call<HoldingOptions>,
  name: string,
  ...command: string[]
): Promise<number> {
  const { store } = call.settings;
  checkLockName(name);
  return runHeldCommand(call, {
    command,
    acquire: async (request) => {
      const { log, again } = request;
      if (!again) log.info({ lock: name, store }, `lock ${name} is kept in ${store}`);
      return (again ? acquireAgain : acquireLock)(name, await lockOptions(call, name, request));
    },
    variables: () => ({ LOCK_NAME: name }),
  });
}
