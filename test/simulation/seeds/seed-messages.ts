import type { SimulationSize } from '../world/conditions.js';
import type { Tally } from './tally.js';

/** What a thread that simulates gets at its start. Plain data, as it goes from one thread to another. */
export interface ThreadSettings {
  readonly size: Required<SimulationSize>;
  /** Faults of these kinds alone; all when undefined. */
  readonly only: readonly string[] | undefined;
  /** A name out of `ENGINE_NAMES`. */
  readonly engine: string;
  /** Whether to look for a path of the model. */
  readonly traces: boolean;
  /** Whether to keep the histories of all seeds. */
  readonly recording: boolean;
  /** The first seed of the run, in whichever thread. */
  readonly from: number;
  /** The memory of the run's `RunControl`. */
  readonly control: SharedArrayBuffer;
  /** The memory of this thread's `Pulse`. */
  readonly pulse: SharedArrayBuffer;
}

/** What a thread is to do; it answers with one {@link Answer}. */
export type Order =
  /** Simulate these seeds one after the other, until the first that fails. */
  | { readonly kind: 'run'; readonly first: number; readonly count: number }
  /** Find out what is needed for the failure of a seed. */
  | { readonly kind: 'shrink'; readonly seed: number; readonly maxRuns: number };

/** Seeds that were run. */
export interface ChunkResult {
  readonly kind: 'ran';
  readonly tally: Tally;
  /** The first seed that failed, if one did. */
  readonly violated: ViolatedSeed | undefined;
  /** Empty unless they are kept. */
  readonly histories: readonly SeedHistory[];
}

/** A promise that was broken. */
export interface FoundViolation {
  readonly invariant: string;
  /** True time in milliseconds. */
  readonly at: number;
  readonly text: string;
}

export interface ViolatedSeed {
  readonly seed: number;
  readonly violation: FoundViolation;
}

export interface SeedHistory {
  readonly seed: number;
  readonly lines: readonly string[];
}

/** A failure with as little as possible of what does not belong to it. */
export interface ShrunkViolation {
  readonly kind: 'shrunk';
  /** That of the shrunk history: the same invariant, though perhaps of other tasks. */
  readonly violation: FoundViolation;
  /** What had to stay: hosts, and faults. */
  readonly hosts: readonly string[];
  readonly faults: readonly string[];
  /** How many there were of each. */
  readonly of: { readonly hosts: number; readonly faults: number };
  /** How many simulations it took. */
  readonly runs: number;
  /** False when the search was ended before it was certain that no single one of them can go. */
  readonly minimal: boolean;
  readonly history: readonly string[];
}

/** What a thread says: that it is there, and what became of each order. */
export type Answer = { readonly kind: 'ready' } | ChunkResult | ShrunkViolation;
