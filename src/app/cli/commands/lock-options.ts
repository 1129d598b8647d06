import { storeAccess } from '../../../node/runtime/opened-store.js';
import type { Call } from '../../kit/call.js';
import { lockLog, taskNamesOf, warnIfPrivate } from '../../kit/log/lease-log.js';
import type { HoldRequest } from '../../supervisor/supervised-command.js';

/** How a command acquires a lock, and logs that. Warns of a store that no other task sees. */
export async function lockOptions({ settings, io }: Call, name: string, request: HoldRequest) {
  const { log, signal, timeoutMs } = request;
  const { store, waitPollMs, durationMs, graceMs } = settings;
  const { clock, random } = io;
  warnIfPrivate(store, log, 'no other task will see this lock');
  const { taskId } = await taskNamesOf(settings, io, log, signal);
  const onEvent = lockLog(log.child({ taskId }), name);
  const own = { store, waitPollMs, durationMs, graceMs, taskId, timeoutMs, signal, clock, random, onEvent };
  return { ...storeAccess(settings), ...own };
}
