import { explain } from '../../../core/base/errors.js';
import { type TaskNames, taskNames } from '../../../core/base/host/task-id.js';
import { type LeaseEvent, type LeaseListener, waitingText } from '../../../core/lease/model/lease.js';
import { storeKindOf } from '../../../core/store/stores.js';
import type { Settings } from '../../settings/settings.js';
import type { Io } from '../io.js';
import { pluralize, settingText } from '../terminal/text.js';
import type { Logger } from './logger.js';

type Level = 'debug' | 'info' | 'warn' | 'error';

/**
 * After how much waiting it is said again, in milliseconds: alarms that count lines in five minutes have to
 * see a task that waits on.
 */
const SAY_AGAIN_AFTER_MS = 120_000;

/**
 * A listener that logs one line per event: changes at info, renewals at debug, what a person should look into
 * at warn and above. The field `event` has the event's type, for filters of logs: texts may change. Waiting
 * for a node id is logged at info at first, and again about every two minutes.
 */
export function leaseLog(log: Pick<Logger, Level>, lineOf = leaseLine): LeaseListener {
  let waitedMs = SAY_AGAIN_AFTER_MS;
  return (event: LeaseEvent) => {
    let [level, text, fields] = lineOf(event);
    if (event.type === 'waiting') {
      // A task may wait for hours and looks every second or so: not each of these is news.
      level = waitedMs < SAY_AGAIN_AFTER_MS ? 'debug' : 'info';
      waitedMs = (level === 'info' ? 0 : waitedMs) + event.sleepMs;
    }
    log[level]({ event: event.type, ...fields }, text);
  };
}

/** The names of this run, as they are configured or as its surroundings say. */
export function taskNamesOf(
  { taskId, clusterName }: Settings,
  io: Io,
  log: Logger,
  signal: AbortSignal,
): Promise<TaskNames> {
  return taskNames({ ...io, taskId, clusterName, signal, warn: (message) => log.warn(message) });
}

/** Logs where node ids come from. */
export function logSource({ nodeId, provider, store, zookeeper }: Settings, log: Logger): void {
  if (nodeId !== undefined) log.info({ nodeId }, `node id ${nodeId} is fixed: no lease, no store`);
  else if (provider === 'store') log.info({ store }, `node ids come from ${store}`);
  else log.info(`node ids come from ZooKeeper at ${zookeeper?.connect.text}`);
}

/** Warns of a store that no other process sees. @param so what comes of it, as a clause */
export function warnIfPrivate(url: string, log: Logger, so: string): void {
  if (storeKindOf(url)?.sharedBy === 'process')
    log.warn(`memory: is private to this process: ${so}. It is for trials only`);
}

/** The level of an event, its words, and its fields. */
type Line = readonly [level: Level, text: string, fields?: object];

/** The same for a lock, by its name; lines on the lease as such stay as they are. */
export function lockLog(log: Pick<Logger, Level>, lock: string): LeaseListener {
  return leaseLog(log, (event) => {
    const [level, text, fields] = leaseLine(event);
    // A new lock is usual, other than a new cluster.
    const ownLevel = event.type === 'cluster-created' ? 'info' : level;
    const loss = event.type === 'lost' && { code: 'LOCK_LOST' };
    return [ownLevel, lockText(event, lock) ?? text, { lock, ...fields, ...loss }];
  });
}

function lockText(event: LeaseEvent, lock: string): string | undefined {
  switch (event.type) {
    case 'cluster-created':
      return `lock ${lock} is new: no task has used it in ${event.store}`;
    case 'waiting':
      return event.why === undefined ? `lock ${lock} is held by another task: waiting` : undefined;
    case 'acquired':
      return `acquired lock ${lock} with token ${event.version} in ${event.store}`;
    case 'lost':
      return `lock ${lock} (token ${event.error.version}) is lost: ${event.error.detail}`;
    default:
      return undefined;
  }
}

function leaseLine(event: LeaseEvent): Line {
  switch (event.type) {
    case 'setting-overruled': {
      const { setting, own, stored } = event;
      const text =
        setting === 'prefer-id'
          ? `${own} has no effect: the cluster has ${pluralize(stored, 'node id')}`
          : `${settingText(setting, own)} is overruled: the cluster uses ${settingText(setting, stored)}`;
      return ['warn', `${setting} ${text}`, { setting, own, stored }];
    }
    case 'cluster-created': {
      const { size, store } = event;
      return ['warn', `created a new cluster of ${pluralize(size, 'node id')} in ${store}`, { size, store }];
    }
    case 'testing-store': {
      const { store } = event;
      return [
        'info',
        `testing the store, once: whether ${store} keeps its conditions, in some seconds`,
        { store },
      ];
    }
    case 'damaged':
      return ['error', `${event.key} cannot be used: ${event.problem}`, { key: event.key }];
    case 'waiting':
      return ['info', waitingText(event), { sleepMs: Math.round(event.sleepMs) }];
    case 'store-failed':
      return [
        'warn',
        `the store failed, trying again: ${explain(event.error)}`,
        { sleepMs: Math.round(event.sleepMs) },
      ];
    case 'acquired': {
      const { id: nodeId, version, from, previous, tookMs, requests, store } = event;
      const where = store === undefined ? '' : ` in ${store}`;
      const facts = { nodeId, version, from, previous, tookMs: Math.round(tookMs), requests, store };
      return ['info', `acquired node id ${nodeId} at version ${version}${where}`, facts];
    }
    case 'bootstrapped':
      return ['info', 'all lease objects of the cluster exist'];
    case 'renewed':
      return ['debug', 'lease renewed', { tookMs: Math.round(event.tookMs) }];
    case 'renewal-failed':
      return ['warn', `renewal failed: ${explain(event.error)}`, { attempt: event.attempt }];
    case 'retiring': {
      const { size } = event;
      return [
        'warn',
        `the node id is being retired: the cluster has ${pluralize(size, 'node id')} now`,
        { size },
      ];
    }
    case 'lost': {
      const { nodeId, version, reason, code } = event.error;
      return ['error', explain(event.error), { nodeId, version, reason, code }];
    }
    case 'released':
      return ['info', 'lease released'];
    case 'release-failed':
      return ['warn', `the release failed, the lease is left to expire: ${explain(event.error)}`];
  }
}
