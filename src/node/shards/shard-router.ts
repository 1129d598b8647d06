import { checked, checkKnown } from '../../core/base/arguments.js';
import type { Clock, RandomSource } from '../../core/base/clock.js';
import { StoreUnusableError } from '../../core/base/errors.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import { whileStoreIsBusy } from '../../core/lease/session/store-retry.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import type { LeaseStore } from '../../core/store/lease-store.js';
import { ACCESS, checkStore, type StoreAccess } from '../../core/store/stores.js';
import { openedStore, REQUEST_TIMEOUT_MS } from '../runtime/opened-store.js';
import { decodeMap, SHARDS_KEY, type ShardMap } from './shard-map.js';
import { type ShardKey, shardOf } from './shard-of.js';

/** How to reach the map of shards. */
export interface ShardRouterOptions extends StoreAccess {
  /** The store of the cluster: its URL, or your own, which is not closed. */
  readonly store: string | LeaseStore;
  /** How often the map is read, in milliseconds. @default 5000 */
  readonly refreshMs?: number | undefined;
  /** @default the system's */
  readonly clock?: Clock | undefined;
  /** @default the system's */
  readonly random?: RandomSource | undefined;
}

/** Where a shard is run. */
export interface ShardRoute {
  readonly shard: number;
  /** The owner's fencing token. */
  readonly token: number;
  readonly nodeId: number;
  /** The version of the owner's lease. */
  readonly version: number;
  /** Undefined for an owner that did not give one. */
  readonly address: string | undefined;
}

/**
 * The owners of all shards, as they were at the last read: the receiver of a request asks `owns()`, and
 * refuses what it does not own, for example with 421. Then `refresh()` and try again.
 */
export interface ShardRouter extends AsyncDisposable {
  readonly count: number;
  /** The owner of a key's shard; undefined while the shard has none. */
  nodeFor(key: ShardKey): ShardRoute | undefined;
  /** Reads the map now. @throws {StoreError}, {LeaseUnreadableError} */
  refresh(): Promise<void>;
}

const NAMES = ['store', ...Object.keys(ACCESS), 'refreshMs', 'clock', 'random'];

/**
 * Routes keys to the nodes that own their shards, without a lease.
 *
 * @throws {StoreUnusableError} when the store has no shards yet
 * @throws {StoreError}, {LeaseUnreadableError}
 */
export async function shardRouter(options: ShardRouterOptions): Promise<ShardRouter> {
  checkKnown(options, NAMES);
  checked(options, ACCESS);
  checkStore(options.store, 'store');
  const { store: given, refreshMs = 5_000, clock = systemClock, random = systemRandom } = options;
  const isOwn = typeof given === 'string';
  const store = isOwn ? await openedStore({ ...options, store: given }, { clock, random }) : given;
  const session = new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
  const ending = new AbortController();
  const read = async (): Promise<ShardMap> => {
    const object = await session.read(SHARDS_KEY, { signal: ending.signal });
    if (object === undefined)
      throw new StoreUnusableError('CLUSTER_MISSING', `${store.url}: there is no ${SHARDS_KEY}`);
    return decodeMap(object.body);
  };
  const close = async () => {
    ending.abort();
    if (isOwn) await store.close();
  };
  try {
    let map = await whileStoreIsBusy({ clock, random })(read);
    const refresh = async () => {
      const now = await read();
      if (now.epoch > map.epoch) map = now;
    };
    // A failure leaves the owners that are known. The sleep ends it.
    const follow = async () => {
      for (;;) {
        await clock.sleep(refreshMs, ending.signal);
        await refresh().catch(() => undefined);
      }
    };
    follow().catch(() => undefined);
    return {
      count: map.shards.length,
      nodeFor: (key) => {
        const shard = shardOf(key, map.shards.length);
        const { owner, token } = map.shards[shard] ?? {};
        if (owner === undefined || token === undefined) return undefined;
        return { shard, token, nodeId: owner.id, version: owner.version, address: owner.address };
      },
      refresh,
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
