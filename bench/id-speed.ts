import type { Contestant } from './id-contestants.js';
import { median } from './report.js';

/** How long one id took, in nanoseconds. */
export interface IdSpeed {
  readonly contestant: Contestant;
  /** That of the best round: what the machine can do when nothing disturbs it. */
  readonly bestNs: number;
  readonly medianNs: number;
}

/**
 * Lets everybody make ids, in turns, so that whatever else the machine does falls on all of them.
 *
 * @param rounds how many rounds count; some more come before them, in which the code is compiled
 */
export async function idSpeeds(
  contestants: readonly Contestant[],
  rounds: { counted: number; warmUp: number },
): Promise<IdSpeed[]> {
  const times = contestants.map((): number[] => []);
  for (let round = -rounds.warmUp; round < rounds.counted; round += 1) {
    for (const [index, contestant] of contestants.entries()) {
      const ns = nsPerId(contestant);
      if (round >= 0) times[index]?.push(ns);
      // The loop turns between two of them: a generator's timers count only for that generator.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return contestants.map((contestant, index) => {
    const all = times[index] ?? [];
    return { contestant, bestNs: Math.min(...all), medianNs: median(all) };
  });
}

function nsPerId(contestant: Contestant): number {
  let ns = 0n;
  for (let made = 0; made < contestant.perRound; made += contestant.burst) {
    const make = contestant.fresh();
    const begun = process.hrtime.bigint();
    make();
    ns += process.hrtime.bigint() - begun;
  }
  return Number(ns) / contestant.perRound;
}
