import { timeoutSignal } from '../base/abort.js';
import type { Clock } from '../clock.js';
import type { HealthProbe } from './health-probe.js';

/** What a check has found out, when it changes its mind. */
export type HealthVerdict =
  | { readonly healthy: true }
  /** `failures` in a row; `problem` is what was wrong the last time. */
  | { readonly healthy: false; readonly failures: number; readonly problem: unknown };

export interface HealthCheckOptions {
  readonly probe: HealthProbe;
  readonly clock: Clock;
  /** From the beginning of one probe to that of the next, and how long one may take, in milliseconds; none takes longer than 5 s. */
  readonly intervalMs: number;
  /** How many bad answers in a row it takes to call it unhealthy, and how many good ones to call it healthy again. */
  readonly threshold: number;
  /** Called with every change of the verdict. Nothing is known, and nothing told, until the first good answer. */
  readonly onChange: (verdict: HealthVerdict) => void;
  /** Called once when the first probe of all fails, so that it can be told what is waited for. */
  readonly onWaiting: (problem: unknown) => void;
}

/** The longest that a probe may take, in milliseconds. */
const PROBE_LIMIT_MS = 5_000;

/** A probe has not answered in time. */
class ProbeTimeout extends Error {}

/**
 * Asks again and again whether something works, one probe at a time. The first good answer is enough at the start; afterwards `threshold`
 * bad ones in a row are needed for a change, and as many good ones for the next.
 */
export class HealthCheck {
  readonly #ending = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(private readonly options: HealthCheckOptions) {}

  /** Begins to ask. Has no effect the second time, and after {@link stop}. */
  start(): void {
    this.#loop ??= this.#keep();
  }

  /** Asks no more: nothing is told from this moment on. Resolves when a probe that was under way has been given up. Idempotent. */
  async stop(): Promise<void> {
    this.#ending.abort(new Error('the check has ended'));
    await this.#loop;
  }

  async #keep(): Promise<void> {
    const { clock, intervalMs, threshold, onChange, onWaiting } = this.options;
    const { signal } = this.#ending;
    let healthy: boolean | undefined;
    let streak = 0;
    while (!signal.aborted) {
      const begun = clock.monotonic();
      const problem = await this.#ask();
      if (signal.aborted) return;
      const good = problem === undefined;
      streak = good === healthy ? 0 : streak + 1;
      if (healthy === undefined) {
        if (good) onChange({ healthy: true });
        else if (streak === 1) onWaiting(problem.error);
        if (good) healthy = true;
        if (good) streak = 0;
      } else if (streak >= threshold) {
        onChange(good ? { healthy: true } : { healthy: false, failures: streak, problem: problem.error });
        healthy = good;
        streak = 0;
      }
      await clock.sleep(Math.max(0, begun + intervalMs - clock.monotonic()), signal).catch(() => undefined);
    }
  }

  /** What was wrong; undefined when nothing was. */
  async #ask(): Promise<{ readonly error: unknown } | undefined> {
    const { probe, clock, intervalMs } = this.options;
    const limitMs = Math.min(intervalMs, PROBE_LIMIT_MS);
    const limit = timeoutSignal(clock, limitMs, () => new ProbeTimeout(`no answer within ${limitMs} ms`), this.#ending.signal);
    try {
      await probe(limit.signal);
      return undefined;
    } catch (error) {
      return { error };
    } finally {
      limit.release();
    }
  }
}
