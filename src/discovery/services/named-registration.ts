import type { Znode } from '../../zookeeper/zookeeper.js';
import { isFault } from '../../zookeeper/zookeeper-error.js';
import type { ReconcileCall } from '../reconcile-loop.js';
import { catchUp, isNotApplied, OwnData, ownerOf, type PlaceContext, type RegistrationPlace, type Wish } from './registration-place.js';
import { replacementVersion, replacing } from './service-directory.js';

/** The znode that is known to be ours, by the transaction that made it. */
interface Own {
  readonly createdZxid: bigint;
  readonly owner: string | undefined;
}

/** A znode that we have made, or may have: its number is learned by reading it. */
interface Made {
  readonly data: string;
  readonly owner: string | undefined;
  /** Of the data, as long as nobody changes them. */
  readonly version: number;
  /** The claim that it makes good. */
  readonly claim: number;
  /** Whether the server said so. */
  readonly certain: boolean;
}

/**
 * For how long a place that became empty is left to others, in milliseconds: at least, and by chance so much longer. Curator takes a place by
 * removing what stands there and creating its own, twice at the most: whoever were quicker each time would keep it out.
 */
const LEAVE_EMPTY_MS = { least: 100, more: 200 };

/**
 * The place of an instance that has its znode's name to itself.
 *
 * Whose a znode is says the transaction that made it, since two registrants may share a session. The last one to register has the place: it
 * replaces what stands there, once; the others leave it alone from then on, so that they never fight over it. When its znode is removed, ours
 * or the one that was in the way, it leaves the place empty for a moment: a registrant of another kind may just be taking it.
 *
 * A znode whose number is not known yet is taken for ours by its session, its data and their never having been changed. Not guaranteed: that a
 * persistent one is recognised whose data somebody changes before our first look at it. Where it is still wanted, it is replaced if its
 * making was answered, and left alone if not; where it is not wanted any more, it is left, and stays until somebody removes it.
 */
export class NamedPlace implements RegistrationPlace {
  #blockedBy: string | undefined;
  /** How many claims there have been, and how many of them are made good. */
  #claimed = 1;
  #fulfilled = 0;
  #own: Own | undefined;
  #made: Made | undefined;
  readonly #data = new OwnData();
  /** When a place that became empty may be taken again, on the monotonic clock. */
  #emptyUntil: number | undefined;
  #pauseMs: number | undefined;
  /** Who was reported to be in the way, so that it is done once. */
  #reported: bigint | undefined;

  constructor(
    readonly path: string,
    private readonly context: PlaceContext,
  ) {}

  get blockedBy(): string | undefined {
    return this.#blockedBy;
  }

  get pauseMs(): number | undefined {
    return this.#pauseMs;
  }

  suits({ path, mode }: Wish): boolean {
    return path === this.path && mode !== 'ephemeral-sequential';
  }

  claim(): void {
    this.#claimed += 1;
  }

  async establish(wish: Wish, call: ReconcileCall): Promise<boolean> {
    // One that is made from here on goes with a later wish, and outlives what is done for this one.
    const claim = this.#claimed;
    const znode = await this.#look(call);
    this.#pauseMs = this.#pauseBefore(znode, ownerOf(wish, call.sessionId));
    if (this.#pauseMs !== undefined) return true;
    if (znode === undefined) return this.#make(wish, claim, call);
    const { createdZxid, owner } = znode.stat;
    const isOwn = createdZxid === this.#own?.createdZxid;
    if (isOwn && owner === ownerOf(wish, call.sessionId)) {
      this.#fulfil(claim);
      this.#blockedBy = undefined;
      if (znode.data.toString('utf8') !== wish.data) return this.#overwrite(znode, wish, call);
      this.#data.confirm(wish.data);
      return true;
    }
    // Our own may be of another type, or of an earlier session, in whose name it stands until the servers have ended it.
    if (isOwn || this.#claims) return this.#replace(znode, wish, claim, call);
    this.#yield(znode);
    return true;
  }

  async clear(call: ReconcileCall): Promise<boolean> {
    const znode = await this.#look(call);
    if (znode === undefined || !this.#isOurs(znode)) return true;
    try {
      await this.context.zookeeper.remove(this.path, znode.stat.version, call);
      return true;
    } catch (error) {
      if (isFault(error, 'bad-version')) return false;
      throw error;
    }
  }

  expects(znode: Znode | undefined, wish: Wish, sessionId: string | undefined): boolean {
    if (znode === undefined || sessionId === undefined) return false;
    const { createdZxid, owner } = znode.stat;
    if (this.#blockedBy !== undefined && createdZxid === this.#reported) return true;
    return createdZxid === this.#own?.createdZxid && owner === ownerOf(wish, sessionId) && znode.data.toString('utf8') === wish.data;
  }

  get #claims(): boolean {
    return this.#claimed > this.#fulfilled;
  }

  #fulfil(claim: number): void {
    this.#fulfilled = Math.max(this.#fulfilled, claim);
  }

  /** What stands there. No answer is outstanding then: what may have been made either stands there, or is gone, or will never be. */
  async #look(call: ReconcileCall): Promise<Znode | undefined> {
    const { zookeeper } = this.context;
    if (this.#made?.certain === false) await catchUp(zookeeper, this.path, call);
    const znode = await zookeeper.read(this.path, call);
    this.#recognise(znode);
    return znode;
  }

  /** Finds out whether what stands there is what we have made, or may have. */
  #recognise(znode: Znode | undefined): void {
    const made = this.#made;
    if (made === undefined || znode === undefined) return;
    const { createdZxid, owner, version } = znode.stat;
    // The one before still stands, so none was made in its place.
    if (createdZxid === this.#own?.createdZxid) this.#made = undefined;
    else if (owner !== made.owner) return;
    else if (version === made.version && znode.data.toString('utf8') === made.data) {
      this.#made = undefined;
      this.#own = { createdZxid, owner };
      this.#fulfil(made.claim);
    } else if (version > made.version && (made.certain || owner !== undefined)) {
      // Somebody was quicker than our look: ours overwritten, or another's? A new one in its place can be told.
      this.#fulfilled = this.#claimed - 1;
    }
  }

  /**
   * Whether it may be removed. What was made in this session and overwritten before our first look may be that of another registrant in it: he
   * will make his again. A persistent one in that case is left, since nobody may be there to do so.
   */
  #isOurs({ stat: { createdZxid, owner, version } }: Znode): boolean {
    return createdZxid === this.#own?.createdZxid || (owner !== undefined && owner === this.#made?.owner && version > this.#made.version);
  }

  /** How long to leave the place to others yet, where one of them has just made it empty. */
  #pauseBefore(znode: Znode | undefined, owner: string | undefined): number | undefined {
    const becameEmpty = znode === undefined && !this.#claims && (this.#blockedBy !== undefined || this.#wasRemoved(owner));
    if (!becameEmpty) {
      this.#emptyUntil = undefined;
      return undefined;
    }
    const { clock, random } = this.context;
    const now = clock.monotonic();
    this.#emptyUntil ??= now + LEAVE_EMPTY_MS.least + random.next() * LEAVE_EMPTY_MS.more;
    return now < this.#emptyUntil ? this.#emptyUntil - now : undefined;
  }

