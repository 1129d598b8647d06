import { anySignal, onAbort, orAborted, timeoutSignal, withTimeout } from '../base/abort.js';
import { AcquireTimeoutError } from '../base/errors.js';
import { BoundSession } from '../zookeeper/bound-session.js';
import { SessionDeadline } from '../zookeeper/session-deadline.js';
import { isFault } from '../zookeeper/zookeeper-error.js';
import { type Claim, ZnodeHolder } from './lock-handle.js';
import { createOwn, discard, erase, protectedPath } from './own-znode.js';
import { checkTimeout, type Recipe, type WaitOptions, whileAway } from './recipe.js';
import { RecipeError } from './recipe-error.js';

/** What tells one recipe from another. */
export interface ContestRules {
  /** The name of the own znode before its number: `lock-`. */
  readonly name: string;
  /** The names of all znodes that may stand under the path. */
  readonly kinds: readonly string[];
  /**
   * What the contender has to wait for: a znode that has to go, or any change of the children; undefined where it has its turn.
   *
   * @param order the names of all contenders, the first one first
   * @param own where the own one stands among them
   */
  blocker(order: readonly string[], own: number): Blocker | undefined;
}

/** One watch: `gone` is the name of a znode. */
export type Blocker = { readonly gone: string } | 'children';

/** Waits for the turn of the one before: the order of a lock. */
export const waitForPredecessor: ContestRules['blocker'] = (order, own) => {
  const before = order[own - 1];
  return before === undefined ? undefined : { gone: before };
};

/** How long one try may take that does not wait for others, in milliseconds. */
const TRY_MS = 5_000;
/** How long a watch may take to be set before the servers are asked whether they refuse it, in milliseconds. */
const WATCH_MS = 1_000;
/** Shares of the session's time-out: how long a new handle is valid for certain, and the pause between heartbeats until it is. */
const FRESH_SHARE = 1 / 4;
const BEAT_SHARE = 1 / 12;

/** The own znode was deleted by somebody else. */
const OWN_GONE = new Error('the own znode is gone');

/**
 * A queue of ephemeral sequential znodes, whose head has what they contend for. The core of all locks, of the semaphore and of the election.
 * One watch a waiting contender. One object is one contender at a time.
 */
export class Contest<H extends ZnodeHolder = ZnodeHolder> {
  #busy = false;

  /** @param hold makes the handle of what was won */
  constructor(
    private readonly recipe: Recipe,
    private readonly rules: ContestRules,
    private readonly hold: (claim: Claim, recipe: Recipe) => H = (claim) => new ZnodeHolder(claim, recipe) as H,
  ) {}

  /**
   * Stands in the queue until it is this contender's turn, over as many sessions as it takes.
   *
   * @throws {AcquireTimeoutError} others hold it for the whole time, or no heartbeat is answered soon enough
   * @throws {RecipeError} `already-held`, `foreign-znode` @throws {ZooKeeperError} no connection in time, access denied, client closed
   * @throws `signal.reason`
   */
  async acquire(options: WaitOptions = {}): Promise<H> {
    const { path } = this.recipe;
    if (this.#busy) throw new RecipeError(`${path}: this object holds it, or waits for it: it is not re-entrant`, 'already-held', path);
    this.#busy = true;
    try {
      const handle = await this.#acquire(options);
      onAbort(handle.ended, () => {
        this.#busy = false;
      });
      return handle;
    } catch (error) {
      this.#busy = false;
      throw error;
    }
  }

  async #acquire({ timeoutMs, signal }: WaitOptions): Promise<H> {
    const { zookeeper, clock, path } = this.recipe;
    const limitMs = checkTimeout(timeoutMs) || TRY_MS;
    const until = clock.monotonic() + limitMs;
    const late = () => new AcquireTimeoutError(`${zookeeper.description}: ${path} could not be had within ${limitMs} ms`);
    const limit = limitMs === Number.POSITIVE_INFINITY ? anySignal(signal) : timeoutSignal(clock, limitMs, late, signal);
    try {
      for (;;) {
        const { sessionId, timeoutMs: sessionMs } = await zookeeper.whenConnected({
          timeoutMs: Math.max(0, until - clock.monotonic()),
          signal,
        });
        const session = new BoundSession(zookeeper, sessionId);
        const protectedTo = protectedPath(this.recipe, this.rules.name);
        let path: string | undefined;
        try {
          const deadline = new SessionDeadline(sessionMs, (at) => session.heardBy(at));
          const sentAt = clock.monotonic();
          path = await createOwn(this.recipe, session, protectedTo, limit.signal);
          deadline.answered(sentAt);
          return await this.#stand(session, path, deadline, timeoutMs === 0, limit.signal);
        } catch (error) {
          void (path === undefined ? discard(this.recipe, session, protectedTo) : erase(this.recipe, session, path));
          // Nothing is left of a contender whose session has ended: it stands anew in the next one.
          if (limit.signal.aborted || !(error === OWN_GONE || isFault(error, 'session-expired'))) throw error;
        }
      }
    } catch (error) {
      // No connection in time: that says more than that the lock was not had.
      if (!isFault(error, 'timeout')) limit.signal.throwIfAborted();
      throw error;
    } finally {
      limit.release();
    }
  }

