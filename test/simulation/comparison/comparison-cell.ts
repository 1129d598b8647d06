import type { InvariantName } from '../checks/invariants.js';
import type { Engine } from '../engine.js';
import { simulate } from '../simulation.js';
import { drawConditions } from '../world/conditions.js';
import { type ComparedFaults, isDrawn } from './compared-faults.js';

/** A promise that was broken, and how often. */
export interface BrokenPromise {
  readonly invariant: InvariantName;
  /** In how many seeds it was the first to break. */
  seeds: number;
  /** The first of these seeds, and what happened there. */
  readonly first: number;
  readonly text: string;
}

/** What became of one engine under one kind of fault. */
export interface Cell {
  /** How many seeds were simulated. */
  readonly seeds: number;
  /** The most important promise first. Empty when all were kept. */
  readonly broken: readonly BrokenPromise[];
}

/** A broken safety promise comes before one that only costs time. */
const BY_IMPORTANCE: readonly InvariantName[] = [
  ...([
    'exclusion',
    'fencing',
    'ids',
    'objects',
    'deadline',
    'retirement',
    'survivors',
    'errors',
    'own-writes',
    'liveness',
  ] as const),
];

/** Every fault is drawn in one of seven seeds at the least; beyond that many there is something wrong. */
const MOST_PASSED_OVER = 50;

/**
 * Simulates seeds of one kind, each until its end or its first violation.
 *
 * @param from the first seed to be looked at
 * @param seeds how many seeds with that fault to simulate
 * @throws {Error} when the fault is hardly ever drawn
 */
export async function compareUnder(
  faults: ComparedFaults,
  engine: Engine,
  { from, seeds }: { from: number; seeds: number },
): Promise<Cell> {
  const only = new Set(faults.only);
  const broken = new Map<InvariantName, BrokenPromise>();
  let simulated = 0;
  for (let seed = from; simulated < seeds; seed += 1) {
    if (seed - from > MOST_PASSED_OVER * seeds + MOST_PASSED_OVER)
      throw new Error(`${faults.name}: found in ${simulated} of ${seed - from} seeds`);
    if (faults.needed !== undefined && !isDrawn(faults.needed, drawConditions(seed, {}, only))) continue;
    simulated += 1;
    const { violation } = await simulate(seed, { only, engine });
    if (violation === undefined) continue;
    const { invariant, text } = violation;
    const known = broken.get(invariant);
    if (known === undefined) broken.set(invariant, { invariant, seeds: 1, first: seed, text });
    else known.seeds += 1;
  }
  const rank = ({ invariant }: BrokenPromise) => BY_IMPORTANCE.indexOf(invariant);
  return { seeds: simulated, broken: [...broken.values()].sort((a, b) => rank(a) - rank(b)) };
}
