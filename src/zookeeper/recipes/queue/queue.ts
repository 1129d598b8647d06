import { anySignal } from '../../../core/base/abort.js';
import { checkArguments, checked, DATA, listOf, oneOf } from '../../../core/base/arguments.js';
import { ConfigError } from '../../../core/base/errors.js';
import { catchUp } from '../../client/retry.js';
import { isFault, isUnknown, LARGEST_DATA, type ZooKeeper } from '../../client/zookeeper.js';
import {
  outcomeUnknown,
  type Recipe,
  RecipeError,
  type RecipeOptions,
  recipeOn,
  type WaitOptions,
} from '../recipe.js';
import { inTime, untilChange, type Wait, withCallTimeout, writeOnce } from '../waiting.js';
import { decodeItems, encodeItems, type OnDamaged, reportDamaged } from './queue-items.js';
import { type Claim, claimItem, type TakenItem } from './taken-item.js';

export interface QueueOptions extends RecipeOptions {
  /** Curator's SimpleDistributedQueue, which is ZooKeeper's own recipe, or its DistributedQueue. */
  readonly format: 'simple' | 'distributed';
  /**
   * Where takers lock items, the same for all takers, of a `distributed` queue: each item is had at least
   * once then, and else at most once.
   *
   * @default none
   */
  readonly lockPath?: string | undefined;
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Receives each znode that is not of the format; it has been removed.
   * @default `take` rejects once for each, as `damaged`
   */
  readonly onDamaged?: OnDamaged | undefined;
}

/**
 * A queue, in the order in which the servers numbered the items. Each taker that waits has one watch on all
 * items, as Curator's have: the more takers wait, the more of them are woken in vain.
 */
export interface Queue<T> extends AsyncIterable<T>, AsyncDisposable {
  /**
   * Puts an item at the end. Gives up after 5 s by default, and does not try twice.
   *
   * @throws {ConfigError} it is too large @throws {RecipeError} `outcome-unknown`: the reply was lost, and it
   * may be in the queue
   * @throws {ZooKeeperError} no connection in time, access denied, client closed @throws
   * {WaitTimeoutError} @throws `signal.reason`
   */
  put(item: string | Uint8Array, options?: WaitOptions): Promise<void>;
  /** The same for several, all or nothing, which together make one request. */
  putMany(items: readonly (string | Uint8Array)[], options?: WaitOptions): Promise<void>;
  /**
   * Takes the first item. Without a lock path an item that is being removed when the time is up is waited
   * for, 5 s at most, and given out.
   *
   * @throws {WaitTimeoutError} there was none for the whole time, or with `timeoutMs: 0` is none now
   * @throws {RecipeError} `damaged`; `outcome-unknown` where an item was removed, and whether by this taker
   * is not known: it is not given out
   * @throws {ZooKeeperError} no connection in time, access denied, client closed @throws `signal.reason`
   */
  take(options?: WaitOptions): Promise<T>;
  /**
   * Puts back at the end what was taken with another item, in one znode, and was not handed out. An iteration
   * that ends does so too.
   *
   * @throws as {@link put}
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A queue whose items are handed to one taker each. `for await (const item of queue(…))` takes until `signal`
 * aborts; with a `lockPath` an item that its body has not acknowledged is put at the end again.
 *
 * @throws {ConfigError} where `path` or `lockPath` is no absolute path below the root, or the queue is
 * `simple` and has a `lockPath`, or they are the same
 */
export function queue(
  zookeeper: ZooKeeper,
  path: string,
  options: QueueOptions & { readonly lockPath: string },
): Queue<TakenItem>;
export function queue(
  zookeeper: ZooKeeper,
  path: string,
  options: QueueOptions & { readonly lockPath?: undefined },
): Queue<Buffer>;
export function queue(zookeeper: ZooKeeper, path: string, options: QueueOptions): Queue<Buffer | TakenItem> {
  const recipe = recipeOn(zookeeper, path, checked(options), { format: oneOf(...Object.keys(NAMES)) });
  const { format, lockPath } = options;
  if (lockPath === undefined)
    return new ZnodeQueue(recipe, options, async (name, wait) => {
      const items = await takeItems(wait, options, name);
      return items.map((item) => ({ item, isHeld: async () => true }));
    });
  if (format === 'simple')
    throw new ConfigError(
      'lockPath',
      lockPath,
      'none for a simple queue, whose other takers would not obey it',
    );
  if (lockPath === path)
    throw new ConfigError('lockPath', lockPath, 'another path: every item would be its own lock');
  const locks = recipeOn(zookeeper, lockPath, options);
  return new ZnodeQueue<Buffer | TakenItem>(recipe, options, (name, wait) =>
    claimItem(wait, locks, name, options.onDamaged),
  );
}

/** How a queue's znodes are named. */
const NAMES: Readonly<Record<QueueOptions['format'], string>> = { simple: 'qn-', distributed: 'queue-' };

/** How many items in succession may have been taken by others before the list is read again. */
const MAX_MISSES = 8;

class ZnodeQueue<T extends Buffer | TakenItem> implements Queue<T> {
  readonly #prefix: string;
  /** What there is to take, as last listed. */
  #names: string[] = [];
  #misses = 0;
  /** A znode may hold several. */
  readonly #taken: Claim<T>[] = [];

  /** @param takeZnode the items of a znode, none where another taker has it */
  constructor(
    private readonly recipe: Recipe,
    private readonly options: QueueOptions,
    private readonly takeZnode: (name: string, wait: Wait) => Promise<Claim<T>[]>,
  ) {
    this.#prefix = NAMES[options.format];
  }

  put(item: string | Uint8Array, options?: WaitOptions): Promise<void> {
    return this.putMany([item], options);
  }

