import { orAborted } from '../../../core/base/abort.js';
import { BoundSession } from '../../client/bound-session.js';
import { whileConnectionIsAway } from '../../client/retry.js';
import { SessionDeadline } from '../../client/session-deadline.js';
import { type CallOptions, isFault, type MultiOperation } from '../../client/zookeeper.js';
import type { Recipe } from '../recipe.js';
import { outcomeUnknown, RecipeError } from '../recipe.js';
import { inTime, type Wait, withCallTimeout, writeOnce } from '../waiting.js';
import { decodeItems, encodeItems, type OnDamaged, reportDamaged } from './queue-items.js';

/**
 * An item that no other taker has until it is acknowledged, put back, or this session ends: then it is had
 * again. Where another client has put several items into one znode, what becomes of them is decided together,
 * when the last one has been acknowledged or put back.
 *
 * Disposing of it puts it back unless that was decided before, and never rejects.
 */
export interface TakenItem extends AsyncDisposable {
  readonly data: Buffer;
  /**
   * Removes it from the queue. Later calls share the first one's end.
   *
   * @throws {RecipeError} `not-held`: the session has ended, and it is had again; `outcome-unknown` @throws
   * {ZooKeeperError} @throws {WaitTimeoutError}
   */
  ack(): Promise<void>;
  /** Puts it at the end of the queue. @throws as {@link TakenItem.ack} */
  requeue(): Promise<void>;
}

/** What is taken and not handed out yet. */
export interface Claim<T> {
  readonly item: T;
  /**
   * Whether no other taker can have it yet. Compares clocks, since this process may have been paused, and asks the
   * servers where the time that they have proven is over.
   */
  isHeld(wait: Wait): Promise<boolean>;
}

/** At least once: locks an item. None where another taker has it, or the session has ended. */
export async function claimItem(
  wait: Wait,
  locks: Recipe,
  name: string,
  onDamaged: OnDamaged | undefined,
): Promise<Claim<TakenItem>[]> {
  const { recipe, signal, retryIn } = wait;
  const { zookeeper, random, clock } = recipe;
  const { sessionId, timeoutMs } = await zookeeper.whenConnected({
    timeoutMs: Number.POSITIVE_INFINITY,
    signal,
  });
  const session = new BoundSession(zookeeper, sessionId);
  const [path, lock] = [`${recipe.path}/${name}`, `${locks.path}/${name}`];
  // Distinguishes this taker's lock from another one's of the same session.
  const mark = random.hex(16);
  const isOwn = async (call?: CallOptions) => (await session.read(lock, call))?.data.toString() === mark;
  // Another taker may have a lock of the same name by now. A write comes first: a server may lag behind what
  // it did for this session over another connection.
  const unlocked = async () => {
    await session.multi([{ type: 'check', path: locks.path }]);
    if (await isOwn()) await session.remove(lock);
  };
  const unlock = () => void whileConnectionIsAway(recipe, session)(unlocked).catch(() => undefined);
  const deadline = new SessionDeadline(timeoutMs, (at) => session.heardBy(at));
  // Reads prove nothing: a server that is cut off still answers them (docs/design/allocation.md, "One holder").
  const isHeld = async (asked: Wait): Promise<boolean> => {
    const { state } = zookeeper;
    if (state.status === 'connected') deadline.limit(state.timeoutMs);
    try {
      for (let isFirst = true; deadline.until <= clock.monotonic(); isFirst = false) {
        if (!isFirst) await clock.sleep(deadline.beatMs, asked.signal);
        const beatAt = clock.monotonic();
        await asked.retryIn(session)((call) => session.multi([{ type: 'check', path: lock }], call));
        deadline.answered(beatAt);
      }
      return true;
    } catch (error) {
      if (isFault(error, 'no-node', 'session-expired')) return false;
      throw error;
    }
  };
  const retry = retryIn(session);
  let sentAt = 0;
  const create = (call: CallOptions) => {
    sentAt = clock.monotonic();
    return session.createWithParents(lock, mark, 'ephemeral', call);
  };
  const { error, mayBeDone } = await writeOnce(retry, create);
  if (error === undefined) deadline.answered(sentAt);
  try {
    if (error !== undefined && !(mayBeDone && isFault(error, 'node-exists') && (await retry(isOwn))))
      throw error;
    const znode = await retry((call) => session.read(path, call));
    if (znode === undefined || !(await isHeld(wait))) {
      unlock();
      return [];
    }
    const items = decodeItems(znode.data);
    const remove = (back: readonly Buffer[]) => removeItem(recipe, session, path, lock, unlock, back);
    if (items && items.length > 0) return share(items, remove).map((item) => ({ item, isHeld }));
    await orAborted(remove([]), signal);
    return items ? [] : reportDamaged(path, znode.data, onDamaged);
  } catch (failure) {
    if (error === undefined || mayBeDone) unlock();
    const isLost =
      isFault(failure, 'node-exists', 'session-expired') ||
      (failure instanceof RecipeError && failure.fault === 'not-held');
    if (!signal?.aborted && isLost) return [];
    throw failure;
  }
}

/** @param remove is called once, with the items to be put back */
function share(items: readonly Buffer[], remove: (back: readonly Buffer[]) => Promise<void>): TakenItem[] {
  let open = items.length;
  const back: Buffer[] = [];
  return items.map((data) => {
    let ended: Promise<void> | undefined;
    const end = (...again: Buffer[]) => {
      if (ended) return ended;
      back.push(...again);
      open -= 1;
      ended = open > 0 ? Promise.resolve() : remove(back);
      return ended;
    };
    return {
      data,
      ack: () => end(),
      requeue: () => end(data),
      [Symbol.asyncDispose]: () => end(data).catch(() => undefined),
    };
  });
}

/** Removes a locked item, puts back what another taker may take, and unlocks it, in one transaction. */
async function removeItem(
  recipe: Recipe,
  session: BoundSession,
  path: string,
  lock: string,
  unlock: () => void,
  back: readonly Buffer[],
): Promise<void> {
  const operations: MultiOperation[] = [lock, path].map((removed) => ({ type: 'remove', path: removed }));
  if (back.length > 0)
    operations.push({
      type: 'create',
      path: `${recipe.path}/queue-`,
      data: encodeItems(back),
      mode: 'persistent-sequential',
    });
  const { error, mayBeDone, exists } = await inTime(
    recipe,
    withCallTimeout(),
    'could not be changed',
    async (wait) => {
      const retry = wait.retryIn(session);
      const written = await writeOnce(retry, (call) => session.multi(operations, call));
      const isUnclear = written.mayBeDone && isFault(written.error, 'no-node');
      const exists = () =>
        retry((call) => session.read(path, call)).then(
          (znode) => znode !== undefined,
          () => undefined,
        );
      return { ...written, exists: isUnclear && (await exists()) };
    },
  ).catch((failure: unknown) => ({ error: failure, mayBeDone: false, exists: true }));
  if (error === undefined) return;
  const gone = isFault(error, 'no-node') ? error.path : undefined;
  unlock();
  // An attempt whose reply was lost has done it, or a client that asks for no lock has removed the item.
  if (gone === path || (gone === lock && mayBeDone && exists === false)) return;
  if (mayBeDone && (gone !== lock || exists === undefined))
    throw outcomeUnknown(path, `whether ${path} was removed`, error);
  if (gone !== lock && !isFault(error, 'session-expired')) throw error;
  throw new RecipeError(`${path} is not locked any more: another taker may have it`, 'not-held', path, error);
}
