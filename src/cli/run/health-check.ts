import type { Clock } from '../../base/clock.js';
import { callWithTimeout } from '../terminal/with-timeout.js';
import type { HealthProbe } from './health-probe.js';

/** The health of a command, told when it changes. */
export type HealthVerdict =
  | { readonly healthy: true }
  /** `failures` in a row; `problem` is the last one. */
  | { readonly healthy: false; readonly failures: number; readonly problem: unknown };

export interface HealthCheckOptions {
  readonly probe: HealthProbe;
  readonly clock: Clock;
  /** From the beginning of one probe to that of the next, and the time-out of a probe, in milliseconds. A probe takes 5 s at the most. */
  readonly intervalMs: number;
  /** How many failures in a row make it unhealthy, and how many good answers healthy again. */
  readonly threshold: number;
  /** Called with every change, first with the first good answer. */
  readonly onChange: (verdict: HealthVerdict) => void;
  /** Called once, when the first probe of all fails. */
  readonly onWaiting: (problem: unknown) => void;
}

/** The maximum time of a probe, in milliseconds. */
const PROBE_TIMEOUT_MS = 5_000;

/**
 * Probes a command again and again, one probe at a time. The first good answer makes it healthy. Afterwards each change needs `threshold` probes in
 * a row.
 */
export class HealthCheck {
  readonly #ending = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(private readonly options: HealthCheckOptions) {}

  /** Begins to probe. Has no effect the second time, and after {@link stop}. */
  start(): void {
    this.#loop ??= this.#keep();
  }

  /** Ends the probes: no listener is called from this moment on. Resolves when a probe under way has been given up. Idempotent. */
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
      const problem = await this.#probe();
      if (signal.aborted) return;
      const good = problem === undefined;
      streak = good === healthy ? 0 : streak + 1;
      if (healthy === undefined && !good && streak === 1) onWaiting(problem.error);
      const isChange = healthy === undefined ? good : streak >= threshold;
      if (isChange) {
        onChange(good ? { healthy: true } : { healthy: false, failures: streak, problem: problem.error });
        healthy = good;
        streak = 0;
      }
      await clock.sleep(Math.max(0, begun + intervalMs - clock.monotonic()), signal).catch(() => undefined);
    }
  }

  /** Undefined after a good answer. */
  async #probe(): Promise<{ readonly error: unknown } | undefined> {
    const { probe, clock, intervalMs } = this.options;
    try {
      await callWithTimeout({ clock, timeoutMs: Math.min(intervalMs, PROBE_TIMEOUT_MS), signal: this.#ending.signal }, probe);
      return undefined;
    } catch (error) {
      return { error };
    }
  }
}
