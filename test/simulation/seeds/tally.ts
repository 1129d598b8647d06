import { faultKindsOf } from '../engines.js';

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
  /** What the model has seen of the traces, by what it is called in the report. */
  readonly traced: Record<string, number>;
  /** Every kind, also the ones that never happened, in the order of {@link faultKindsOf}. */
  readonly faults: Readonly<Record<string, FaultTally>>;
}

/** What one seed counted. */
export interface SeedCounts extends Pick<Tally, 'tenures' | 'takeOvers' | 'requests' | 'ids'> {
  readonly traced?: Readonly<Record<string, number>>;
  readonly faults: ReadonlyMap<string, number>;
}

export function emptyTally(engine: string): Tally {
  const faults = Object.fromEntries(faultKindsOf(engine).map((kind) => [kind, { times: 0, seeds: 0 }]));
  return { seeds: 0, tenures: 0, takeOvers: 0, requests: 0, ids: 0, violations: 0, traced: {}, faults };
}

/** Adds one seed. */
export function addSeed(tally: Tally, counts: SeedCounts, violated: boolean): void {
  tally.seeds += 1;
  tally.tenures += counts.tenures;
  tally.takeOvers += counts.takeOvers;
  tally.requests += counts.requests;
  tally.ids += counts.ids;
  if (violated) tally.violations += 1;
  addTraced(tally, counts.traced ?? {});
  for (const [kind, times] of counts.faults) {
    addFaults(tally, kind, { times, seeds: 1 });
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
  addTraced(tally, other.traced);
  for (const [kind, faults] of Object.entries(other.faults)) addFaults(tally, kind, faults);
}

function addTraced(tally: Tally, traced: Readonly<Record<string, number>>): void {
  for (const [what, count] of Object.entries(traced)) tally.traced[what] = (tally.traced[what] ?? 0) + count;
}

function addFaults(tally: Tally, kind: string, { times, seeds }: FaultTally): void {
  const all = tally.faults[kind];
  if (all === undefined) throw new Error(`there is no fault ${kind}`);
  all.times += times;
  all.seeds += seeds;
}
