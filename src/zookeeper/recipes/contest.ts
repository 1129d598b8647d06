import type { Retry } from '../../core/base/retry.js';
import { BoundSession } from '../client/bound-session.js';
import { erase } from '../client/retry.js';
import { SessionDeadline } from '../client/session-deadline.js';
import { isFault } from '../client/zookeeper.js';
import { type HeldZnode, ZnodeHolder } from './lock-handle.js';
import { createOwn, discard, type OwnZnode, protectedPath } from './own-znode.js';
import type { Recipe, WaitOptions } from './recipe.js';
import { foreignZnode, RecipeError } from './recipe.js';
import { inTime, untilChange, untilRemoved, type Wait } from './waiting.js';

/** How one recipe differs from another. */
export interface ContestRules {
  /** The name of the own znode before its number: `lock-`. */
  readonly name: string;
  /** The names of all znodes that may be under the path. */
  readonly kinds: readonly string[];
  /**
   * What the contender has to wait for: a znode that has to go, or any change of the children; undefined
   * where it has its turn.
   *
   * @param ahead the names of all contenders ahead of it, the first one first
   */
  blocker(ahead: readonly string[]): Blocker | undefined;
}

/** One watch: `gone` is the name of a znode. */
type Blocker = { readonly gone: string } | 'children';

/** Waits for the turn of the one before: the order of a lock. */
export const waitForPredecessor: ContestRules['blocker'] = (ahead) => {
  const before = ahead.at(-1);
  return before === undefined ? undefined : { gone: before };
};

/** The servers give out this number again and again, or negative ones: no order is left. */
const LAST_NUMBER = 2 ** 31 - 1;

/** Another client deleted the own znode. */
const OWN_GONE = new Error();

/**
 * A queue of ephemeral sequential znodes, whose head has what they contend for. The core of all locks, of the
 * semaphore and of the election. One watch a waiting contender. One object is one contender at a time.
 */
export class Contest<H extends ZnodeHolder = ZnodeHolder> {
  #busy = false;

  /** @param hold makes the handle of what was won */
  constructor(
    private readonly recipe: Recipe,
    private readonly rules: ContestRules,
    private readonly hold: (held: HeldZnode, recipe: Recipe) => H = (held) =>
      new ZnodeHolder(held, recipe) as H,
  ) {}

  /**
   * Waits in the queue for this contender's turn, over as many sessions as it takes.
   *
   * @throws {WaitTimeoutError} others hold it for the whole time, or no heartbeat is answered soon enough
   * @throws {RecipeError} `already-held`, `foreign-znode` @throws {ZooKeeperError} no connection in time,
   * access denied, client closed
   * @throws `signal.reason`
   */
  async acquire(options: WaitOptions = {}): Promise<H> {
    this.checkFree();
    this.#busy = true;
    try {
      return await this.#acquire(options);
    } catch (error) {
      this.#busy = false;
      throw error;
    }
  }

  /** @throws {RecipeError} `already-held` */
  checkFree(): void {
    const { path } = this.recipe;
    if (this.#busy)
      throw new RecipeError(
        `${path}: this object holds it, or waits for it: it is not re-entrant`,
        'already-held',
        path,
      );
  }

  #acquire(options: WaitOptions): Promise<H> {
    const { recipe } = this;
    const { zookeeper, clock } = recipe;
    return inTime(recipe, options, 'could not be acquired', async (wait) => {
      const { signal } = wait;
      for (;;) {
        const { sessionId, timeoutMs } = await zookeeper.whenConnected({
          timeoutMs: Number.POSITIVE_INFINITY,
          signal,
        });
        const session = new BoundSession(zookeeper, sessionId);
        const deadline = new SessionDeadline(timeoutMs, (at) => session.heardBy(at));
        const protectedTo = protectedPath(recipe, this.rules.name);
        let own: OwnZnode | undefined;
        try {
          const sentAt = clock.monotonic();
          own = await createOwn(recipe, session, protectedTo, signal);
          deadline.answered(sentAt);
          return await this.#waitForTurn(session, own, deadline, wait);
        } catch (error) {
          void (own === undefined ? discard(recipe, session, protectedTo) : erase(recipe, session, own.path));
          // Nothing is left of a contender whose session has ended: it rejoins the queue in the next one.
          if (!(error === OWN_GONE || isFault(error, 'session-expired'))) throw error;
          signal?.throwIfAborted();
        }
      }
    });
  }

