import type { Clock } from '../clock.js';
import type { NodeHealth } from '../monitor/node-health.js';

/** What `/livez`, `/readyz` and `/lease` send of a process' own node id, and `/api/events` as its `instance`. */
export interface NodeHealthJson extends Omit<NodeHealth, 'deadline'> {
  /** For how much longer the lease is valid unless it is renewed, in whole milliseconds; null unless it is, and for a fixed node id. */
  readonly validForMs: number | null;
}

/** The same facts for whoever has another clock: a deadline on the monotonic one of this process would tell them nothing. */
export function nodeHealthJson({ deadline, ...facts }: NodeHealth, clock: Pick<Clock, 'monotonic'>): NodeHealthJson {
  return { ...facts, validForMs: deadline === null ? null : Math.max(0, Math.floor(deadline - clock.monotonic())) };
}
