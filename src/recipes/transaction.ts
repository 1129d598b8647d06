import { orAborted, withTimeout } from '../base/abort.js';
import { AcquireTimeoutError, ConfigError } from '../base/errors.js';
import { checkZnodeName, parentOf } from '../zookeeper/znode-path.js';
import type { MultiOperation, ZnodeData, ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault } from '../zookeeper/zookeeper-error.js';
import { erase } from './own-znode.js';
import { type Recipe, type RecipeOptions, recipeOn, type WaitOptions, whileAway } from './recipe.js';
import { RecipeError } from './recipe-error.js';
import { ANSWER_MS, COORDINATOR, isOutcome, TransactionCall, type TransactionOutcome, unless } from './transaction-call.js';

const DEFAULT_TIMEOUT_MS = 60_000;

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
  /** How long to wait, from the call on, before this site decides by the votes there are, in milliseconds. @default no limit */
  readonly timeoutMs?: number | undefined;
}

/**
 * A two-phase commit. All calls throw {@link ConfigError} for bad input, {@link ZooKeeperError} for denied access and a closed client, `signal.reason`, and
 * {@link RecipeError}: `foreign-znode`, `damaged`, or `outcome-unknown` where the transaction was removed, or ZooKeeper stays away past the time-out. A site
 * that does not learn the outcome keeps its promise, and calls again.
 */
export interface Transaction {
  /**
   * Begins the transaction, and resolves to its outcome: `commit` where all sites have voted so; else `abort`, by a vote or the time-out. With the same
   * sites and data it resolves to the same outcome again.
   */
  coordinate(options: CoordinateOptions): Promise<TransactionOutcome>;
  /**
   * Takes part as a site: waits for the transaction, votes, learns the outcome, carries it out and acknowledges that. After a restart it does what is left.
   * Where the coordinator's session has ended, it decides by the votes there are.
   *
   * @param vote promises that the site can commit whatever happens, or refuses. Not asked once a vote stands, nor where it is decided already. Where it
   * throws, `join` does, without a vote
   * @param apply carries out the outcome; after a restart perhaps again
   * @throws {AcquireTimeoutError} no transaction was begun in time
   */
  join(
    options: JoinOptions,
    vote: (data: Buffer) => Promise<TransactionOutcome>,
    apply?: (outcome: TransactionOutcome) => Promise<void>,
  ): Promise<TransactionOutcome>;
  /** Removes the transaction once all that have voted have carried it out. @throws {AcquireTimeoutError} one of them has not, in time */
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
    coordinate: (coordinate) => coordinateOn(recipe, coordinate),
    join: (join, vote, apply) => joinOn(recipe, join, vote, apply),
    forget: (wait) => forgetOn(recipe, wait),
  };
}

async function coordinateOn(
  recipe: Recipe,
  { sites, data = '', timeoutMs = DEFAULT_TIMEOUT_MS, signal }: CoordinateOptions,
): Promise<TransactionOutcome> {
  const { path, random, zookeeper } = recipe;
  const names = checkSites(sites);
  const own = `${path}/${COORDINATOR}${random.hex(8)}`;
  const begin: readonly MultiOperation[] = [
    { type: 'create', path, data, mode: 'shared' },
    { type: 'create', path: `${path}/votes`, data: names.join('\n'), mode: 'shared' },
    { type: 'create', path: own, data: recipe.data, mode: 'ephemeral' },
  ];
  const call = new TransactionCall(recipe, { timeoutMs, signal });
  try {
    return await call.until(async (look) => {
      if (look === undefined) {
        call.checkNotRemoved();
        await call.make((options) => zookeeper.ensurePath(parentOf(path) ?? '/', options));
        await call.make((options) => zookeeper.multi(begin, options)).catch(unless('node-exists'));
        return undefined;
      }
      if (look.sites.join('\n') === names.join('\n') && look.data.equals(Buffer.from(data)))
        return call.outcome(look, async () => (await call.verdict(look)) !== undefined);
      throw new RecipeError(`${path} is another transaction: each one takes a path of its own`, 'foreign-znode', path);
    });
  } finally {
    // Without it the sites decide themselves.
    void erase(recipe, zookeeper, own);
  }
}

async function joinOn(
  recipe: Recipe,
  { site, timeoutMs, signal }: JoinOptions,
  vote: Parameters<Transaction['join']>[1],
  apply: Parameters<Transaction['join']>[2],
): Promise<TransactionOutcome> {
  checkZnodeName(site, 'site');
  const { path, clock, zookeeper } = recipe;
  const own = `${path}/votes/${site}`;
  let answer: TransactionOutcome | undefined;
  const call = new TransactionCall(recipe, { timeoutMs, signal });
  const outcome = await call.until(async (look) => {
    if (look === undefined) {
      call.checkNotRemoved();
      if (call.isLate)
        throw new AcquireTimeoutError(`${zookeeper.description}: no transaction was begun at ${path} within ${timeoutMs} ms`);
      return undefined;
    }
    if (!look.sites.includes(site)) throw new ConfigError('site', site, `one of the sites of ${path}: ${look.sites.join(', ')}`);
    return call.outcome(look, async () => {
      if ((await call.read(own)) !== undefined) return false;
      answer ??= await orAborted(vote(look.data), signal);
      if (!isOutcome(answer)) throw new ConfigError('vote', answer, '"commit" or "abort"');
      // Where one stands by now, it was this process's, or its forerunner's: that is the promise to keep.
      await call.create(own, answer);
      return false;
    });
  });
  await apply?.(outcome);
  const acknowledge = (): Promise<unknown> =>
    whileAway(recipe, undefined, (options) => zookeeper.remove(own, undefined, options)).catch((error: unknown) =>
      isFault(error, 'session-expired') ? acknowledge() : undefined,
    );
  await withTimeout(clock, ANSWER_MS, acknowledge());
  return outcome;
}

async function forgetOn(recipe: Recipe, wait: WaitOptions = {}): Promise<void> {
  const { path, zookeeper } = recipe;
  const call = new TransactionCall(recipe, wait);
  await call.until(async (look) => {
    if (look === undefined) return true;
    const isDecided = look.names.includes('decision');
    const voters = (await call.make((options) => zookeeper.children(`${path}/votes`, options))) ?? [];
    if (isDecided && voters.length === 0) {
      const remove = [...look.names.map((name) => `${path}/${name}`), path].map((each) => ({ type: 'remove', path: each }) as const);
      return call.make((options) => zookeeper.multi(remove, options)).then(() => true, unless('no-node', 'not-empty'));
    }
    if (!call.isLate) return undefined;
    const missing = isDecided ? `not carried out by ${voters.join(', ')}` : 'not decided';
    throw new AcquireTimeoutError(`${zookeeper.description}: ${path} could not be removed in time: ${missing}`);
  });
}

/** @throws {ConfigError} */
function checkSites(sites: readonly string[]): readonly string[] {
  if (sites.length === 0) throw new ConfigError('sites', '', 'at least one site');
  for (const site of sites) checkZnodeName(site, 'sites');
  const twice = sites.find((site, at) => sites.indexOf(site) < at);
  if (twice !== undefined) throw new ConfigError('sites', twice, 'each site once');
  return [...sites].sort();
}
