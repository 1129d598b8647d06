import { anySignal, timeoutSignal, withTimeout } from '../base/abort.js';
import type { CallOptions } from '../zookeeper/zookeeper.js';
import { isFault, type ZooKeeperFault } from '../zookeeper/zookeeper-error.js';
import { checkTimeout, type Recipe, type WaitOptions, whileAway } from './recipe.js';
import { RecipeError } from './recipe-error.js';

// P                     the data of the transaction
// P/coordinator-<hex>   ephemeral: the coordinator is there
// P/votes               the names of all sites, one a line
// P/votes/SITE          its vote, until it has carried out the outcome
// P/decision            the outcome
// Votes and decision are created, so each is written once. Whoever decides obeys what stands there, not what it wanted to write.

export const COORDINATOR = 'coordinator-';
/** How much longer than the time-out the servers may take to answer, in milliseconds. */
export const ANSWER_MS = 5_000;

/** What all sites of a transaction do. */
export type TransactionOutcome = 'commit' | 'abort';

export const isOutcome = (word: unknown): word is TransactionOutcome => word === 'commit' || word === 'abort';

/** A transaction as it stands. */
export interface Look {
  readonly names: readonly string[];
  readonly data: Buffer;
  readonly sites: readonly string[];
}

/** One call on a transaction, which goes on over sessions and lost connections. */
export class TransactionCall {
  readonly #ms: number;
  readonly #until: number;
  #signal: AbortSignal | undefined;
  #wasThere = false;

  constructor(
    private readonly recipe: Recipe,
    private readonly wait: WaitOptions,
  ) {
    this.#ms = checkTimeout(wait.timeoutMs);
    this.#until = recipe.clock.monotonic() + this.#ms;
  }

  /** Whether the time is over. */
  get isLate(): boolean {
    return this.recipe.clock.monotonic() >= this.#until;
  }

  /** Calls `find` with what stands, undefined for nothing, now and after each change, until it finds something. */
  async until<T>(find: (look: Look | undefined) => Promise<T | undefined>): Promise<T> {
    const { zookeeper, clock, path } = this.recipe;
    const away = () => new RecipeError(`${zookeeper.description}: no answer within ${this.#ms} ms`, 'outcome-unknown', path);
    const { signal } = this.wait;
    const limit = this.#ms === Number.POSITIVE_INFINITY ? anySignal(signal) : timeoutSignal(clock, this.#ms + ANSWER_MS, away, signal);
    this.#signal = limit.signal;
    let wake: () => void = () => undefined;
    const forgetSession = zookeeper.onState(() => wake());
    const watches = [path, `${path}/votes`].map((watched) => zookeeper.watchChildren(watched, () => wake()));
    try {
      for (;;) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        try {
          const look = await this.#look();
          const found = await find(look);
          if (found !== undefined) return found;
          this.#wasThere ||= look !== undefined;
          await withTimeout(clock, Math.max(0, this.#until - clock.monotonic()), woken, limit.signal);
        } catch (error) {
          // Only the coordinator's own znode goes with a session, and whether it stands is looked at.
          if (!isFault(error, 'session-expired')) throw error;
        }
      }
    } catch (error) {
      // A call that was given up does not tell why.
      limit.signal.throwIfAborted();
      throw error;
    } finally {
      for (const watch of watches) watch.close();
      forgetSession();
      limit.release();
    }
  }

  /** Makes a call as often as it takes while ZooKeeper is away. */
  make<T>(call: (options: CallOptions) => Promise<T>): Promise<T> {
    return whileAway(this.recipe, this.#signal, call);
  }

  /** Writes a word that stands for ever. Where one does already it stays. */
  create(path: string, word: TransactionOutcome): Promise<unknown> {
    return this.make((options) => this.recipe.zookeeper.create(path, word, 'persistent', options)).catch(unless('node-exists', 'no-node'));
  }

  /** @throws {RecipeError} `damaged` */
  async read(path: string): Promise<TransactionOutcome | undefined> {
    const znode = await this.make((options) => this.recipe.zookeeper.read(path, options));
    const word = znode?.data.toString('utf8');
    if (word === undefined || isOutcome(word)) return word;
    throw new RecipeError(`${path}: expected "commit" or "abort", found ${JSON.stringify(word.slice(0, 40))}`, 'damaged', path);
  }

  /** What is decided; by this very call where that is due: no coordinator, no time left, or `isDue()`. */
  async outcome(look: Look, isDue: () => Promise<boolean>): Promise<TransactionOutcome | undefined> {
    const { names } = look;
    const decision = `${this.recipe.path}/decision`;
    if (!names.includes('decision')) {
      const hasCoordinator = names.some((name) => name.startsWith(COORDINATOR));
      if (hasCoordinator && !this.isLate && !(await isDue())) return undefined;
      await this.create(decision, (await this.verdict(look)) ?? 'abort');
    }
    return this.read(decision);
  }

  /** What the votes come to; undefined where it takes more of them. */
  async verdict({ sites }: Look): Promise<TransactionOutcome | undefined> {
    const votes = await Promise.all(sites.map((site) => this.read(`${this.recipe.path}/votes/${site}`)));
    if (votes.includes('abort')) return 'abort';
    return votes.includes(undefined) ? undefined : 'commit';
  }

  /** @throws {RecipeError} `outcome-unknown` where the transaction stood in an earlier look of this call */
  checkNotRemoved(): void {
    const { path } = this.recipe;
    if (this.#wasThere) throw new RecipeError(`${path} was removed before its outcome was known here`, 'outcome-unknown', path);
  }

  /** @throws {RecipeError} `foreign-znode` */
  async #look(): Promise<Look | undefined> {
    const { path, zookeeper } = this.recipe;
    const names = await this.make((options) => zookeeper.children(path, options));
    if (names === undefined) return undefined;
    const foreign = names.find((name) => !(name === 'votes' || name === 'decision' || name.startsWith(COORDINATOR)));
    if (foreign !== undefined || !names.includes('votes'))
      throw new RecipeError(`${path} is not a transaction: its children are ${names.slice(0, 5).join(', ')}`, 'foreign-znode', path);
    const [own, votes] = await Promise.all([path, `${path}/votes`].map((each) => this.make((options) => zookeeper.read(each, options))));
    return own && votes && { names, data: own.data, sites: votes.data.toString('utf8').split('\n') };
  }
}

/** For failures that say that there is nothing left to do. */
export function unless(...faults: readonly ZooKeeperFault[]): (error: unknown) => undefined {
  return (error) => {
    if (isFault(error, ...faults)) return undefined;
    throw error;
  };
}
