import { orAborted } from '../../core/base/abort.js';
import { checked, whole } from '../../core/base/arguments.js';
import { randomUuid } from '../../core/base/clock.js';
import type { Retry } from '../../core/base/retry.js';
import { BoundSession } from '../client/bound-session.js';
import { erase } from '../client/retry.js';
import { type CallOptions, ignoring, isFault, type Znode, type ZooKeeper } from '../client/zookeeper.js';
import {
  foreignZnode,
  type Recipe,
  RecipeError,
  type RecipeOptions,
  recipeOn,
  type WaitOptions,
} from './recipe.js';
import { inTime, untilChildren, untilData, untilRemoved, type Wait } from './waiting.js';

const READY = 'ready';
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export interface DoubleBarrierOptions extends RecipeOptions {
  /** How many have to enter before all continue, 1 … 1,000,000; the same for all users of the path. */
  readonly members: number;
}

/** One member of a group that begins together and ends together, round after round. */
export interface DoubleBarrier {
  /**
   * Resolves once as many as there are members have entered. One that does not resolve leaves nothing behind.
   * Where the session ends meanwhile, it enters again in the next.
   *
   * @throws {WaitTimeoutError} too few had entered in time @throws {RecipeError} `already-held` where this
   * object has entered, or is about to; `foreign-znode`
   * @throws {ZooKeeperError} no connection in time, access denied, client closed @throws `signal.reason`
   */
  enter(options?: WaitOptions): Promise<void>;
  /**
   * Leaves, and resolves once all have left that were in by the last opening. This object is out then in any
   * case, also where it rejects.
   *
   * @throws {WaitTimeoutError} others were in for the whole time
   * @throws {RecipeError} `not-held` where it was not in, or its session has ended since: then the others
   * have not waited for it
   * @throws {ZooKeeperError} as {@link DoubleBarrier.enter} does @throws `signal.reason`
   */
  leave(options?: WaitOptions): Promise<void>;
}

/**
 * Curator's DistributedDoubleBarrier. Together with members in Java it is as safe as these are: see
 * docs/zookeeper/recipes.md, "With Curator and kazoo".
 *
 * @throws {ConfigError} where `path` is no absolute path below the root, or `members` is out of range
 */
export function doubleBarrier(
  zookeeper: ZooKeeper,
  path: string,
  options: DoubleBarrierOptions,
): DoubleBarrier {
  const recipe = recipeOn(zookeeper, path, checked(options), { members: whole(1, 1_000_000) });
  return new BarrierMember(recipe, options.members);
}

class BarrierMember implements DoubleBarrier {
  readonly #ready: string;
  #isBusy = false;
  #place: { readonly session: BoundSession; readonly own: string } | undefined;
  /** The end of the last attempt: its znode must not be counted with the next one. */
  #erased: Promise<void> = Promise.resolve();

  constructor(
    private readonly recipe: Recipe,
    private readonly members: number,
  ) {
    this.#ready = `${recipe.path}/${READY}`;
  }

