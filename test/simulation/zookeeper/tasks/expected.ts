import { WaitTimeoutError } from '../../../../src/core/base/errors.js';
import { isFault, ZooKeeperError } from '../../../../src/zookeeper/client/zookeeper.js';
import type { Run } from '../machine-host.js';
import type { RecipeWorld } from '../world.js';

/** Why a task gives a call up. */
export const GIVEN_UP = new Error('given up');

/** What the contract of a waiting call names: not in time, given up, no connection, the client closed. */
export function isExpected(error: unknown): boolean {
  if (error === GIVEN_UP || error instanceof WaitTimeoutError) return true;
  return error instanceof ZooKeeperError && (error.transient || isFault(error, 'closed', 'aborted'));
}

/** How long a task waits for something. */
export interface DrawnWait {
  readonly options: { readonly timeoutMs?: number; readonly signal?: AbortSignal };
  /** By when it has to settle, in milliseconds from now; undefined for whenever. */
  readonly limitMs: number | undefined;
}

/**
 * Draws how long a task waits: to the end of all work, some time, or until it gives up. In the quiet part
 * always to the end.
 */
export function drawWait(world: RecipeWorld, { dice, process }: Run, longestMs: number): DrawnWait {
  const kind = world.quiet ? 'waits' : dice.pick(['waits', 'waits a while', 'gives up'] as const);
  const limitMs = kind === 'waits' ? undefined : dice.magnitude(20, longestMs);
  if (kind === 'waits a while') return { options: { timeoutMs: limitMs as number }, limitMs };
  const controller = new AbortController();
  const giveUp = () => controller.abort(GIVEN_UP);
  if (limitMs !== undefined) void process.clock.sleep(limitMs).then(giveUp);
  else world.onStop.push(() => world.scheduler.at(world.scheduler.now, process, giveUp));
  return { options: { signal: controller.signal }, limitMs };
}
