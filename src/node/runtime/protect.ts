import { taskProtection } from '../../core/base/host/task-protection.js';
import { systemClock } from '../../core/base/system.js';

const users = new Set<object>();
const protectTask = taskProtection({
  env: process.env,
  clock: systemClock,
  log: { warn: (message) => process.emitWarning(message, { code: 'NODELEASE_ECS_PROTECT' }) },
});

/**
 * Protects this task of an ECS service from scale-in and deployments until the handle is disposed of: for a
 * piece of work, or while a lock or a shard is held. The last handle of a process removes the protection. Resolves
 * when the agent of ECS has answered, or after five seconds. The task's role needs `ecs:UpdateTaskProtection`.
 *
 * ```ts
 * await using protection = await protect();
 * await report();
 * ```
 *
 * Not guaranteed: that the task is protected. A failure is a warning of the process, and repeated every minute.
 */
export async function protect(): Promise<AsyncDisposable> {
  const user = {
    [Symbol.asyncDispose]: async () => {
      users.delete(user);
      await protectTask(users.size > 0);
    },
  };
  users.add(user);
  await protectTask(true);
  return user;
}