  /** Waits for the turn of an own znode. */
  async #stand(session: BoundSession, path: string, deadline: SessionDeadline, isTry: boolean, signal: AbortSignal): Promise<H> {
    const { recipe } = this;
    const { clock, path: parent } = recipe;
    const name = path.slice(parent.length + 1);
    const list = () => whileAway(recipe, signal, (call) => session.children(parent, call));
    const beat = async () => {
      const beatAt = clock.monotonic();
      await whileAway(recipe, signal, (call) => session.multi([{ type: 'check', path }], call)).catch((error: unknown) => {
        throw isFault(error, 'no-node') ? OWN_GONE : error;
      });
      deadline.answered(beatAt);
    };
    const [first, own] = await Promise.all([list(), whileAway(recipe, signal, (call) => session.read(path, call))]);
    for (let names = first; ; ) {
      if (!names?.includes(name) || own === undefined) throw OWN_GONE;
      const blocker = this.#blocker(names, name);
      if (blocker === undefined) break;
      if (isTry) throw new AcquireTimeoutError(`${recipe.zookeeper.description}: ${parent} is held by others`);
      await this.#wait(session, blocker, names, signal);
      // The znode that is waited for may be gone long before this is known: only a heartbeat tells that the session lives.
      [names] = await Promise.all([list(), beat()]);
    }
    // After a pause of this process the leader may not have heard of the session for long.
    while (deadline.until < clock.monotonic() + deadline.timeoutMs * FRESH_SHARE) {
      await clock.sleep(deadline.timeoutMs * BEAT_SHARE, signal);
      await beat();
    }
    signal.throwIfAborted();
    return this.hold({ session, path, token: own.stat.createdZxid, deadline }, recipe);
  }

  #blocker(names: readonly string[], own: string): Blocker | undefined {
    const order = inOrder(this.recipe.path, names, this.rules.kinds);
    return this.rules.blocker(order, order.indexOf(own));
  }

  /** Until the blocker is gone or the session is, or either may be. @param names the children, as just listed */
  async #wait(session: BoundSession, blocker: Blocker, names: readonly string[], signal: AbortSignal): Promise<void> {
    const { zookeeper, clock, path } = this.recipe;
    let onChange: () => void = () => undefined;
    const changed = new Promise<true>((resolve) => {
      onChange = () => resolve(true);
    });
    const onState = () => session.isOver && onChange();
    const forgetSession = zookeeper.onState(onState);
    onState();
    const seen = fingerprint(names);
    const watch =
      blocker === 'children'
        ? zookeeper.watchChildren(path, (now = []) => fingerprint(now) !== seen && onChange())
        : zookeeper.watchData(`${path}/${blocker.gone}`, (znode) => znode === undefined && onChange());
    try {
      const isSet = await withTimeout(clock, WATCH_MS, Promise.race([changed, watch.first.then(() => true)]), signal);
      // A watch does not tell that it is refused; a read does.
      if (!isSet && blocker !== 'children') await whileAway(this.recipe, signal, (call) => session.read(`${path}/${blocker.gone}`, call));
      await orAborted(changed, signal);
    } finally {
      watch.close();
      forgetSession();
    }
  }
}

const fingerprint = (names: readonly string[]) => [...names].sort().join('/');

/**
 * The contenders, the first one first: by the text that follows the last occurrence of their recipe's name.
 *
 * @throws {RecipeError} `foreign-znode`
 */
export function inOrder(path: string, names: readonly string[], kinds: readonly string[]): string[] {
  const placed = names.map((name) => {
    const ends = kinds.map((kind) => name.lastIndexOf(kind) + kind.length).filter((end, at) => end >= (kinds[at]?.length ?? 0));
    if (ends.length > 0) return { name, place: name.slice(Math.max(...ends)) };
    const expected = kinds.map((kind) => JSON.stringify(kind)).join(' or ');
    throw new RecipeError(
      `${path} has a child ${JSON.stringify(name)}, which is not of this recipe: expected names with ${expected}`,
      'foreign-znode',
      path,
    );
  });
  return placed.sort((a, b) => (a.place < b.place ? -1 : a.place > b.place ? 1 : 0)).map(({ name }) => name);
}
