import { orAborted, withTimeout } from '../../core/base/abort.js';
import { checkArguments, checked, DATA, FUNCTION, kind, maybe } from '../../core/base/arguments.js';
import { ConfigError, WaitTimeoutError } from '../../core/base/errors.js';
import { catchUp, erase, whileConnectionIsAway } from '../client/retry.js';
import { checkZnodeName, parentOf } from '../client/znode-path.js';
import {
  CALL_TIMEOUT_MS,
  ignoring,
  type MultiOperation,
  type ZnodeData,
  type ZooKeeper,
} from '../client/zookeeper.js';
import { type Recipe, RecipeError, type RecipeOptions, recipeOn, type WaitOptions } from './recipe.js';
import { inTime, untilChange, type Wait } from './waiting.js';

// P                    the data of the transaction
// P/sites              the names of all sites, one a line
// P/coordinator-<hex>  ephemeral: the coordinator is there
// P/vote-SITE          its vote, until it has carried out the outcome
// P/decision           the outcome
//
// Votes and decision are created, so each is written once. The process that decides obeys what is written,
// not what it wanted to write.

const COORDINATOR = 'coordinator-';
const VOTE = 'vote-';
const DEFAULT_TIMEOUT_MS = 60_000;

/** What all sites of a transaction do. */
export type TransactionOutcome = 'commit' | 'abort';

export interface CoordinateOptions extends WaitOptions {
  /** The names of all that take part. */
  readonly sites: readonly string[];
  /** What they are asked to do. @default empty */
  readonly data?: ZnodeData | undefined;
  /** How long to wait for votes before it is aborted, in milliseconds. @default 60000 */
  readonly timeoutMs?: number | undefined;
}

export interface JoinOptions extends WaitOptions {
  /** The own name. One process at a time may have it. */
  readonly site: string;
  /**
   * How long to wait, from the call on, before this site decides by the votes there are, in milliseconds.
   * @default no limit
   */
  readonly timeoutMs?: number | undefined;
}

/**
 * A two-phase commit. All calls throw {@link ConfigError} for bad input, `ZooKeeperError` for denied access,
 * a closed client and no connection in time, `signal.reason`, and {@link RecipeError}: `foreign-znode`,
 * `damaged`, or `outcome-unknown` where the transaction was removed. A site that does not learn the outcome
 * keeps its promise, and calls again.
 */
export interface Transaction {
  /**
   * Begins the transaction, and resolves to its outcome: `commit` where all sites have voted so; else
   * `abort`, by a vote or the time-out. With the same sites and data it resolves to the same outcome again.
   */
  coordinate(options: CoordinateOptions): Promise<TransactionOutcome>;
  /**
   * Takes part as a site: waits for the transaction, votes, learns the outcome, carries it out and
   * acknowledges that. After a restart it does what is left. Where the coordinator's session has ended, it
   * decides by the votes there are.
   *
   * @param vote promises that the site can commit whatever happens, or refuses. Not asked once a vote is
   * there, nor where it is decided already. Where it throws, `join` does, without a vote
   * @param apply carries out the outcome; after a restart perhaps again
   * @throws {WaitTimeoutError} no transaction was begun in time
   */
  join(
    options: JoinOptions,
    vote: (data: Buffer) => Promise<TransactionOutcome>,
    apply?: (outcome: TransactionOutcome) => Promise<void>,
  ): Promise<TransactionOutcome>;
  /**
   * Removes the transaction once all that have voted have carried it out.
   * @throws {WaitTimeoutError} one of them has not, in time
   */
  forget(options?: WaitOptions): Promise<void>;
}

/**
 * The one transaction at a path, which is not used for another one ever after.
 *
 * @throws {ConfigError} where `path` is no absolute path below the root
 */
