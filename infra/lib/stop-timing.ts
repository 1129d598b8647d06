import { Duration } from 'aws-cdk-lib';
import { SettingError } from './setting-error.js';

/** What the time from SIGTERM to SIGKILL has to be long enough for. */
export interface StopTiming {
  /** From SIGTERM to SIGKILL. */
  readonly stopTimeout: Duration;
  /** How long a lease lasts without renewal. */
  readonly leaseDuration: Duration;
  /** How long the work takes to end after SIGTERM, at the most. */
  readonly drainTimeout: Duration;
}

/**
 * What nodelease itself may take between SIGTERM and its end, in addition to the work, in milliseconds: 1 s
 * to take the service out of discovery before the work gets SIGTERM, 1.5 s to leave the discovery tree, 5 s to
 * release the lease, 0.5 s to close the store, 1 s for the session of ZooKeeper, 1 s for HTTP.
 */
export const WIND_UP_MS = 10_000;

/** The most that Fargate allows, in milliseconds. */
const FARGATE_MOST_MS = 120_000;

/**
 * Checks the stop time-out against what happens in that time. A task that is killed earlier is safe, but not
 * orderly: its node id stays taken until the lease has run out.
 *
 * @throws {@link SettingError} with the reason, when it is too short, or longer than Fargate allows
 */
export function checkStopTiming({ stopTimeout, leaseDuration, drainTimeout }: StopTiming): void {
  const stopMs = stopTimeout.toMilliseconds();
  const fail = (expected: string): never => {
    throw new SettingError('stopTimeout', stopTimeout.toHumanString(), expected);
  };
  const least = (ms: number) => Duration.millis(ms + WIND_UP_MS).toHumanString();
  const windUp = Duration.millis(WIND_UP_MS).toHumanString();
  if (stopMs > FARGATE_MOST_MS) fail('at most 2 minutes, the most that Fargate allows');
  const drainMs = drainTimeout.toMilliseconds();
  if (stopMs < drainMs + WIND_UP_MS) {
    fail(
      `at least ${least(drainMs)}: the work may take ${drainTimeout.toHumanString()} to end, and nodelease ${windUp} beside that, most of it for the ` +
        'release of the lease (a task killed before keeps its node id taken until the lease has run out)',
    );
  }
  const leaseMs = leaseDuration.toMilliseconds();
  if (stopMs < leaseMs + WIND_UP_MS) {
    fail(
      `at least ${least(leaseMs)}: when the store cannot be reached during the stop, nodelease ends the work by the end of its lease, ` +
        `${leaseDuration.toHumanString()} after the last renewal, and then tidies up for up to ${windUp} (ECS would kill everything in the middle)`,
    );
  }
}
