import { CLUSTERS, type ClusterName } from './clusters.js';
import { CONTESTANTS, type ContestantName } from './contestants.js';
import { dollars, NO_REQUESTS, plus, type RequestCount, times, total } from './request-count.js';
import { memoryStorm, type Storm } from './storm.js';

/** What is measured: who starts how many tasks on what. */
export interface Place {
  readonly contestant: ContestantName;
  readonly cluster: ClusterName;
  readonly starters: number;
}

/**
 * Storms at one place, with different seeds or one after the other; means over all of them unless it says
 * otherwise.
 */
export interface Cell extends Place {
  readonly storms: number;
  /** Of one task, until it had its id. */
  readonly requests: RequestCount;
  /** The most that any task needed. */
  readonly mostRequests: number;
  /** Of one task, in the seconds after that. */
  readonly afterwards: RequestCount;
  /** Milliseconds until the first task, and the last one, had an id. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** Of all tasks of a storm, until they had their ids. */
  readonly dollars: number;
}

export interface SeedRange {
  readonly from: number;
  readonly seeds: number;
}

/** Measures storms on the memory store. */
export async function memoryCell(place: Place, { from, seeds }: SeedRange): Promise<Cell> {
  const storms: Storm[] = [];
  for (let seed = from; seed < from + seeds; seed += 1) {
    const { starters } = place;
    const [contestant, shape] = [CONTESTANTS[place.contestant], CLUSTERS[place.cluster]];
    storms.push(await memoryStorm({ contestant, shape, starters, seed }));
  }
  return cellOf(place, storms);
}

/** @param storms at least one, of `place.starters` tasks each */
export function cellOf(place: Place, storms: readonly Storm[]): Cell {
  const tasks = storms.flat();
  const sum = (counts: readonly RequestCount[]) => counts.reduce(plus, NO_REQUESTS);
  const requests = sum(tasks.map((task) => task.requests));
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  const tookMs = storms.map((storm) => storm.map((task) => task.tookMs));
  return {
    ...place,
    storms: storms.length,
    requests: times(requests, 1 / tasks.length),
    mostRequests: Math.max(...tasks.map((task) => total(task.requests))),
    afterwards: times(sum(tasks.map((task) => task.afterwards)), 1 / tasks.length),
    firstMs: mean(tookMs.map((all) => Math.min(...all))),
    lastMs: mean(tookMs.map((all) => Math.max(...all))),
    dollars: dollars(requests) / storms.length,
  };
}