  /** Waits for the turn of an own znode. */
  async #waitForTurn(
    session: BoundSession,
    own: OwnZnode,
    deadline: SessionDeadline,
    wait: Wait,
  ): Promise<H> {
    const { recipe, rules } = this;
    const { signal } = wait;
    const { clock, path: parent } = recipe;
    const { path } = own;
    const name = path.slice(parent.length + 1);
    const number = Number(placeOf(name, rules.kinds));
    if (number < 0 || number >= LAST_NUMBER)
      throw new RecipeError(
        `${parent}: ZooKeeper has no more numbers for znodes there: remove it while no task uses it`,
        'exhausted',
        parent,
      );
    const retry: Retry = (attempt) => wait.retryIn(session)(attempt);
    const list = () => retry((call) => session.children(parent, call));
    const beat = async () => {
      const beatAt = clock.monotonic();
      const beating = retry((call) => session.multi([{ type: 'check', path }], call));
      await beating.catch((error: unknown) => {
        throw isFault(error, 'no-node') ? OWN_GONE : error;
      });
      deadline.answered(beatAt);
    };
    // After a pause of this process, or a long wait, the leader may not have heard of the session for long:
    // only a heartbeat shows that it lives.
    const isFresh = () => deadline.isFresh(clock.monotonic());
    const token = own.token ?? (await retry((call) => session.read(path, call)))?.stat.createdZxid;
    let names = own.names ?? (await list());
    for (;;) {
      if (!names?.includes(name) || token === undefined) throw OWN_GONE;
      const blocker = rules.blocker(inOrder(parent, names, rules.kinds, name));
      if (blocker === undefined) break;
      if (wait.isTry) throw wait.late();
      const next = () => (isFresh() ? list() : Promise.all([list(), beat()]).then(([names]) => names));
      names = await (blocker === 'children'
        ? untilChange(wait, parent, names, session, next)
        : untilRemoved(wait, `${parent}/${blocker.gone}`, session, next));
    }
    while (!isFresh()) {
      await clock.sleep(deadline.beatMs, signal);
      await beat();
    }
    signal?.throwIfAborted();
    const onEnd = () => {
      this.#busy = false;
    };
    return this.hold({ session, path, token, deadline, onEnd }, recipe);
  }
}

/**
 * The contenders, the first one first: by the text that follows the last occurrence of their recipe's name.
 *
 * @param before only the contenders ahead of this one
 * @throws {RecipeError} `foreign-znode`
 */
export function inOrder(
  path: string,
  names: readonly string[],
  kinds: readonly string[],
  before?: string,
): string[] {
  const placed = (name: string) => {
    const place = placeOf(name, kinds);
    if (place !== undefined) return { place, name };
    throw foreignZnode(path, name, `names with ${kinds.map((kind) => JSON.stringify(kind)).join(' or ')}`);
  };
  const end = before === undefined ? undefined : placed(before);
  const contenders: Placed[] = [];
  for (const name of names) {
    const each = placed(name);
    if (end === undefined || isAhead(each, end)) contenders.push(each);
  }
  return contenders.sort((a, b) => (isAhead(a, b) ? -1 : 1)).map(({ name }) => name);
}

interface Placed {
  readonly place: string;
  readonly name: string;
}

const isAhead = (a: Placed, b: Placed) => a.place < b.place || (a.place === b.place && a.name < b.name);

function placeOf(name: string, kinds: readonly string[]): string | undefined {
  let at = 0;
  for (const kind of kinds) {
    const found = name.lastIndexOf(kind);
    if (found >= 0) at = Math.max(at, found + kind.length);
  }
  return at === 0 ? undefined : name.slice(at);
}