export function transaction(zookeeper: ZooKeeper, path: string, options?: RecipeOptions): Transaction {
  const recipe = recipeOn(zookeeper, path, options);
  return {
    async coordinate(options) {
      const {
        sites,
        data = '',
        timeoutMs = DEFAULT_TIMEOUT_MS,
        signal,
      } = checked(options, {
        sites: SITES,
        data: maybe(DATA),
      });
      const names = checkSites(sites);
      const own = `${path}/${COORDINATOR}${recipe.random.hex(8)}`;
      const begin: readonly MultiOperation[] = [
        { type: 'create', path, data, mode: 'shared' },
        { type: 'create', path: `${path}/sites`, data: names.join('\n'), mode: 'shared' },
        { type: 'create', path: own, data: recipe.data, mode: 'ephemeral' },
      ];
      try {
        return await settle(recipe, { timeoutMs, signal }, async (state, time) => {
          if (state === undefined) {
            await time.retry((call) => zookeeper.ensurePath(parentOf(path), call));
            await time.retry((call) => zookeeper.multi(begin, call)).catch(ignoring('node-exists'));
            return undefined;
          }
          if (state.sites.join('\n') !== names.join('\n') || !state.data.equals(Buffer.from(data)))
            throw new RecipeError(
              `${path} is another transaction: each one takes its own path`,
              'foreign-znode',
              path,
            );
          return isDue(state) || (await verdict(time, state)) ? decide(time, state) : undefined;
        });
      } finally {
        // Without it the sites decide themselves.
        void erase(recipe, zookeeper, own);
      }
    },

    async join(options, vote, apply) {
      const { site, timeoutMs, signal } = checked(options);
      checkArguments({ vote, apply }, { vote: FUNCTION, apply: maybe(FUNCTION) });
      checkZnodeName(site, 'site');
      const own = `${path}/${VOTE}${site}`;
      let answer: TransactionOutcome | undefined;
      const outcome = await settle(recipe, { timeoutMs, signal }, async (state, time) => {
        if (state === undefined) return undefined;
        if (!state.sites.includes(site))
          throw new ConfigError('site', site, `one of the sites of ${path}: ${state.sites.join(', ')}`);
        if (isDue(state)) return decide(time, state);
        if (state.names.includes(VOTE + site)) return undefined;
        answer ??= await orAborted(vote(state.data), time.signal);
        if (!isOutcome(answer)) throw new ConfigError('vote', answer, '"commit" or "abort"');
        await write(time, own, answer);
        return undefined;
      });
      await apply?.(outcome);
      const retry = whileConnectionIsAway(recipe);
      const acknowledged = retry((call) => zookeeper.remove(own, undefined, call));
      await withTimeout(
        recipe.clock,
        CALL_TIMEOUT_MS,
        acknowledged.catch(() => undefined),
      );
      return outcome;
    },

    forget: (wait = {}) =>
      inTime(recipe, wait, 'could not be removed', async (time) => {
        // A server that lags behind may not show it yet.
        await time.retry((call) => catchUp(zookeeper, path, call));
        await follow(time, async (state) => {
          if (state === undefined) return true;
          if (!state.names.includes('decision') || state.names.some((name) => name.startsWith(VOTE)))
            return undefined;
          const remove = [...state.names.map((name) => `${path}/${name}`), path].map(
            (each) => ({ type: 'remove', path: each }) as const,
          );
          const removed = time.retry((call) => zookeeper.multi(remove, call));
          return removed.then(() => true, ignoring('no-node', 'not-empty'));
        });
      }),
  };
}

/** The present state of the transaction. */
interface TransactionState {
  readonly names: readonly string[];
  readonly data: Buffer;
  readonly sites: readonly string[];
}

/**
 * Takes its turn after each change until that shows the outcome. Decides by the votes there are when the time
 * is up.
 */
async function settle(
  recipe: Recipe,
  wait: WaitOptions,
  turn: (state: TransactionState | undefined, time: Wait) => Promise<TransactionOutcome | undefined>,
): Promise<TransactionOutcome> {
  let last: TransactionState | undefined;
  let over: AbortSignal | undefined;
  try {
    return await inTime(recipe, wait, 'was not begun', (time) => {
      over = time.signal;
      return follow(time, async (state) => {
        if (last && !state) {
          const { zookeeper, path } = recipe;
          // The next session may be at a server that lags behind.
          await time.retry((call) => catchUp(zookeeper, path, call));
          if (await time.retry((call) => zookeeper.read(path, call))) return undefined;
          throw removed(recipe);
        }
        last = state;
        return turn(state, time);
      });
    });
  } catch (error) {
    const state = last;
    // A vote may wait for something else, and have no time left for that.
    const isLate = error instanceof WaitTimeoutError && (error === over?.reason || wait.timeoutMs === 0);
    if (!state || !isLate) throw error;
    return inTime(recipe, { ...wait, timeoutMs: CALL_TIMEOUT_MS }, 'had no outcome', (time) =>
      decide(time, state),
    );
  }
}