  async putMany(items: readonly (string | Uint8Array)[], options?: WaitOptions): Promise<void> {
    const { zookeeper, path } = this.recipe;
    checkArguments({ items }, { items: listOf(DATA) });
    const operations = items.map((item) => {
      const bytes = Buffer.from(item as Uint8Array);
      const data = this.options.format === 'simple' ? bytes : encodeItems([bytes]);
      return {
        type: 'create',
        path: `${path}/${this.#prefix}`,
        data,
        mode: 'persistent-sequential',
      } as const;
    });
    const bytes = operations.reduce((sum, { data }) => sum + data.length, 0);
    if (bytes > LARGEST_DATA)
      throw new ConfigError(
        'item',
        bytes,
        `at most ${LARGEST_DATA} bytes as they are stored, the servers' limit`,
      );
    await inTime(this.recipe, withCallTimeout(options), 'took no item', async ({ signal }) => {
      for (;;) {
        try {
          return await zookeeper.multi(operations, { signal });
        } catch (error) {
          if (isUnknown(error)) throw outcomeUnknown(path, `whether ${path} has got what was put`, error);
          if (!isFault(error, 'no-node')) throw error;
        }
        await zookeeper.ensurePath(path, { signal });
      }
    });
  }

  take(options: WaitOptions = {}): Promise<T> {
    return inTime(this.recipe, options, 'had no item', async (wait) => {
      for (;;) {
        const taken = this.#taken.shift();
        if (taken !== undefined) {
          if (await this.#isHeld(taken, wait)) return taken.item;
          continue;
        }
        const name = this.#names.shift();
        if (name === undefined) await this.#list(wait);
        else await this.#takeZnode(name, wait);
      }
    });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    const { signal } = this.options;
    try {
      yield* this.#items(signal);
    } finally {
      await this[Symbol.asyncDispose]();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (let left = this.#taken.shift(); left; left = this.#taken.shift()) {
      try {
        await this.#putBack(left);
      } catch (error) {
        // It stays for another call, behind the others, unless it may be in the queue by now.
        if (!(error instanceof RecipeError)) this.#taken.push(left);
        throw error;
      }
    }
  }

  /** Whether it may be handed out; puts it back if not. */
  async #isHeld(taken: Claim<T>, wait: Wait): Promise<boolean> {
    let isHeld = false;
    try {
      isHeld = await taken.isHeld(wait);
      return isHeld;
    } finally {
      if (!isHeld) void this.#putBack(taken);
    }
  }

  async #putBack({ item }: Claim<T>): Promise<void> {
    await (Buffer.isBuffer(item) ? this.put(item) : item[Symbol.asyncDispose]());
  }

  async *#items(signal: AbortSignal | undefined): AsyncGenerator<T, void> {
    while (!signal?.aborted) {
      const taken = await this.take({ signal }).catch((error: unknown) => {
        if (!signal?.aborted || error !== signal.reason) throw error;
      });
      if (taken === undefined) return;
      try {
        yield taken;
      } finally {
        if (!Buffer.isBuffer(taken)) await taken[Symbol.asyncDispose]();
      }
    }
  }

  async #takeZnode(name: string, wait: Wait): Promise<void> {
    const taken = await this.takeZnode(name, wait);
    this.#taken.push(...taken);
    this.#misses = taken.length > 0 ? 0 : this.#misses + 1;
    if (this.#misses % MAX_MISSES === 0 && taken.length === 0) this.#names = [];
  }

  /** Waits until there are items that no other taker has locked. */
  async #list(wait: Wait): Promise<void> {
    const { recipe } = this;
    const { lockPath } = this.options;
    // A server that lags behind may not show the items yet. A taker that waits sees them later.
    if (wait.isTry) await wait.retry((call) => catchUp(recipe.zookeeper, recipe.path, call));
    const list = async (path: string) =>
      (await wait.retry((call) => recipe.zookeeper.children(path, call))) ?? [];
    const [names, locked] = await Promise.all([
      list(recipe.path),
      lockPath === undefined ? [] : list(lockPath),
    ]);
    const others = new Set(locked);
    this.#names = names.filter((name) => name.startsWith(this.#prefix) && !others.has(name)).sort();
    if (this.#names.length > 0) return;
    if (wait.isTry) throw wait.late();
    const over = new AbortController();
    const { signal, release } = anySignal(wait.signal, over.signal);
    const own = { ...wait, signal };
    try {
      // That a taker has died shows only among the locks.
      await Promise.race([
        untilChange(own, recipe.path, names),
        ...(lockPath === undefined ? [] : [untilChange(own, lockPath, locked)]),
      ]);
    } finally {
      over.abort();
      release();
    }
  }
}

/** At most once: what is removed is had. */
async function takeItems(
  { recipe, retry }: Wait,
  { format, onDamaged }: QueueOptions,
  name: string,
): Promise<Buffer[]> {
  const { zookeeper } = recipe;
  const path = `${recipe.path}/${name}`;
  const znode = await retry((call) => zookeeper.read(path, call));
  if (znode === undefined) return [];
  // Not given up with the wait: what has been removed has to be handed out.
  const { value, error, mayBeDone } = await inTime(
    recipe,
    withCallTimeout(),
    'could not be changed',
    ({ retry: own }) => writeOnce(own, (call) => zookeeper.remove(path, znode.stat.version, call)),
  );
  if (mayBeDone && value !== true)
    throw outcomeUnknown(path, `whether this taker has removed ${path}`, error);
  if (isFault(error, 'bad-version')) return [];
  if (error !== undefined) throw error;
  if (!value) return [];
  return format === 'simple'
    ? [znode.data]
    : (decodeItems(znode.data) ?? reportDamaged(path, znode.data, onDamaged));
}
