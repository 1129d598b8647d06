import { type AcquireLeaseOptions, acquireLease } from '../../src/core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../src/core/lease/model/lease.js';

/** What gives a task its lease: the shipped engine, or another one to be compared with it. */
export interface Engine {
  /**
   * Has the contract of `acquireLease`, as far as the simulation uses it: it reports `acquired`, `renewed`
   * and `lost`.
   */
  acquire(options: AcquireLeaseOptions): Promise<Lease>;
  /**
   * Whether the store reports no time of writing, so that tasks and operators observe ages. Its etags never
   * repeat.
   * @default false
   */
  readonly observesAges?: boolean;
  /** Whether tasks take part in the ownership of shards. @default false */
  readonly ownsShards?: boolean;
  /** Whether the store may go back, and tells its epoch where it does. @default false */
  readonly knowsEpochs?: boolean;
}

export const shippedEngine: Engine = { acquire: acquireLease, knowsEpochs: true };
export const observedEngine: Engine = { ...shippedEngine, observesAges: true };

/** Each host has a sticky key, which two or three of them share. */
export const stickyEngine: Engine = {
  ...shippedEngine,
  acquire: (options) => {
    const host = Number(/^task-(\d+)/.exec(options.taskId)?.[1]);
    return acquireLease({
      ...options,
      sticky: `volume-${host % 3}`,
      stickyWaitMs: host % 2 === 0 ? 10_000 : 0,
    });
  },
};
export const shardsEngine: Engine = { ...shippedEngine, ownsShards: true };
