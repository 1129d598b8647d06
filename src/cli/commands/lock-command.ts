import { ConfigError } from '../../base/errors.js';
import { defaultTaskId } from '../../base/task-id.js';
import { acquireAgain } from '../../locks/elect.js';
import { checkLockName } from '../../locks/lock-place.js';
import { acquireLock } from '../../locks/store-lock.js';
import type { Settings } from '../../settings/settings.js';
import { duration } from '../../settings/values.js';
import { lockLog } from '../log/lease-log.js';
import { runHeldCommand } from '../run/held-command.js';
import type { Io } from '../terminal/io.js';

/**
 * The options of the commands that run another one while they hold something, as they stand on the command
 * line.
 */
export interface HoldingOptions {
  readonly try?: boolean;
  readonly timeout?: string;
  readonly restart?: boolean;
}

/** `nodelease lock NAME -- command`: runs the command while it holds the lock of that name on the store. */
export async function lockCommand(
  name: string,
  command: readonly string[],
  options: HoldingOptions,
  settings: Settings,
  io: Io,
): Promise<number> {
  checkLockName(name);
  const timeoutMs = waitTimeout(options);
  const { store, endpoint, region, etcd, waitPollMs, durationMs, graceMs } = settings;
  return runHeldCommand({
    ...{
      command,
      example: 'lock nightly -- ./report.sh',
      settings,
      io,
      restart: options.restart === true,
      waits: timeoutMs !== 0,
    },
    acquire: async ({ log, signal, again }) => {
      if (!again) log.info({ lock: name, store: store.url }, `lock ${name} is kept in ${store.url}`);
      if (store.kind === 'memory')
        log.warn(
          'memory: is private to this process: no other task will see this lock. It is for trials only',
        );
      const taskId =
        settings.taskId ?? (await defaultTaskId({ ...io, signal, warn: (message) => log.warn(message) }));
      return (again ? acquireAgain : acquireLock)(name, {
        ...{
          store: store.url,
          endpoint,
          region,
          etcd,
          waitPollMs,
          durationMs,
          graceMs,
          taskId,
          timeoutMs,
          signal,
        },
        ...{ clock: io.clock, random: io.random, onEvent: lockLog(log.child({ taskId }), name) },
      });
    },
    variables: ({ token }) => ({ LOCK_NAME: name, LOCK_TOKEN: String(token) }),
  });
}

const TIMEOUT = duration({ max: 31_536_000_000 });

/** How long to wait, in milliseconds; undefined for without limit. @throws {ConfigError} */
export function waitTimeout({ try: once, timeout }: HoldingOptions): number | undefined {
  if (timeout === undefined) return once ? 0 : undefined;
  if (once) throw new ConfigError('--timeout', timeout, 'no --try beside it, which does not wait');
  return TIMEOUT.parse(timeout, '--timeout');
}
