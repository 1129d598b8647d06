import { explain } from '../../../core/base/errors.js';
import type { DiscoveryEvent } from '../../../zookeeper/discovery/discovery.js';
import type { ReadinessEvent } from '../../../zookeeper/discovery/readiness.js';
import type { RegistrationEvent } from '../../../zookeeper/services/registered-znode.js';
import type { Logger } from './logger.js';

/**
 * A listener that logs one line per event: changes at info, what a person should look into at warn and above.
 */
export function discoveryLog(log: Pick<Logger, 'info' | 'warn' | 'error'>): (event: DiscoveryEvent) => void {
  return (event) => {
    switch (event.type) {
      case 'synced':
        return log.info({ discovery: 'ok' }, 'discovery: ok, this node is in the tree');
      case 'degraded':
        return log.warn({ discovery: 'degraded' }, `discovery: degraded: ${event.problem}`);
      case 'superseded':
        return log.error(
          { path: event.path, version: event.by.version },
          `${event.path} belongs to task ${event.by.taskId} under the higher version ${event.by.version}: this task is the stale one, its lease decides`,
        );
      case 'blocked':
        return log.warn({ path: event.path }, `${event.problem}: left alone`);
      case 'unreadable':
        return log.warn({ path: event.path }, `${event.path} ${event.problem}: ignored`);
      case 'service':
        return logRegistration(event.event, log);
      case 'readiness':
        return logReadiness(event.event, log);
      case 'ready': {
        const { why, ignorant, tookMs } = event.readiness;
        if (why !== 'timeout') return log.info({ why, tookMs: Math.round(tookMs) }, 'ready');
        const lack = ignorant
          ? `${nodesDo(ignorant)} still not know this version of the node id`
          : 'the leases could not be read';
        return log.warn({ ignorant }, `ready after the time-out: ${lack}`);
      }
    }
  };
}

function logRegistration(event: RegistrationEvent, log: Pick<Logger, 'warn'>) {
  const { path } = event;
  if (event.type === 'restored') log.warn({ path }, `${path} ${event.problem}: it stands there again`);
  else if (event.type === 'mixed-payloads')
    log.warn(
      { path, warning: event.type },
      `${path} ${event.problem}: use another service name, or the same --payload-type`,
    );
  else
    log.warn(
      { path, by: event.by },
      `${path} has been taken by another registrant: left alone until it goes`,
    );
}

function logReadiness(event: ReadinessEvent, log: Pick<Logger, 'info' | 'warn'>) {
  if (event.type === 'waiting') {
    log.info(
      { ignorant: event.ignorant },
      `not ready yet: ${nodesDo(event.ignorant)} not know this version of the node id`,
    );
  } else log.warn(`not ready yet: the leases could not be read: ${explain(event.error)}`);
}

/** Of many nodes only the number is named. */
function nodesDo(ids: readonly number[]): string {
  if (ids.length === 1) return `node ${ids[0]} does`;
  return ids.length > 10 ? `${ids.length} nodes do` : `nodes ${ids.join(', ')} do`;
}
