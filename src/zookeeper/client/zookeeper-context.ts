import type { Clock, RandomSource } from '../../core/base/clock.js';
import type { ZooKeeper } from './zookeeper.js';

/** Where time and random numbers come from. */
export interface TimeSources {
  readonly clock: Clock;
  readonly random: RandomSource;
}

/** The same as options. */
export interface TimeOptions {
  /** @default the clock of this machine */
  readonly clock?: Clock | undefined;
  /** @default the operating system's */
  readonly random?: RandomSource | undefined;
}

/** What is notified of events. */
export interface EventOptions<E> {
  /** Receives each event. Must not throw and must not block. @default events are not reported */
  readonly onEvent?: ((event: E) => void) | undefined;
}

/** What all that works on znodes is given. */
export interface ZooKeeperContext extends TimeSources {
  readonly zookeeper: ZooKeeper;
}
