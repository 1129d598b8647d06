import type { Run } from '../machine-host.js';

/** What the tasks of a world do, and what is checked of it. */
export interface Scenario {
  /** Folders that the servers may remove while they are empty. */
  readonly containers: readonly string[];
  /** One task's whole life, until its client is closed or the world stops. */
  live(run: Run): Promise<void>;
  /** A step of the task is over. */
  afterStep?(run: Run): void;
  /**
   * Whether one of these tasks has not had its turn since the faults have ended, in words; undefined where
   * all have.
   */
  waiting(runs: readonly Run[]): string | undefined;
  /** All tasks have stopped. */
  atEnd(): void;
}
