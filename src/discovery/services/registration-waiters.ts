import { withTimeout } from '../../base/abort.js';
import type { Clock } from '../../clock.js';
import { ZooKeeperError, type ZooKeeperFault } from '../../zookeeper/zookeeper-error.js';
import type { ServiceCall } from './service-directory.js';

/** How long to wait where nobody says otherwise, in milliseconds. */
const WITHIN_MS = 5_000;

interface Waiter {
  readonly done: () => void;
  readonly fail: (reason: unknown) => void;
}

/** Those who wait until a registration stands, or is gone. */
export class RegistrationWaiters {
  readonly #waiting = new Set<Waiter>();

  constructor(private readonly clock: Clock) {}

  /**
   * Resolves with the next {@link done}.
   *
   * @param late what is said after the time-out
   * @throws {ZooKeeperError} `timeout`, or as it is {@link fail}ed
   * @throws `signal.reason`
   */
  async wait({ timeoutMs = WITHIN_MS, signal }: ServiceCall, path: string, late: () => string): Promise<void> {
    let waiter: Waiter | undefined;
    const settled = new Promise<true>((resolve, reject) => {
      waiter = { done: () => resolve(true), fail: reject };
      this.#waiting.add(waiter);
    });
    try {
      if (await withTimeout(this.clock, timeoutMs, settled, signal)) return;
    } finally {
      if (waiter !== undefined) this.#waiting.delete(waiter);
    }
    throw failure(path, 'timeout', `${late()} (not within ${timeoutMs} ms)`);
  }

  /** What they wait for has come. */
  done(): void {
    for (const { done } of [...this.#waiting]) done();
  }

  /** What they wait for will not come any more. */
  fail(path: string, fault: ZooKeeperFault, reason: string): void {
    for (const waiter of [...this.#waiting]) waiter.fail(failure(path, fault, reason));
  }
}

function failure(path: string, fault: ZooKeeperFault, reason: string): ZooKeeperError {
  return new ZooKeeperError(`${path}: ${reason}`, { fault, outcome: 'unknown', path });
}
