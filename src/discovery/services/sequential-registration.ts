import { concurrently } from '../../lease/concurrently.js';
import { parentOf } from '../../zookeeper/znode-path.js';
import type { Znode } from '../../zookeeper/zookeeper.js';
import { isFault } from '../../zookeeper/zookeeper-error.js';
import type { ReconcileCall } from '../reconcile-loop.js';
import { catchUp, isNotApplied, OwnData, type PlaceContext, type RegistrationPlace, type Wish } from './registration-place.js';

/** The znode that is ours. Its transaction is learned by reading it: once the parent was away, a number may come again. */
interface Own {
  readonly path: string;
  readonly sessionId: string;
  readonly createdZxid: bigint | undefined;
}

/** How many znodes are read at a time when ours is searched for. */
const READS_AT_ONCE = 64;
/** How many of one registration are remembered whose making was not answered. */
const MOST_LOST = 16;
/** What the servers put behind the name: ten digits, or a sign and more or less so many once they have counted too far. */
const NUMBER = /^(?:\d{10}|-\d{9,10})$/;

/** The place of an instance whose znode the servers number: it has the number to itself, and nobody is ever in the way. */
export class NumberedPlace implements RegistrationPlace {
  readonly blockedBy = undefined;
  readonly pauseMs = undefined;
  #own: Own | undefined;
  /** The data of those that may have been made in a session, or still be: the answers were lost. */
  #lost: { readonly sessionId: string; readonly data: Set<string> } | undefined;
  readonly #data = new OwnData();

  constructor(
    /** The path without the number. */
    private readonly prefix: string,
    private readonly context: PlaceContext,
  ) {}

  get path(): string | undefined {
    return this.#own?.path;
  }

  suits({ path, mode }: Wish): boolean {
    return path === this.prefix && mode === 'ephemeral-sequential';
  }

  claim(): void {
    // There is nobody to take it from.
  }

  async establish(wish: Wish, call: ReconcileCall): Promise<boolean> {
    const { zookeeper, guard, emit } = this.context;
    await this.#find(call);
    const own = this.#own;
    if (own === undefined) return this.#make(wish, call);
    const znode = await this.#read(own, call);
    if (znode === undefined) {
      this.#own = undefined;
      await this.#make(wish, call);
      if (own.sessionId === call.sessionId) emit({ type: 'restored', path: own.path, problem: 'was removed: it has another number now' });
      return false;
    }
    if (own.sessionId !== call.sessionId) {
      // In whose name it stands until the servers have ended that session: the instance would be found twice.
      if (await zookeeper.remove(own.path, undefined, call)) this.#own = undefined;
      return false;
    }
    const text = znode.data.toString('utf8');
    if (text === wish.data) {
      this.#data.confirm(text);
      return true;
    }
    guard.check(own.path);
    const isOthers = !this.#data.includes(text);
    this.#data.attempt(wish.data);
    try {
      await zookeeper.setData(own.path, wish.data, znode.stat.version, call);
    } catch (error) {
      if (isFault(error, 'bad-version', 'no-node')) return false;
      throw error;
    }
    if (isOthers) emit({ type: 'restored', path: own.path, problem: 'was overwritten' });
    return false;
  }

  async clear(call: ReconcileCall): Promise<boolean> {
    await this.#find(call);
    const own = this.#own;
    if (own === undefined) return true;
    if ((await this.#read(own, call)) !== undefined) await this.context.zookeeper.remove(own.path, undefined, call);
    this.#own = undefined;
    return true;
  }

  expects(znode: Znode | undefined, wish: Wish, sessionId: string | undefined): boolean {
    const own = this.#own;
    return (
      own !== undefined &&
      own.createdZxid !== undefined &&
      own.createdZxid === znode?.stat.createdZxid &&
      own.sessionId === sessionId &&
      znode.data.toString('utf8') === wish.data
    );
  }

  /** Our znode; undefined when it has gone, or another has its number. */
  async #read(own: Own, call: ReconcileCall): Promise<Znode | undefined> {
    const znode = await this.context.zookeeper.read(own.path, call);
    if (znode === undefined) return undefined;
    const { createdZxid, owner } = znode.stat;
    if (own.createdZxid !== undefined) return createdZxid === own.createdZxid ? znode : undefined;
    if (owner !== own.sessionId) return undefined;
    this.#own = { ...own, createdZxid };
    return znode;
  }

  async #make({ data, mode }: Wish, call: ReconcileCall): Promise<boolean> {
    const { zookeeper, guard } = this.context;
    const { sessionId } = call;
    guard.check(this.prefix);
    this.#data.attempt(data);
    try {
      const path = await zookeeper.createWithParents(this.prefix, data, mode, call);
      this.#own = { path, sessionId, createdZxid: undefined };
    } catch (error) {
      // Made again at once it might stand there twice, under two numbers.
      if (!isNotApplied(error)) this.#lose(data, sessionId);
      throw error;
    }
    return false;
  }

  #lose(data: string, sessionId: string): void {
    if (this.#lost?.sessionId !== sessionId) this.#lost = { sessionId, data: new Set() };
    const [oldest] = this.#lost.data;
    if (this.#lost.data.size >= MOST_LOST && oldest !== undefined) this.#lost.data.delete(oldest);
    this.#lost.data.add(data);
  }

  /**
   * Looks for znodes whose making was not answered, among all those of the name: one is ours then, the others are removed. Those of an earlier
   * session have gone with it. In this one it is looked again every time: what was sent over a connection that broke may still arrive.
   */
  async #find(call: ReconcileCall): Promise<void> {
    const lost = this.#lost;
    if (lost === undefined) return;
    if (lost.sessionId !== call.sessionId) {
      this.#lost = undefined;
      return;
    }
    const { zookeeper } = this.context;
    const parent = parentOf(this.prefix) ?? '/';
    const name = this.prefix.slice(this.prefix.lastIndexOf('/') + 1);
    await catchUp(zookeeper, parent, call);
    const names = (await zookeeper.children(parent, call)) ?? [];
    const numbered = names.filter((each) => each.startsWith(name) && NUMBER.test(each.slice(name.length)));
    await concurrently(numbered, READS_AT_ONCE, async (each) => {
      const path = `${parent === '/' ? '' : parent}/${each}`;
      const znode = path === this.#own?.path ? undefined : await this.#readable(path, call);
      if (znode?.stat.owner !== lost.sessionId) return;
      const isLost = lost.data.has(znode.data.toString('utf8'));
      if (isLost && this.#own === undefined) this.#own = { path, sessionId: lost.sessionId, createdZxid: znode.stat.createdZxid };
      // Overwritten by somebody, it cannot be told from that of another registrant in this session, who would make his again.
      else if (isLost || znode.stat.version > 0) await zookeeper.remove(path, znode.stat.version, call);
    });
  }

  /** Ours can be read; what cannot is another's. */
  async #readable(path: string, call: ReconcileCall): Promise<Znode | undefined> {
    try {
      return await this.context.zookeeper.read(path, call);
    } catch (error) {
      if (isFault(error, 'no-auth')) return undefined;
      throw error;
    }
  }
}
