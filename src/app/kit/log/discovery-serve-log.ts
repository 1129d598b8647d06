import { explain } from '../../../core/base/errors.js';
import type { SessionState } from '../../../zookeeper/client/session-state.js';
import type { DiscoveryServerEvent } from '../../http/curator/discovery-server.js';
import { problemOf } from '../../http/problem.js';
import type { Logger } from './logger.js';

/**
 * A listener that logs one line an event. {@link zookeeperLog} logs a lost connection, so that not every
 * request does.
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

/** A listener that logs each loss of the connection to ZooKeeper once, and each connection. */
export function zookeeperLog(
  log: Pick<Logger, 'info' | 'warn'>,
  description: string,
): (state: SessionState) => void {
  let away = false;
  return (state) => {
    const because = 'problem' in state && state.problem !== undefined ? `: ${state.problem}` : '';
    if (state.status === 'connected') log.info({ zookeeper: 'ok' }, `connected to ${description}`);
    else if (state.status === 'expired')
      log.warn({ zookeeper: 'expired' }, `session ${state.sessionId} has expired`);
    else if (!away && (state.status === 'suspended' || because !== ''))
      log.warn({ zookeeper: 'away' }, `no connection to ${description}${because}`);
    away = state.status !== 'connected' && (away || state.status !== 'connecting' || because !== '');
  };
}
