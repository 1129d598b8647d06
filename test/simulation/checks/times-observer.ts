import { type ClusterTimes, decodeCluster } from '../../../src/core/lease/model/cluster-config.js';
import type { TuneOutcome } from '../../../src/core/lease/operate/tune.js';
import type { WantedTimes } from '../world/tune-plan.js';

/** Watches the times in `cluster.json`, and what operators who change them hear. */
export class TimesObserver {
  /** All that there were. */
  readonly #seen: ClusterTimes[] = [];
  #last: ClusterTimes | undefined;
  #longestMs = 0;

  constructor(private readonly fail: (text: string) => void) {}

  /** The settings have been written. */
  onSettings(body: string): void {
    const { durationMs, graceMs, longestMs, tuned = [] } = decodeCluster(body);
    const last = this.#last;
    const isNew = last?.durationMs !== durationMs || last.graceMs !== graceMs;
    if (isNew && last && tuned[0]?.to.durationMs !== durationMs)
      this.fail(`the duration is ${durationMs} ms now, and the last change that is noted is another one`);
    this.#last = { durationMs, graceMs };
    if (isNew) this.#seen.push(this.#last);
    this.#longestMs = Math.max(this.#longestMs, durationMs);
    if (longestMs < this.#longestMs)
      this.fail(`the longest duration is noted as ${longestMs} ms, and was ${this.#longestMs} ms (rule 15)`);
  }

  /** The store has gone back: what it has now is no change. */
  onRestored(): void {
    this.#last = undefined;
    this.#longestMs = 0;
  }

  /** An operator has heard what has become of a change. */
  onOutcome(name: string, { durationMs, graceMs }: WantedTimes, outcome: TuneOutcome): void {
    if (outcome.kind === 'no-cluster') return;
    const { to } = outcome;
    const were = this.#seen.some(
      (times) => times.durationMs === to.durationMs && times.graceMs === to.graceMs,
    );
    if (!were) this.fail(`${name} hears of times that there never were: ${JSON.stringify(to)}`);
    const isAsWanted = to.durationMs === durationMs && (graceMs ?? to.graceMs) === to.graceMs;
    if (isAsWanted !== (outcome.kind === 'tuned'))
      this.fail(`${name} wants ${durationMs} ms, and hears "${outcome.kind}" of ${JSON.stringify(to)}`);
  }
}
