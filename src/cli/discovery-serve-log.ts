import { explain } from '../errors.js';
import type { DiscoveryServerEvent } from '../http/discovery-server.js';
import { problemOf } from '../http/problem.js';
import type { SessionState } from '../zookeeper/session-state.js';
import type { Logger } from './logger.js';

/** A listener that logs one line per event. That ZooKeeper is away is logged once, by {@link zookeeperLog}, and not for every request. */
export function discoveryServeLog(log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>): (event: DiscoveryServerEvent) => void {
  return (event) => {
    switch (event.type) {
      case 'request-failed': {
        const { error } = problemOf(event.error);
        const level = error === 'internal' ? 'error' : error === 'unavailable' ? 'debug' : 'warn';
        return log[level]({ ...(level === 'error' && { err: event.error }) }, `${event.request}: ${explain(event.error)}`);
      }
      case 'unreadable':
        return log.warn({ path: event.path }, `${event.path} ${event.problem}: ignored`);
      case 'purged':
        return log.info({ service: event.name, id: event.id }, `${event.name}/${event.id} was not written again in time: unregistered`);
      case 'purge-failed':
        return log.debug(`the STATIC instances could not be looked through: ${explain(event.error)}`);
    }
  };
}

/** A listener that logs when the connection to ZooKeeper is lost, each time once, and when it is there. */
export function zookeeperLog(log: Pick<Logger, 'info' | 'warn'>, description: string): (state: SessionState) => void {
  let away = false;
  return (state) => {
    const because = 'problem' in state && state.problem !== undefined ? `: ${state.problem}` : '';
    if (state.status === 'connected') log.info({ zookeeper: 'ok' }, `connected to ${description}`);
    else if (state.status === 'expired') log.warn({ zookeeper: 'expired' }, `session ${state.sessionId} has expired`);
    else if (!away && (state.status === 'suspended' || because !== ''))
      log.warn({ zookeeper: 'away' }, `no connection to ${description}${because}`);
    away = state.status !== 'connected' && (away || state.status !== 'connecting' || because !== '');
  };
}
