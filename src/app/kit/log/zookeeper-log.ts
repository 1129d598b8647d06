import type { SessionState } from '../../../zookeeper/client/session-state.js';
import type { Logger } from './logger.js';

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