  /** Whether one of ours stood there, where nothing stands any more, and did not go with its session. */
  #wasRemoved(owner: string | undefined): boolean {
    const last = this.#made?.certain === true ? this.#made : this.#own;
    return last !== undefined && (last.owner === undefined || last.owner === owner);
  }

  async #make(wish: Wish, claim: number, call: ReconcileCall): Promise<boolean> {
    const { zookeeper, emit } = this.context;
    const owner = ownerOf(wish, call.sessionId);
    const removed = this.#wasRemoved(owner);
    const made = await this.#write(wish, { owner, version: 0, claim }, () =>
      zookeeper.createWithParents(this.path, wish.data, wish.mode, call),
    );
    if (made && removed) emit({ type: 'restored', path: this.path, problem: 'was removed' });
    return false;
  }

  async #replace(znode: Znode, wish: Wish, claim: number, call: ReconcileCall): Promise<boolean> {
    const owner = ownerOf(wish, call.sessionId);
    const operations = replacing(this.path, znode.stat.version, wish.data, wish.mode);
    await this.#write(wish, { owner, version: replacementVersion(znode.stat.version), claim }, () =>
      this.context.zookeeper.multi(operations, call),
    );
    return false;
  }

  /** Makes a znode of ours. It has to be looked at afterwards in any case. */
  async #write({ data }: Wish, by: Omit<Made, 'data' | 'certain'>, write: () => Promise<unknown>): Promise<boolean> {
    this.context.guard.check(this.path);
    const before = this.#made;
    this.#made = { ...by, data, certain: false };
    this.#data.attempt(data);
    try {
      await write();
    } catch (error) {
      // Somebody was quicker, maybe to overwrite the one before.
      if (isNotApplied(error)) this.#made = before;
      if (isFault(error, 'node-exists', 'no-node', 'bad-version')) return false;
      throw error;
    }
    this.#made = { ...by, data, certain: true };
    this.#own = undefined;
    this.#fulfil(by.claim);
    this.#blockedBy = undefined;
    return true;
  }

  /** Puts the data right of a znode that is ours. */
  async #overwrite(znode: Znode, wish: Wish, call: ReconcileCall): Promise<boolean> {
    const { zookeeper, guard, emit } = this.context;
    guard.check(this.path);
    const isOthers = !this.#data.includes(znode.data.toString('utf8'));
    this.#data.attempt(wish.data);
    try {
      await zookeeper.setData(this.path, wish.data, znode.stat.version, call);
    } catch (error) {
      if (isFault(error, 'bad-version', 'no-node')) return false;
      throw error;
    }
    if (isOthers) emit({ type: 'restored', path: this.path, problem: 'was overwritten' });
    return false;
  }

  /** Leaves the znode of another registrant alone. */
  #yield({ stat: { createdZxid, owner } }: Znode): void {
    this.#own = undefined;
    this.#made = undefined;
    this.#blockedBy = `${this.path} is registered by somebody else${owner === undefined ? '' : `, in session ${owner}`}`;
    if (this.#reported === createdZxid) return;
    this.#reported = createdZxid;
    this.context.emit({ type: 'superseded', path: this.path, by: owner });
  }
}
