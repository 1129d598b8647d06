import { explain } from '../../base/errors.js';
import type { LeaseEvent, LeaseListener } from '../../lease/model/lease.js';
import { pluralize } from '../terminal/text.js';
import type { Logger } from './logger.js';

/** After how much waiting it is said again, in milliseconds: alarms that count lines in five minutes have to see a task that waits on. */
const SAY_AGAIN_AFTER_MS = 120_000;

/**
 * A listener that logs one line per event: changes at info, renewals at debug, what a person should look into at warn and above.
 * The field `event` has the event's type, for filters of logs: texts may change. Waiting for a node id is told at info at first, and again
 * about every two minutes.
 */
export function leaseLog(log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>): LeaseListener {
  let waitedMs = SAY_AGAIN_AFTER_MS;
  return (event: LeaseEvent) => {
    const { type } = event;
    switch (event.type) {
      case 'setting-overruled':
        return log.warn(
          { event: type, setting: event.setting, own: event.own, stored: event.stored },
          `${event.setting} ${event.own} is overruled: the cluster uses ${event.stored}`,
        );
      case 'damaged':
        return log.error({ event: type, key: event.key }, `${event.key} cannot be used: ${event.problem}`);
      case 'waiting': {
        // A task may wait for hours and looks every second or so: not each of these is news.
        const level = waitedMs < SAY_AGAIN_AFTER_MS ? 'debug' : 'info';
        waitedMs = (level === 'info' ? 0 : waitedMs) + event.sleepMs;
        return log[level](
          { event: type, sleepMs: Math.round(event.sleepMs) },
          event.why === undefined ? 'no node id is free: waiting' : `no node id can be had yet, waiting: ${event.why}`,
        );
      }
      case 'store-failed':
        return log.warn({ event: type, sleepMs: Math.round(event.sleepMs) }, `the store failed, trying again: ${explain(event.error)}`);
      case 'acquired':
        return log.info(
          {
            event: type,
            nodeId: event.id,
            version: event.version,
            from: event.from,
            tookMs: Math.round(event.tookMs),
            requests: event.requests,
          },
          `acquired node id ${event.id} at version ${event.version}`,
        );
      case 'bootstrapped':
        return log.info({ event: type }, 'all lease objects of the cluster exist');
      case 'renewed':
        return log.debug({ event: type, tookMs: Math.round(event.tookMs) }, 'lease renewed');
      case 'renewal-failed':
        return log.warn({ event: type, attempt: event.attempt }, `renewal failed: ${explain(event.error)}`);
      case 'retiring':
        return log.warn(
          { event: type, size: event.size },
          `the node id is being retired: the cluster has ${pluralize(event.size, 'node id')} now`,
        );
      case 'lost':
        return log.error(
          { event: type, nodeId: event.error.nodeId, version: event.error.version, reason: event.error.reason },
          explain(event.error),
        );
      case 'released':
        return log.info({ event: type }, 'lease released');
      case 'release-failed':
        return log.warn({ event: type }, `the release failed, the lease is left to expire: ${explain(event.error)}`);
    }
  };
}
