import type { Clock } from '../clock.js';
import type { CheckSettings } from '../config/health-check.js';
import type { Discovery } from '../discovery/discovery.js';
import { explain } from '../errors.js';
import { HealthCheck, type HealthVerdict } from './health-check.js';
import { describeTarget, healthProbe } from './health-probe.js';
import type { Logger } from './logger.js';

export interface RoutingEntriesOptions {
  readonly discovery: Pick<Discovery, 'state' | 'announceService' | 'withdrawService'>;
  /** When the command counts as able to work. Without it the entries are there already. */
  readonly check: CheckSettings | undefined;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** How long a command may learn nothing of a signal because its entries are being taken out, in milliseconds. */
const WITHDRAW_LIMIT_MS = 1_000;

/**
 * What sends work to a command, in ZooKeeper: it is there while the command answers its health check, and gone before the command is told
 * to stop. The node id's own znode is no part of it.
 */
export class RoutingEntries {
  readonly #check: HealthCheck | undefined;
  #announced: boolean;
  #withdrawing: Promise<void> | undefined;

  constructor(private readonly options: RoutingEntriesOptions) {
    const { check, clock } = options;
    this.#announced = check === undefined;
    if (check === undefined) return;
    const { target, intervalMs, threshold } = check;
    this.#check = new HealthCheck({
      ...{ probe: healthProbe(target, { clock }), clock, intervalMs, threshold },
      onChange: (verdict) => this.#follow(verdict, describeTarget(target)),
      onWaiting: (problem) => options.log.info(`not announced until ${describeTarget(target)} answers: ${explain(problem)}`),
    });
  }

  /** The command is there: from now on it is asked how it does. Has no effect once everything has been taken out. */
  begin(): void {
    this.#check?.start();
  }

  /** Takes everything out for good. Resolves when it is gone, or after a second; never rejects. Idempotent. */
  withdraw(): Promise<void> {
    this.#withdrawing ??= this.#withdraw();
    return this.#withdrawing;
  }

  async #withdraw(): Promise<void> {
    void this.#check?.stop();
    const { discovery, log } = this.options;
    const gone = await discovery.withdrawService(WITHDRAW_LIMIT_MS);
    // With the lease, the session has been ended: there is nothing to tell.
    if (!this.#announced || discovery.state.status === 'closed') return;
    if (gone) log.info('discovery: the service is taken out');
    else log.warn('discovery: the service is not known to be out yet: going on without waiting for it');
  }

  #follow(verdict: HealthVerdict, target: string): void {
    const { discovery, log } = this.options;
    if (verdict.healthy) {
      log.info({ healthy: true }, `${target} answers: the service is announced`);
      this.#announced = true;
      discovery.announceService();
      return;
    }
    const { failures, problem } = verdict;
    log.warn({ healthy: false }, `${target} failed ${failures} times in a row: the service is taken out: ${explain(problem)}`);
    void discovery.withdrawService(0);
  }
}
