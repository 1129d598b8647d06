import { ConfigError } from '../../core/base/errors.js';
import { backoffMs, LOST_RACE, type Retry } from '../../core/base/retry.js';
import { catchUp } from '../client/retry.js';
import { isFault, type Znode, type ZooKeeper } from '../client/zookeeper.js';
import { lock } from './lock.js';
import {
  outcomeUnknown,
  type Recipe,
  RecipeError,
  type RecipeOptions,
  recipeOn,
  type WaitOptions,
} from './recipe.js';
import { inTime, type Wait, withCallTimeout, writeOnce } from './waiting.js';

/**
 * A number of 64 bits with its sign, 0 until it is first changed. All methods may be given `timeoutMs`, 5 s
 * by default, and `signal`.
 *
 * A change is made once or not at all. It fails as `outcome-unknown` where its reply was lost, and the
 * present value may be this change or another client's.
 *
 * @throws {WaitTimeoutError} not done in time @throws {ZooKeeperError} no connection in time, access
 * denied, client closed @throws `signal.reason`
 * @throws {RecipeError} `damaged` where the znode holds no such number; changes as `outcome-unknown` too
 */
export interface Counter {
  /** Resolves to the value; 0 where there is no znode. */
  get(options?: WaitOptions): Promise<bigint>;
  /** Resolves to the new value. @throws {ConfigError} where that would not fit */
  add(amount: bigint | number, options?: WaitOptions): Promise<bigint>;
  /** Changes it to `next` where it is `expected`. Resolves to whether it was. */
  compareAndSet(expected: bigint | number, next: bigint | number, options?: WaitOptions): Promise<boolean>;
  /** Changes it whatever it is, also where it is damaged. */
  set(value: bigint | number, options?: WaitOptions): Promise<void>;
}

/** How often a change is tried before it takes the counter's lock. */
const FREE_TRIES = 5;

/**
 * A counter that all clients share: Curator's DistributedAtomicLong, whose promoted mode, a lock on the same
 * path, it uses where others keep changing it. @throws {ConfigError} where `path` is no absolute path below
 * the root
 */
export function counter(zookeeper: ZooKeeper, path: string, options?: RecipeOptions): Counter {
  const recipe = recipeOn(zookeeper, path, options);
  const change = (next: Change, wait: WaitOptions | undefined) =>
    inTime(recipe, withCallTimeout(wait), 'could not be changed', (time) => changed(time, next));
  return {
    get: (wait) =>
      inTime(recipe, withCallTimeout(wait), 'could not be read', async ({ retry }) =>
        longOf(path, await read(recipe, retry)),
      ),
    async add(amount, wait) {
      const added = toLong('amount', amount);
      const next = await change((now) => {
        const sum = longOf(path, now) + added;
        if (sum === BigInt.asIntN(64, sum)) return sum;
        throw new ConfigError(
          'amount',
          added,
          `an amount that keeps ${path}, now ${sum - added}, within 64 bits`,
        );
      }, wait);
      return next ?? 0n;
    },
    async compareAndSet(expected, next, wait) {
      const [from, to] = [toLong('expected', expected), toLong('next', next)];
      return (await change((now) => (longOf(path, now) === from ? to : undefined), wait)) !== undefined;
    },
    async set(value, wait) {
      const next = toLong('value', value);
      await change(() => next, wait);
    },
  };
}

/** The new value, by the znode as it is; undefined where it is to stay as it is. */
type Change = (now: Znode | undefined) => bigint | undefined;

async function changed({ recipe, retry, signal }: Wait, next: Change): Promise<bigint | undefined> {
  const { zookeeper, path, clock, random } = recipe;
  const one = async () => {
    let now = await read(recipe, retry);
    if (next(now) === undefined) {
      // A server may lag behind.
      await retry((call) => catchUp(zookeeper, path, call));
      now = await read(recipe, retry);
    }
    const value = next(now);
    return { value, isDone: value === undefined || (await write(recipe, now, value, retry)) };
  };
  for (let tries = 1; tries <= FREE_TRIES; tries += 1) {
    const { value, isDone } = await one();
    if (isDone) return value;
    await clock.sleep(backoffMs(LOST_RACE, tries, random), signal);
  }
  const promoted = await lock(recipe.zookeeper, recipe.path, recipe).acquire({ signal });
  try {
    for (;;) {
      const { value, isDone } = await one();
      if (isDone) return value;
    }
  } finally {
    // Not waited for: it may take longer than the caller's time.
    void promoted.release();
  }
}

const read = ({ zookeeper, path }: Recipe, retry: Retry) => retry((call) => zookeeper.read(path, call));

/** Writes over what was read, and nothing else: resolves to false where another was first. */
async function write(
  recipe: Recipe,
  before: Znode | undefined,
  value: bigint,
  retry: Retry,
): Promise<boolean> {
  const { zookeeper, path } = recipe;
  const data = toBytes(value);
  const version = before?.stat.version ?? -1;
  const { error, mayBeDone } = await writeOnce<unknown>(retry, (call) =>
    before
      ? zookeeper.setData(path, data, version, call)
      : zookeeper.createWithParents(path, data, 'shared', call),
  );
  if (error === undefined) return true;
  const isOther = isFault(error, 'bad-version', 'node-exists', 'no-node');
  if (!mayBeDone && !isOther) throw error;
  // Every attempt was for the same version: if that one is of another value, no attempt has been carried
  // out.
  const now = mayBeDone && isOther ? await read(recipe, retry) : undefined;
  const isSame = before === undefined || now?.stat.createdZxid === before.stat.createdZxid;
  if (!mayBeDone || (isSame && now?.stat.version === version + 1 && !now.data.equals(data))) return false;
  throw outcomeUnknown(path, `whether ${path} was changed to ${value}`, error);
}

function toLong(name: string, value: bigint | number): bigint {
  if (typeof value === 'bigint' ? value === BigInt.asIntN(64, value) : Number.isSafeInteger(value))
    return BigInt(value);
  throw new ConfigError(name, value, 'a bigint of 64 bits, or a safe integer');
}

/** 8 bytes, big-endian. */
function toBytes(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

/**
 * No znode, and an empty one, which a lock on the path has made, are 0 to Curator as well.
 * @throws {RecipeError} `damaged`
 */
function longOf(path: string, znode: Pick<Znode, 'data'> | undefined): bigint {
  const length = znode?.data.length ?? 0;
  if (znode === undefined || length === 0) return 0n;
  if (length === 8) return znode.data.readBigInt64BE();
  throw new RecipeError(`${path} holds ${length} bytes, where a counter has 8`, 'damaged', path);
}
