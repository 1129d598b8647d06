import { storeAccess } from '../../../node/runtime/opened-store.js';
import type { Call } from '../../kit/call.js';
import { lockLog, taskNamesOf, warnIfPrivate } from '../../kit/log/lease-log.js';
import type { HoldRequest } from '../../supervisor/supervised-command.js';

/** What the settings say of locks. */
export function lockSettings({ settings, io: { clock, random } }: Call) {
  const { waitPollMs, durationMs, graceMs } = settings;
  return { ...storeAccess(settings), waitPollMs, durationMs, graceMs, clock, random };
}

/**
 * How a command acquires a lock, and logs that. Warns of a store that no other task sees.
 *
 * @param unseen what no other task will see there
 */
export async function lockOptions(call: Call, name: string, request: HoldRequest, unseen = 'this lock') {
  const { settings, io } = call;
  const { log, signal, timeoutMs } = request;
  const { store } = settings;
  warnIfPrivate(store, log, `no other task will see ${unseen}`);
  const { taskId } = await taskNamesOf(settings, io, log, signal);
  const onEvent = lockLog(log.child({ taskId }), name);
  return { ...lockSettings(call), store, taskId, timeoutMs, signal, onEvent };
}
