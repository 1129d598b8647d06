import { onAbort } from '../../abort-fan.js';
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
  wait({ timeoutMs = WITHIN_MS, signal }: ServiceCall, path: string, late: () => string): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const timer = new AbortController();
      let forget: (() => void) | undefined;
      const end = (settle: () => void) => {
        this.#waiting.delete(waiter);
        timer.abort();
        forget?.();
        settle();
      };
      const waiter: Waiter = { done: () => end(resolve), fail: (error) => end(() => reject(error)) };
      this.#waiting.add(waiter);
      if (signal !== undefined) forget = onAbort(signal, () => waiter.fail(signal.reason));
      this.clock.sleep(timeoutMs, timer.signal).then(
        () => waiter.fail(failure(path, 'timeout', `${late()} (not within ${timeoutMs} ms)`)),
        // It has ended in another way.
        () => undefined,
      );
    });
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
