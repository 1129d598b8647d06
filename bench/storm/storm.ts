import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { Dice } from '../../test/simulation/world/dice.js';
import { type ClusterShape, setUp } from './clusters.js';
import type { Contestant } from './contestants.js';
import { type RequestCount, since } from './request-count.js';
import { ShapedStore } from './shaped-store.js';
import { VirtualTime } from './virtual-time.js';

/** How long a lease lasts in virtual time, in milliseconds: the default of a new cluster. */
export const DURATION_MS = 15_000;

/**
 * What a task does in addition to its lease when it has just got it (bootstrap) is over by then, and no
 * renewal is due. Milliseconds.
 */
const AFTERWARDS_MS = 4_500;

/** The plain scan's longest storms take minutes. Milliseconds of virtual time. */
const LONGEST_MS = 3_600_000;

/** One task of a storm. */
export interface Started {
  readonly id: number;
  /** Until it had its id. */
  readonly requests: RequestCount;
  /** Milliseconds from the begin of the storm to its id. */
  readonly tookMs: number;
  /** In the seconds after that. */
  readonly afterwards: RequestCount;
}

/** What a storm came to, one entry a task. */
export type Storm = readonly Started[];

export interface StormOptions {
  readonly contestant: Contestant;
  readonly shape: ClusterShape;
  readonly starters: number;
  /** Decides how long each request takes, what the tasks draw, and which ids others hold. */
  readonly seed: number;
}

/**
 * Lets so many tasks start in one instant, in virtual time, on a store in memory that is as far away as S3.
 *
 * @throws Error when a task got an id that another one holds, or nothing in an hour
 */
export async function memoryStorm({ contestant, shape, starters, seed }: StormOptions): Promise<Storm> {
  const dice = new Dice(seed);
  const time = new VirtualTime();
  const bucket = new MemoryBucket(time, 1_000);
  const held = setUp({
    shape,
    form: contestant.form,
    starters,
    durationMs: DURATION_MS,
    bucket,
    time,
    dice: dice.fork(0),
  });
  const shared = { clock: time, nodes: shape.size(starters), durationMs: DURATION_MS };
  const start = async (task: number): Promise<Started> => {
    const store = new ShapedStore({
      bucket,
      clock: time,
      random: dice.fork(1, task),
      remote: contestant.remote,
    });
    const { id } = await contestant.acquire({
      ...shared,
      store,
      random: dice.fork(2, task),
      taskId: `task-${task}`,
    });
    const requests = store.requests;
    const tookMs = time.monotonic();
    await time.sleep(AFTERWARDS_MS);
    return { id, requests, tookMs, afterwards: since(requests, store.requests) };
  };
  const storm = await time.run(
    Promise.all(Array.from({ length: starters }, (_, task) => start(task))),
    LONGEST_MS,
  );
  checkDistinct([...storm.map(({ id }) => id), ...held]);
  return storm;
}

/** @throws Error when an id is there twice */
export function checkDistinct(ids: readonly number[]): void {
  if (new Set(ids).size !== ids.length)
    throw new Error(`${ids.length - new Set(ids).size} node ids are held by two tasks`);
}
