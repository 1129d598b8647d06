import type { Clock } from '../../core/base/clock.js';
import { explain } from '../../core/base/errors.js';
import type { Discovery } from '../../zookeeper/discovery/discovery.js';
import type { Logger } from '../kit/log/logger.js';
import type { CheckSettings } from '../settings/zookeeper-settings.js';
import { checkHealth, describeTarget, type HealthVerdict, healthProbe } from '../supervisor/health-check.js';

interface RoutingEntriesOptions {
  readonly discovery: Pick<Discovery, 'state' | 'announceService' | 'withdrawService'>;
  /** How to check the command. Without it the entries are announced already. */
  readonly check: CheckSettings | undefined;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** How long a signal to the command waits for the end of its entries, in milliseconds. */
const WITHDRAW_TIMEOUT_MS = 1_000;

/**
 * The service entries of a command in ZooKeeper, which bring it work. They exist while the command passes its
 * health check, and are gone before it gets a signal to end. The node id's own znode is no part of them.
 */
export class RoutingEntries {
  #checking = new AbortController();
  #announced: boolean;
  #withdrawing: Promise<void> | undefined;

  constructor(private readonly options: RoutingEntriesOptions) {
    this.#announced = options.check === undefined;
  }

  /**
   * The command has started: begins to check it. Has no effect after {@link withdraw}.
   *
   * @param onHealthy is called when it has passed its check, and at once where it has none
   */
  begin(onHealthy: () => void = () => undefined): void {
    const { check, clock, log, discovery } = this.options;
    if (this.#withdrawing) return;
    if (check === undefined) {
      // What was suspended has to come back.
      if (this.#checking.signal.aborted) discovery.announceService();
      onHealthy();
      return;
    }
    this.#checking = new AbortController();
    const target = describeTarget(check.target);
    void checkHealth(
      {
        ...check,
        probe: healthProbe(check.target, clock),
        clock,
        onChange: (verdict) => {
          this.#follow(verdict, target);
          if (verdict.healthy) onHealthy();
        },
        onWaiting: (problem) => log.info(`not announced until ${target} answers: ${explain(problem)}`),
      },
      this.#checking.signal,
    );
  }

  /**
   * Removes the entries until the command has been started again. Resolves when they are gone, or after a
   * second; never rejects.
   */
  async suspend(): Promise<void> {
    this.#checking.abort();
    await this.options.discovery.withdrawService(WITHDRAW_TIMEOUT_MS);
  }

  /**
   * Removes the entries for good. Resolves when they are gone, or after a second; never rejects. Idempotent.
   */
  withdraw(): Promise<void> {
    this.#withdrawing ??= this.#withdraw();
    return this.#withdrawing;
  }

  async #withdraw() {
    this.#checking.abort();
    const { discovery, log } = this.options;
    const gone = await discovery.withdrawService(WITHDRAW_TIMEOUT_MS);
    // Without the lease, the session has ended: there is nothing to log.
    if (!this.#announced || discovery.state.status === 'closed') return;
    if (gone) log.info('discovery: the service is taken out');
    else log.warn('discovery: the service is not known to be out yet: going on without waiting for it');
  }

  #follow(verdict: HealthVerdict, target: string) {
    const { discovery, log } = this.options;
    if (verdict.healthy) {
      log.info({ healthy: true }, `${target} answers: the service is announced`);
      this.#announced = true;
      discovery.announceService();
      return;
    }
    const { failures, problem } = verdict;
    log.warn(
      { healthy: false },
      `${target} failed ${failures} times in a row: the service is taken out: ${explain(problem)}`,
    );
    void discovery.withdrawService(0);
  }
}
