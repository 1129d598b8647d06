import type { Run } from '../machine-host.js';
import type { RecipeWorld } from '../world.js';

/**
 * How much later than its deadline a call may settle, in milliseconds: timers are late, several of them one
 * after the other.
 */
const SLACK_MS = 150;
/** How long servers that are away are waited for in any case, in milliseconds. */
const CONNECT_MS = 5_000;

/**
 * Settles as the call does, and sees to it that it settles by its deadline, on its own machine's clock. A
 * process that stood still gets a little more.
 *
 * @param limitMs undefined for no limit
 * @param moreMs what is waited for in addition, however long the servers were away before
 */
export async function bounded<T>(
  world: RecipeWorld,
  run: Run,
  what: string,
  limitMs: number | undefined,
  call: Promise<T>,
  moreMs = 0,
): Promise<T> {
  let settled = false;
  if (limitMs !== undefined) {
    const { scheduler } = world;
    const look = () => {
      if (settled || !run.process.alive) return;
      if (run.process.stopped || scheduler.now - run.disturbedAt < Math.max(SLACK_MS, moreMs))
        scheduler.at(scheduler.now + SLACK_MS, undefined, look);
      else
        world.fail('hang', `${run.name}: ${what} has not settled within ${Math.round(limitMs + moreMs)} ms`);
    };
    const isConnected = run.zookeeper.state.status === 'connected';
    const atMostMs = (isConnected ? limitMs : Math.max(limitMs, CONNECT_MS)) + moreMs;
    scheduler.at(scheduler.now + run.process.machine.trueMs(atMostMs) + SLACK_MS, undefined, look);
  }
  try {
    return await call;
  } finally {
    settled = true;
  }
}
