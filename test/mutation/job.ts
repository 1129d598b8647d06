import { readFileSync } from 'node:fs';

/** What `mutate.js` has a run of Vitest do. */
export interface MutationJob {
  /** The files of unit tests that run. */
  readonly tests: readonly string[];
  /** Engines of the simulation whose first seeds run. */
  readonly engines: readonly string[];
  /** The code with all mutants in it, by file. */
  readonly code: Readonly<Record<string, string>>;
  /** The file for what each test covers. */
  readonly coverage: string;
  /** How long each test takes, in milliseconds, and each file. */
  readonly durations?: Readonly<Record<string, number>>;
  /** Tests that take longer are left out, in milliseconds. @default none */
  readonly longestMs?: number;
  /** The mutants that each test covers, with how often, and are to be killed. */
  readonly todo?: Readonly<Record<string, readonly (readonly [id: string, hits: number])[]>>;
  /** The file for attempts and kills. */
  readonly log?: string;
}

export const job: MutationJob = JSON.parse(readFileSync(process.env.NODELEASE_MUTATION ?? '', 'utf8'));
