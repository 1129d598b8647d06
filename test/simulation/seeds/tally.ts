import { FAULT_KINDS, type FaultKind } from '../world/conditions.js';
import type { Counts } from '../world/world.js';

/** How common a fault was. */
export interface FaultTally {
  /** How often it happened; once in a seed for what is wrong from the beginning on. */
  times: number;
  /** In how many seeds there was one. */
  seeds: number;
}

/** What many seeds counted together. */
export interface Tally {
  seeds: number;
  tenures: number;
  takeOvers: number;
  requests: number;
  /** Unique ids that were made. */
  ids: number;
  violations: number;
  /** Every kind, also the ones that never happened, in the order of {@link FAULT_KINDS}. */
  readonly faults: Readonly<Record<FaultKind, FaultTally>>;
}

export function emptyTally(): Tally {
  const faults = Object.fromEntries(FAULT_KINDS.map((kind) => [kind, { times: 0, seeds: 0 }]));
  return { seeds: 0, tenures: 0, takeOvers: 0, requests: 0, ids: 0, violations: 0, faults: faults as Record<FaultKind, FaultTally> };
}

/** Adds one seed. */
export function addSeed(tally: Tally, counts: Counts, violated: boolean): void {
  tally.seeds += 1;
  tally.tenures += counts.tenures;
  tally.takeOvers += counts.takeOvers;
  tally.requests += counts.requests;
  tally.ids += counts.ids;
  if (violated) tally.violations += 1;
  for (const [kind, times] of counts.faults) {
    tally.faults[kind].times += times;
    tally.faults[kind].seeds += 1;
  }
}

/** Adds what another thread counted. */
export function addTally(tally: Tally, other: Tally): void {
  tally.seeds += other.seeds;
  tally.tenures += other.tenures;
  tally.takeOvers += other.takeOvers;
  tally.requests += other.requests;
  tally.ids += other.ids;
  tally.violations += other.violations;
  for (const kind of FAULT_KINDS) {
    tally.faults[kind].times += other.faults[kind].times;
    tally.faults[kind].seeds += other.faults[kind].seeds;
  }
}
