import type { Interval } from '../lease-store.js';

/** What is checked, in the order of the report. */
export type ProbeCheckId =
  | 'create'
  | 'create-once'
  | 'replace-bogus'
  | 'replace'
  | 'replace-stale'
  | 'replace-absent'
  | 'races'
  | 'read-back'
  | 'listing'
  | 'age'
  | 'clean-up';

/**
 * `fault`: leases are not safe, or cannot work, in this store. `warning`: they are and can, but something is
 * amiss.
 */
export type ProbeStatus = 'ok' | 'warning' | 'fault';

/** One promise of a store, and whether it was kept. */
export interface ProbeCheck {
  readonly id: ProbeCheckId;
  /** The promise, for people. */
  readonly title: string;
  readonly status: ProbeStatus;
  /** What was seen; names the fault where there is one. Empty when there is nothing to say. */
  readonly detail: string;
}

/** What a probe found out about a store. */
export interface ProbeReport {
  /** False: do not keep leases in this store. */
  readonly ok: boolean;
  readonly checks: readonly ProbeCheck[];
  /** The median time of a request that ran alone, in milliseconds. */
  readonly latencyMs: number;
  /** Requests made, the removal of the scratch objects not counted. */
  readonly requests: number;
  /**
   * The store's clock minus this host's, in milliseconds; unbounded when the store reports no time. No safety
   * rule rests on it.
   */
  readonly clockOffsetMs: Interval;
}

const TITLES: Readonly<Record<ProbeCheckId, string>> = {
  create: 'creates an object that is absent',
  'create-once': 'refuses to create an object that is present',
  'replace-bogus': 'refuses an etag that never was',
  replace: 'replaces an object whose etag is the one given',
  'replace-stale': 'refuses a stale etag',
  'replace-absent': 'refuses to replace an object that is absent',
  races: 'lets exactly one of several concurrent writers win',
  'read-back': 'reads the last write at once',
  listing: 'lists an object that has just been written',
  age: 'shows how old an object is',
  'clean-up': 'removes the scratch objects',
};

/** The outcome of a check, under its title. */
export function checked(id: ProbeCheckId, status: ProbeStatus, detail = ''): ProbeCheck {
  return { id, title: TITLES[id], status, detail };
}