/**
 * Calls `find` with the present state, undefined for nothing, now and after each change, until it finds
 * something.
 */
async function follow<T>(
  wait: Wait,
  find: (state: TransactionState | undefined) => Promise<T | undefined>,
): Promise<T> {
  const { zookeeper, path } = wait.recipe;
  for (;;) {
    const names = await wait.retry((call) => zookeeper.children(path, call));
    const found = await find(names && (await read(wait, names)));
    if (found !== undefined) return found;
    await untilChange(wait, path, names ?? []);
  }
}

/** @throws {RecipeError} `foreign-znode` */
async function read(
  { recipe, retry }: Wait,
  names: readonly string[],
): Promise<TransactionState | undefined> {
  const { path, zookeeper } = recipe;
  const isOwn = (name: string) =>
    name === 'sites' || name === 'decision' || name.startsWith(COORDINATOR) || name.startsWith(VOTE);
  if (!names.includes('sites') || !names.every(isOwn))
    throw new RecipeError(
      `${path} is not a transaction: its children are ${names.slice(0, 5).join(', ')}`,
      'foreign-znode',
      path,
    );
  const [own, sites] = await Promise.all(
    [path, `${path}/sites`].map((each) => retry((call) => zookeeper.read(each, call))),
  );
  return own && sites && { names, data: own.data, sites: sites.data.toString('utf8').split('\n') };
}

/** Whether any party may decide: it is decided already, or the coordinator is gone. */
const isDue = ({ names }: TransactionState) =>
  names.includes('decision') || !names.some((name) => name.startsWith(COORDINATOR));

/** Decides by the votes there are, unless it is decided. Resolves to the decision. */
async function decide(time: Wait, state: TransactionState): Promise<TransactionOutcome> {
  const { recipe } = time;
  const path = `${recipe.path}/decision`;
  if (!state.names.includes('decision')) await write(time, path, (await verdict(time, state)) ?? 'abort');
  const outcome = await wordAt(time, path);
  if (outcome === undefined) throw removed(recipe);
  return outcome;
}

/** What the votes come to; undefined where it takes more of them. */
async function verdict(time: Wait, { sites }: TransactionState): Promise<TransactionOutcome | undefined> {
  const votes = await Promise.all(sites.map((site) => wordAt(time, `${time.recipe.path}/${VOTE}${site}`)));
  if (votes.includes('abort')) return 'abort';
  return votes.includes(undefined) ? undefined : 'commit';
}

/**
 * Writes a word that stays; one that is there already does, too: the promise of this process, or of its
 * forerunner.
 */
const write = ({ recipe, retry }: Wait, path: string, word: TransactionOutcome) =>
  retry((call) => recipe.zookeeper.create(path, word, 'persistent', call)).catch(
    ignoring('node-exists', 'no-node'),
  );

/** @throws {RecipeError} `damaged` */
async function wordAt({ recipe, retry }: Wait, path: string): Promise<TransactionOutcome | undefined> {
  const znode = await retry((call) => recipe.zookeeper.read(path, call));
  const word = znode?.data.toString('utf8');
  if (word === undefined || isOutcome(word)) return word;
  throw new RecipeError(
    `${path}: expected "commit" or "abort", found ${JSON.stringify(word.slice(0, 40))}`,
    'damaged',
    path,
  );
}

const isOutcome = (word: unknown): word is TransactionOutcome => word === 'commit' || word === 'abort';

const removed = ({ path }: Recipe) =>
  new RecipeError(`${path} was removed before its outcome was known here`, 'outcome-unknown', path);

/** @throws {ConfigError} */
const SITES = kind('an array of at least one site', (value) => Array.isArray(value) && value.length > 0);

function checkSites(sites: readonly string[]): readonly string[] {
  for (const site of sites) checkZnodeName(site, 'sites');
  const twice = sites.find((site, at) => sites.indexOf(site) < at);
  if (twice !== undefined) throw new ConfigError('sites', twice, 'each site once');
  return [...sites].sort();
}
