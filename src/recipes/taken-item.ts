import { BoundSession } from '../zookeeper/bound-session.js';
import type { MultiOperation } from '../zookeeper/zookeeper.js';
import { isFault } from '../zookeeper/zookeeper-error.js';
import { erase } from './own-znode.js';
import { decodeItems, encodeItems, itemsOf, type OnDamaged } from './queue-items.js';
import { type Recipe, whileAway } from './recipe.js';
import { outcomeUnknown, RecipeError } from './recipe-error.js';
import { CALL_MS, inTime, type Wait, writeOnce } from './waiting.js';

/**
 * An item that no other taker has until it is acknowledged, put back, or this session ends: then it is had again. Where another client has put several
 * items into one znode, what becomes of them is decided together, when the last one has been acknowledged or put back.
 *
 * Disposing of it puts it back unless that was decided before, and never rejects.
 */
export interface TakenItem extends AsyncDisposable {
  readonly data: Buffer;
  /**
   * Removes it from the queue. Later calls share the first one's end.
   *
   * @throws {RecipeError} `not-held`: the session has ended, and it is had again; `outcome-unknown` @throws {ZooKeeperError} @throws {AcquireTimeoutError}
   */
  ack(): Promise<void>;
  /** Puts it at the end of the queue. @throws as {@link TakenItem.ack} */
  requeue(): Promise<void>;
}

/** At least once: locks an item. None where another taker has it, or the session has ended. */
export async function claimItem(
  recipe: Recipe,
  locks: Recipe,
  name: string,
  { signal }: Wait,
  onDamaged: OnDamaged | undefined,
): Promise<TakenItem[]> {
  const { zookeeper, random } = recipe;
  const { sessionId } = await zookeeper.whenConnected({ timeoutMs: Number.POSITIVE_INFINITY, signal });
  const session = new BoundSession(zookeeper, sessionId);
  const lock = `${locks.path}/${name}`;
  // Tells this taker's lock from another one's of the same session.
  const mark = random.hex(16);
  const isOwn = async () => (await whileAway(recipe, undefined, (call) => session.read(lock, call)))?.data.toString() === mark;
  const { error, mayBeDone } = await writeOnce(
    recipe,
    signal,
    (call) => session.createWithParents(lock, mark, 'ephemeral', call),
    whileAway,
  );
  const claim = new Claim(recipe, session, `${recipe.path}/${name}`, lock);
  try {
    if (error !== undefined && !(mayBeDone && isFault(error, 'node-exists') && (await isOwn()))) throw error;
    const znode = await whileAway(recipe, signal, (call) => session.read(claim.path, call));
    const items = znode && decodeItems(znode.data);
    if (items && items.length > 0) return claim.share(items);
    await claim.end([]);
    return znode ? (itemsOf(claim.path, znode.data, onDamaged) as never[]) : [];
  } catch (failure) {
    if (error === undefined) void erase(recipe, session, lock);
    // A write comes first: a server may lag behind what it did for this session over another connection.
    else if (mayBeDone)
      void whileAway(recipe, undefined, (call) => session.ensurePath(locks.path, call))
        .then(async () => (await isOwn()) && erase(recipe, session, lock))
        .catch(() => undefined);
    if (!signal.aborted && isFault(failure, 'node-exists', 'session-expired')) return [];
    throw failure;
  }
}

/** A znode of the queue, and the lock on it. */
class Claim {
  #open = 0;
  readonly #back: Buffer[] = [];

  constructor(
    private readonly recipe: Recipe,
    private readonly session: BoundSession,
    readonly path: string,
    private readonly lock: string,
  ) {}

  share(items: readonly Buffer[]): TakenItem[] {
    this.#open = items.length;
    return items.map((data) => {
      let ended: Promise<void> | undefined;
      const end = (back: readonly Buffer[]) => {
        ended ??= this.end(back);
        return ended;
      };
      return {
        data,
        ack: () => end([]),
        requeue: () => end([data]),
        [Symbol.asyncDispose]: () => end([data]).catch(() => undefined),
      };
    });
  }

  /** Removes the znode once all of its items have been decided upon. */
  async end(back: readonly Buffer[]): Promise<void> {
    const { recipe, session, path, lock } = this;
    this.#back.push(...back);
    this.#open -= 1;
    if (this.#open > 0) return;
    const operations: MultiOperation[] = [
      { type: 'remove', path: lock },
      { type: 'remove', path },
    ];
    if (this.#back.length > 0)
      operations.push({ type: 'create', path: `${recipe.path}/queue-`, data: encodeItems(this.#back), mode: 'persistent-sequential' });
    const { error, mayBeDone } = await inTime(recipe, { timeoutMs: CALL_MS }, 'could not be changed', ({ signal }) =>
      writeOnce(recipe, signal, (call) => session.multi(operations, call), whileAway),
    ).catch((failure: unknown) => ({ error: failure, mayBeDone: false }));
    if (error === undefined) return;
    // Where it is gone, another taker's may stand there.
    if (!(isFault(error, 'no-node') && error.path === lock)) void erase(recipe, session, lock);
    // An attempt whose reply was lost has done it, or the item was removed by a client that asks for no lock.
    if (isFault(error, 'no-node') && (mayBeDone || error.path === path)) return;
    if (mayBeDone) throw outcomeUnknown(path, `whether ${path} was removed`, error);
    if (!isFault(error, 'no-node', 'session-expired')) throw error;
    throw new RecipeError(`${path} is not locked any more: another taker may have it`, 'not-held', path, error);
  }
}
