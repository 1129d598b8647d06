import { explain } from '../../core/base/errors.js';
import { problemOf } from '../http/problem.js';
import type { Logger } from '../kit/log/logger.js';
import type { DiscoveryServerEvent } from './curator/discovery-server.js';

/**
 * A listener that logs one line an event. `zookeeperLog` logs a lost connection, so that not every request does.
 */
export function discoveryServeLog(
  log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>,
): (event: DiscoveryServerEvent) => void {
  return (event) => {
    switch (event.type) {
      case 'request-failed': {
        const { error } = problemOf(event.error);
        const level = error === 'internal' ? 'error' : error === 'unavailable' ? 'debug' : 'warn';
        return log[level](
          { ...(level === 'error' && { err: event.error }) },
          `${event.request}: ${explain(event.error)}`,
        );
      }
      case 'unreadable':
        return log.warn({ path: event.path }, `${event.path} ${event.problem}: ignored`);
    }
  };
}