  async enter(options: WaitOptions = {}): Promise<void> {
    checked(options);
    const { path } = this.recipe;
    if (this.#isBusy || this.#place)
      throw new RecipeError(`${path}: this object has entered, or is about to`, 'already-held', path);
    this.#isBusy = true;
    try {
      await inTime(this.recipe, options, `was not entered by ${this.members} members`, async (wait) => {
        while (this.#place === undefined) {
          await orAborted(this.#erased, wait.signal);
          await this.#tryToEnter(wait);
        }
      });
    } finally {
      this.#isBusy = false;
    }
  }

  /** Tries to take a place. Without one afterwards, the caller tries again. */
  async #tryToEnter(wait: Wait): Promise<void> {
    const { recipe, members } = this;
    const { zookeeper, path, data, random } = recipe;
    const { sessionId } = await zookeeper.whenConnected({
      timeoutMs: Number.POSITIVE_INFINITY,
      signal: wait.signal,
    });
    const session = new BoundSession(zookeeper, sessionId);
    const own = `${path}/${randomUuid(random)}`;
    const retry = wait.retryIn(session);
    try {
      await retry((call) => session.createWithParents(own, data, 'ephemeral', call)).catch(
        ignoring('node-exists'),
      );
      const [names = [], ready, znode] = await Promise.all([
        retry((call) => session.children(path, call)),
        ...[this.#ready, own].map((read) => retry((call) => session.read(read, call))),
      ]);
      if (znode === undefined) return;
      const foreign = names.find((name) => name !== READY && !UUID.test(name));
      if (foreign !== undefined) throw foreignZnode(path, foreign, `${READY} and UUIDs`);
      // Made, or set, after the own znode, it is of this round. An older one may have been left behind,
      // or be of a round that others are leaving.
      const isOpen = (stat = ready?.stat) => stat !== undefined && stat.modifiedZxid > znode.stat.createdZxid;
      if (!isOpen() && membersOf(names).length >= members) {
        // Once, also where it is repeated for a lost reply: a later one would open a later round.
        await retry<unknown>((call) =>
          ready
            ? session.setData(this.#ready, data, ready.stat.version, call)
            : session.createWithParents(this.#ready, data, 'shared', call),
        ).catch(ignoring('node-exists', 'bad-version'));
      } else if (!isOpen()) {
        const lastRound = ready ? await this.#madeBefore(ready, names, session, retry) : [];
        if (lastRound.length > 0) {
          await retry((call) => session.remove(own, undefined, call));
          return await this.#untilLeft(lastRound, session, wait);
        }
        await untilData(wait, this.#ready, (now) => isOpen(now?.stat), session);
      }
      this.#place = { session, own };
    } catch (error) {
      // `no-node`: the last process left before this one set it.
      if (wait.signal?.aborted || !isFault(error, 'session-expired', 'no-node')) throw error;
    } finally {
      if (this.#place === undefined) this.#erased = erase(recipe, session, own);
    }
  }

  /** The members that were there when the round of this `ready` was opened, and still are. */
  async #madeBefore(
    { stat }: Znode,
    names: readonly string[],
    session: BoundSession,
    retry: Retry,
  ): Promise<string[]> {
    const members = membersOf(names);
    const znodes = await Promise.all(
      members.map((name) => retry((call) => session.read(`${this.recipe.path}/${name}`, call))),
    );
    return members.filter(
      (_name, at) => (znodes[at]?.stat.createdZxid ?? stat.modifiedZxid) < stat.modifiedZxid,
    );
  }

  /** Until the last round is over: no member of it waits for one that waits for them. */
  #untilLeft(lastRound: readonly string[], session: BoundSession, wait: Wait): Promise<void> {
    const isOver = (names: readonly string[]) =>
      !lastRound.some((name) => names.includes(name)) ||
      membersOf(names).length + 1 >= this.members ||
      !names.includes(READY);
    return untilChildren(wait, this.recipe.path, isOver, session);
  }

  async leave(options: WaitOptions = {}): Promise<void> {
    checked(options);
    const { recipe } = this;
    const { zookeeper, path } = recipe;
    const place = this.#place;
    const notIn = (cause?: unknown) =>
      new RecipeError(`${path}: this object is not in, or not any more`, 'not-held', path, cause);
    if (place === undefined || this.#isBusy) throw notIn();
    const { session, own } = place;
    this.#isBusy = true;
    try {
      await inTime(recipe, options, 'was not left by all members', async (wait) => {
        const retry = wait.retryIn(session);
        // A write before the reads: the server may lag behind the last opening.
        const look = (call: CallOptions) =>
          Promise.all([
            session.multi([{ type: 'check', path: own }], call),
            session.children(path, call),
            session.read(this.#ready, call),
          ]);
        const [, names = [], ready] = await retry(look);
        const round = membersOf(names);
        const others = new Set(round.filter((name) => `${path}/${name}` !== own));
        // Curator's members wait for the one with the lowest name, and are out once one is left: that one has
        // to be the last.
        const isLast = `${path}/${round[0]}` === own;
        if (!isLast) await retry((call) => session.remove(own, undefined, call));
        for (;;) {
          const now = (await wait.retry((call) => zookeeper.children(path, call))) ?? [];
          // Later processes are of the next round.
          const last = membersOf(now).findLast((name) => others.has(name));
          if (last === undefined) {
            if (isLast)
              await this.#endRound(session, own, membersOf(now).length === 1 ? ready : undefined, retry);
            return;
          }
          const znode = await wait.retry((call) => zookeeper.read(`${path}/${last}`, call));
          // One that was made after the last opening is not in: it waits for the next.
          if (znode && ready && znode.stat.createdZxid > ready.stat.modifiedZxid) others.delete(last);
          else await untilRemoved(wait, `${path}/${last}`);
        }
      });
    } catch (error) {
      throw isFault(error, 'session-expired', 'no-node') ? notIn(error) : error;
    } finally {
      this.#erased = erase(recipe, session, own);
      this.#place = undefined;
      this.#isBusy = false;
    }
  }

  /**
   * Removes the own znode, and with it the `ready` of its round, where none has come for the next. While the
   * own one exists, no other member takes this `ready` away: so a removal that reaches the servers late
   * cannot meet the `ready` of a later round.
   */
  async #endRound(session: BoundSession, own: string, ready: Znode | undefined, retry: Retry): Promise<void> {
    const removeOwn = { type: 'remove', path: own } as const;
    const removeReady =
      ready && ({ type: 'remove', path: this.#ready, version: ready.stat.version } as const);
    const both = removeReady ? [removeOwn, removeReady] : [removeOwn];
    await retry((call) => session.multi(both, call)).catch(ignoring('no-node', 'bad-version'));
  }
}

const membersOf = (names: readonly string[]) => names.filter((name) => name !== READY).sort();
