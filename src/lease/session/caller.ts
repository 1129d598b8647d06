import { ConfigError } from '../../base/errors.js';
import type { LeaseListener } from '../model/lease.js';

/** @throws {ConfigError} when a task id is not 1 to 128 printable ASCII characters without spaces */
export function checkTaskId(taskId: string): void {
  if (!/^[\x21-\x7e]{1,128}$/.test(taskId)) throw new ConfigError('taskId', taskId, '1 to 128 printable ASCII characters without spaces');
}

/** A listener that fails must not take the lease along: its error surfaces as an uncaught one, outside of the engine. */
export function detached(listener: LeaseListener | undefined): LeaseListener {
  return (event) => {
    try {
      listener?.(event);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  };
}
