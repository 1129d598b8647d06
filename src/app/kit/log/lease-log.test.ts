import { describe, expect, it } from 'vitest';
import { type LeaseEvent, LeaseLostError } from '../../../core/lease/model/lease.js';
import { leaseLog, lockLog } from './lease-log.js';
import type { Logger } from './logger.js';

function linesOf(...events: LeaseEvent[]): string[] {
  return linesBy(leaseLog, events);
}

/** The codes in the fields of all lines. */
function codesBy(listenerFor: typeof leaseLog, events: readonly LeaseEvent[]): unknown[] {
  const codes: unknown[] = [];
  const take = ({ code }: { code?: unknown }) => void (code !== undefined && codes.push(code));
  const listener = listenerFor({ debug: take, info: take, warn: take, error: take } as never);
  for (const event of events) listener(event);
  return codes;
}

function linesBy(listenerFor: typeof leaseLog, events: readonly LeaseEvent[]): string[] {
  const lines: string[] = [];
  const at =
    (level: string) =>
    (...line: unknown[]) =>
      void lines.push(`${level} ${line.at(-1)}`);
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const listener = listenerFor(log as Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>);
  for (const event of events) listener(event);
  return lines;
}

describe('the log of a lease', () => {
  it('names every line by the type of its event, so that logs can be filtered', () => {
    const error = new Error('no route');
    const events: LeaseEvent[] = [
      { type: 'setting-overruled', setting: 'duration', own: 5_000, stored: 15_000 },
      { type: 'cluster-created', size: 20, store: 's3://b/p' },
      { type: 'damaged', key: '3.json', problem: 'not JSON' },
      { type: 'waiting', sleepMs: 12.4 },
      { type: 'store-failed', error, sleepMs: 100 },
      {
        type: 'acquired',
        id: 3,
        version: 8,
        from: 'released',
        tookMs: 20.4,
        requests: 5,
        deadline: 1,
        store: 's3://b/p',
      },
      { type: 'bootstrapped' },
      { type: 'renewed', deadline: 1, tookMs: 3 },
      { type: 'renewal-failed', error, attempt: 1 },
      { type: 'retiring', size: 2 },
      { type: 'lost', error: new LeaseLostError(3, 8, 'taken', 1, 'task b holds it at version 9') },
      { type: 'released' },
      { type: 'release-failed', error },
    ];
    const named: unknown[] = [];
    const take = (fields: unknown) => void named.push((fields as { event?: unknown }).event);
    const listener = leaseLog({ debug: take, info: take, warn: take, error: take } as Pick<
      Logger,
      'debug' | 'info' | 'warn' | 'error'
    >);
    for (const event of events) listener(event);
    expect(named).toEqual(events.map(({ type }) => type));
    expect(codesBy(leaseLog, events)).toEqual(['LEASE_LOST']);
  });

  it('says again every other minute that it waits for a node id, for alarms that count lines, and not at each look', () => {
    const levels = linesOf(
      ...Array.from({ length: 1_000 }, (): LeaseEvent => ({ type: 'waiting', sleepMs: 1_200 })),
    ).map((line) => line.slice(0, line.indexOf(' ')));
    const logged = levels.flatMap((level, at) => (level === 'info' ? [at * 1.2] : []));
    expect(logged).toEqual([0, 120, 240, 360, 480, 600, 720, 840, 960, 1_080]);
    expect(new Set(levels)).toEqual(new Set(['info', 'debug']));
  });

  it('has one line for every event, as loud as a person should hear it', () => {
    const error = new Error('no route', { cause: new Error('ENETUNREACH') });
    expect(
      linesOf(
        { type: 'setting-overruled', setting: 'duration', own: 5_000, stored: 15_000 },
        { type: 'setting-overruled', setting: 'prefer-id', own: 9, stored: 4 },
        { type: 'cluster-created', size: 20, store: 's3://b/p' },
        { type: 'damaged', key: '3.json', problem: 'not JSON' },
        { type: 'waiting', sleepMs: 12.4 },
        { type: 'waiting', sleepMs: 1_200 },
        { type: 'store-failed', error, sleepMs: 100 },
        {
          type: 'acquired',
          id: 3,
          version: 8,
          from: 'released',
          tookMs: 20.4,
          requests: 5,
          deadline: 1,
          store: 's3://b/p',
        },
        { type: 'bootstrapped' },
        { type: 'renewed', deadline: 1, tookMs: 3 },
        { type: 'renewal-failed', error, attempt: 1 },
        { type: 'retiring', size: 2 },
        { type: 'lost', error: new LeaseLostError(3, 8, 'taken', 1, 'task b holds it at version 9') },
        { type: 'released' },
        { type: 'release-failed', error },
      ),
    ).toEqual([
      'warn duration 5s is overruled: the cluster uses 15s',
      'warn prefer-id 9 has no effect: the cluster has 4 node ids',
      'warn created a new cluster of 20 node ids in s3://b/p',
      'error 3.json cannot be used: not JSON',
      'info no node id is free: waiting',
      'debug no node id is free: waiting',
      'warn the store failed, trying again: no route: ENETUNREACH',
      'info acquired node id 3 at version 8 in s3://b/p',
      'info all lease objects of the cluster exist',
      'debug lease renewed',
      'warn renewal failed: no route: ENETUNREACH',
      'warn the node id is being retired: the cluster has 2 node ids now',
      'error lease of node id 3 (version 8) is lost: task b holds it at version 9',
      'info lease released',
      'warn the release failed, the lease is left to expire: no route: ENETUNREACH',
    ]);
  });
});

describe('the log of a lock', () => {
  it('names the lock and its token, where that of a lease names a node id', () => {
    const error = new LeaseLostError(0, 8, 'taken', 1, 'task b holds it at version 9');
    const events: LeaseEvent[] = [
      { type: 'cluster-created', size: 1, store: 's3://b/p/locks/nightly' },
      { type: 'waiting', sleepMs: 12.4 },
      {
        type: 'acquired',
        id: 0,
        version: 8,
        from: 'released',
        tookMs: 20.4,
        requests: 5,
        deadline: 1,
        store: 's3://b/p',
      },
      { type: 'lost', error },
      { type: 'released' },
    ];
    const ofLock = (log: Parameters<typeof leaseLog>[0]) => lockLog(log, 'nightly');
    expect(codesBy(ofLock, events)).toEqual(['LOCK_LOST']);
    const lines = linesBy(ofLock, events);
    expect(lines).toEqual([
      'info lock nightly is new: no task has used it in s3://b/p/locks/nightly',
      'info lock nightly is held by another task: waiting',
      'info acquired lock nightly with token 8 in s3://b/p',
      'error lock nightly (token 8) is lost: task b holds it at version 9',
      'info lease released',
    ]);
  });
});
