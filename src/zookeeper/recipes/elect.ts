import { anySignal } from '../../core/base/abort.js';
import { checkArguments, checked, maybe, TEXT } from '../../core/base/arguments.js';
import type { Retry } from '../../core/base/retry.js';
import { whileConnectionIsAway } from '../client/retry.js';
import type { Watch, ZooKeeper } from '../client/zookeeper.js';
import { Contest, inOrder, waitForPredecessor } from './contest.js';
import type { LockHandle } from './lock-handle.js';
import { type Recipe, type RecipeOptions, recipeOn, type WaitOptions } from './recipe.js';
import { inTime, withCallTimeout } from './waiting.js';

const LATCH = 'latch-';
const KINDS = [LATCH];

export interface ElectOptions extends RecipeOptions {
  /** What the others see of this participant. @default empty */
  readonly id?: string | undefined;
  /** Ends the candidacy, and with it the iteration. */
  readonly signal?: AbortSignal | undefined;
}

/** One that takes part in an election, as ZooKeeper shows it. */
export interface Participant {
  /** What it says of itself. */
  readonly id: string;
  /** Whether it is the first. Its own handle knows better whether it still leads. */
  readonly isLeader: boolean;
  /** The token of its term, the present or the next one. */
  readonly token: bigint;
}

/** Leadership over a path, term after term. */
export interface Election extends AsyncIterable<LockHandle> {
  /** One term. @see ZooKeeperLock.acquire */
  acquire(options?: WaitOptions): Promise<LockHandle>;
}

/**
 * Takes part in the election of one leader for a path: Curator's LeaderLatch.
 * `for await (const term of elect(…))` runs its body once a term; a term ends with its body, or with
 * `term.signal`, which the body has to obey. Then the participant queues again, behind the others; leaving
 * the loop gives up. It ends by itself once `signal` aborts.
 *
 * @throws {ConfigError} where `path` is no absolute path below the root; the iteration throws as
 * {@link ZooKeeperLock.acquire}
 */
export function elect(zookeeper: ZooKeeper, path: string, options: ElectOptions = {}): Election {
  const { id = '', signal } = checked(options, { id: maybe(TEXT) });
  const recipe = recipeOn(zookeeper, path, { ...options, data: id });
  const contest = new Contest(recipe, { name: LATCH, kinds: KINDS, blocker: waitForPredecessor });
  return {
    async acquire(wait = {}) {
      const either = anySignal(signal, checked(wait).signal);
      return contest.acquire({ ...wait, signal: either.signal }).finally(either.release);
    },
    async *[Symbol.asyncIterator]() {
      while (!signal?.aborted) {
        let term: LockHandle;
        try {
          term = await contest.acquire({ signal });
        } catch (error) {
          if (signal?.aborted) return;
          throw error;
        }
        try {
          yield term;
        } finally {
          await term.release();
        }
      }
    },
  };
}

/**
 * All that take part now, the leader first. The caller need not. Gives up after 5 s by default.
 *
 * @throws {WaitTimeoutError} no answer in time @throws {ZooKeeperError} @throws {RecipeError}
 * `foreign-znode` @throws `signal.reason`
 */
export async function participants(
  zookeeper: ZooKeeper,
  path: string,
  options: RecipeOptions & WaitOptions = {},
): Promise<Participant[]> {
  const recipe = recipeOn(zookeeper, path, options);
  return inTime(recipe, withCallTimeout(options), 'could not be read', async ({ retry }) => {
    const names = await retry((call) => zookeeper.children(path, call));
    const found = await Promise.all(
      inOrder(path, names ?? [], KINDS).map((name) => read(recipe, name, retry)),
    );
    return found
      .filter((participant) => participant !== undefined)
      .map((participant, place) => ({ ...participant, isLeader: place === 0 }));
  });
}

/**
 * Calls `listener` with the leader, undefined for none: now, and after every change. Changes in quick
 * succession may be one call. Listeners must not throw. Where the path may not be read, there is no call.
 */
export function watchLeader(
  zookeeper: ZooKeeper,
  path: string,
  listener: (leader: Participant | undefined) => void,
  options: RecipeOptions = {},
): Watch {
  checkArguments({ listener });
  const recipe = recipeOn(zookeeper, path, options);
  const retry = whileConnectionIsAway(recipe);
  let reported: bigint | undefined | null = null;
  let newest = 0;
  let onFirst: () => void = () => undefined;
  const notified = new Promise<void>((resolve) => {
    onFirst = resolve;
  });
  const watch = zookeeper.watchChildren(path, async (names) => {
    newest += 1;
    const turn = newest;
    const [first] = inOrder(path, names?.filter((name) => name.includes(LATCH)) ?? [], KINDS);
    const leader = first === undefined ? undefined : await read(recipe, first, retry).catch(() => undefined);
    // One that has gone by now is followed by another change.
    if (turn !== newest || reported === leader?.token || (first !== undefined && leader === undefined))
      return;
    reported = leader?.token;
    listener(leader && { ...leader, isLeader: true });
    onFirst();
  });
  return {
    first: notified,
    close: () => {
      newest += 1;
      watch.close();
    },
  };
}

async function read(
  { zookeeper, path }: Recipe,
  name: string,
  retry: Retry,
): Promise<Omit<Participant, 'isLeader'> | undefined> {
  const znode = await retry((call) => zookeeper.read(`${path}/${name}`, call));
  return znode && { id: znode.data.toString('utf8'), token: znode.stat.createdZxid };
}
