import { ignoring, ZooKeeperError } from './zookeeper-error.js';

/** How often a step is made against the changes of others before it counts as a failure. */
const ROUNDS = 8;

/**
 * Makes a step, which reads what it changes, until it resolves to a value: again where others were faster.
 *
 * @throws {ZooKeeperError} `refused` after eight rounds, and what `step` throws otherwise
 */
export async function inRounds<T>(path: string, step: () => Promise<T | undefined>): Promise<T> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const done = await step().catch(ignoring('bad-version', 'node-exists', 'no-node'));
    if (done !== undefined) return done;
  }
  throw busy(path);
}

/** The failure of a znode that others change as often as it is written. */
export const busy = (path: string) =>
  new ZooKeeperError(`${path} is being changed by others all the time`, {
    fault: 'refused',
    outcome: 'not-applied',
    path,
  });
