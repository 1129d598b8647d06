import { type Retry, type RetryOptions, retrying } from '../base/retry.js';
import type { BoundSession } from './bound-session.js';
import { isFault } from './zookeeper-error.js';

/**
 * Retries a call that does no harm when it is made twice, while the connection is away: in one session, or
 * else in any.
 */
export const whileConnectionIsAway = (options: RetryOptions, session?: BoundSession): Retry =>
  retrying({
    ...options,
    mayPass: (error) =>
      isFault(error, 'connection-loss', 'timeout') ||
      (session === undefined && isFault(error, 'session-expired')),
  });
