import type { ReconcileCall } from '../client/reconcile-loop.js';
import { catchUp } from '../client/retry.js';
import { isNotApplied, type Znode } from '../client/zookeeper.js';
import { ownerOf, RegisteredZnode, type WantedZnode } from './registered-znode.js';
import { replacementVersion, replacing } from './service-directory.js';

/** A znode that we have created, or may have. Its transaction is learned by reading it. */
interface Made {
  readonly data: string;
  readonly owner: string | undefined;
  /** Of the data, unless another client changes them. */
  readonly version: number;
  /** Whether the server said so. */
  readonly certain: boolean;
}

/**
 * How long a path whose znode has gone is left to others, in milliseconds: Curator replaces a znode by
 * removing it and creating its own.
 */
const LEAVE_EMPTY_MS = { min: 100, jitter: 200 };

/**
 * A registration whose znode has a fixed name.
 *
 * Two registrants may share a session, so a znode is identified by the transaction that created it. The last
 * one to register replaces the existing znode, once. Other registrants leave its znode alone, so that they
 * never fight. When the znode is removed, ours or the other's, the path is left empty for a moment: a
 * registrant of another kind may be replacing it.
 *
 * A znode whose transaction is not known yet is taken for ours by its session, its data, and their version.
 * One that was overwritten before our first read is replaced, or removed if none is wanted. Not guaranteed:
 * that a persistent one is recognised in that case. It is replaced only if its creation was answered, and
 * never removed.
 */
export class NamedRegistration extends RegisteredZnode {
  /** Whether nothing was ever tried: what is not ours is read only if it is in the way. */
  #isNew = true;
  /** The last take-over that has not happened yet. */
  #takeOver: symbol | undefined = Symbol();
  #made: Made | undefined;
  /** Until when the path is left to others, on the monotonic clock. */
  #emptyUntil: number | undefined;
  /** The foreign znode that was reported, so that it is done once. */
  #reported: bigint | undefined;

  override takeOver(): void {
    this.#takeOver = Symbol();
  }

  async register(wanted: WantedZnode, call: ReconcileCall): Promise<boolean | number> {
    // One that is asked for from here on outlives this step.
    const takeOver = this.#takeOver;
    const owner = ownerOf(wanted, call.sessionId);
    if (this.#isNew) {
      this.#isNew = false;
      await this.#write(undefined, wanted, owner, call);
      this.#registered(takeOver);
      return true;
    }
    const { znode, whose } = await this.#read(call);
    const pauseMs = this.#pauseBefore(znode, owner);
    if (pauseMs !== undefined) return pauseMs;
    if (znode !== undefined && whose === 'ours' && znode.stat.owner === owner) {
      this.#registered(takeOver);
      return this.correct(znode, wanted, call);
    }
    // Our own may be of another type, or of an earlier session that the servers have not ended yet.
    const isLikelyOurs = whose === 'unsure' && (this.#made?.certain || znode?.stat.owner !== undefined);
    const isReplaced = whose === 'ours' || this.#takeOver !== undefined || isLikelyOurs;
    if (znode !== undefined && !isReplaced) {
      this.#yield(znode);
      return true;
    }
    const isOverwritten = whose === 'unsure' && this.#made?.certain === true;
    await this.#write(znode, wanted, owner, call);
    if (isOverwritten) this.context.emit({ type: 'restored', path: this.path, problem: 'was overwritten' });
    this.#registered(takeOver);
    return true;
  }

  async unregister(call: ReconcileCall): Promise<void> {
    const { znode, whose } = await this.#read(call);
    // A persistent znode that may be another registrant's is left: that registrant may have ended, and would
    // not create it again.
    if (znode && (whose === 'ours' || (whose === 'unsure' && znode.stat.owner !== undefined)))
      await this.context.zookeeper.remove(this.path, znode.stat.version, call);
  }

  override expects(znode: Znode | undefined, wanted: WantedZnode, sessionId: string): boolean {
    const isKnownObstacle =
      this.blockedBy !== undefined && znode !== undefined && znode.stat.createdZxid === this.#reported;
    if (znode !== undefined && this.#made?.certain) this.#recognise(znode);
    return isKnownObstacle || super.expects(znode, wanted, sessionId);
  }

  #registered(takeOver: symbol | undefined) {
    if (this.#takeOver === takeOver) this.#takeOver = undefined;
    this.blockedBy = undefined;
  }

  /** Reads the path, after every write of ours whose reply was lost has been applied or never will be. */
  async #read(
    call: ReconcileCall,
  ): Promise<{ readonly znode: Znode | undefined; readonly whose: 'ours' | 'unsure' | 'foreign' }> {
    const { zookeeper } = this.context;
    if (this.#made?.certain === false) await catchUp(zookeeper, this.path, call);
    const znode = await zookeeper.read(this.path, call);
    return { znode, whose: znode === undefined ? 'foreign' : this.#recognise(znode) };
  }

  /**
   * The owner of the existing znode; `unsure` for one that may be ours, and was overwritten before our first
   * read.
   */
  #recognise({ data, stat: { createdZxid, owner, version } }: Znode): 'ours' | 'unsure' | 'foreign' {
    const made = this.#made;
    // While the earlier znode exists, none was created in its place.
    const isOwn = createdZxid === this.own?.createdZxid;
    const isMade = !isOwn && made !== undefined && owner === made.owner;
    if (isOwn || (isMade && version === made.version && data.toString('utf8') === made.data)) {
      this.own = { path: this.path, owner, createdZxid };
      this.#made = undefined;
      return 'ours';
    }
    return isMade && version > made.version ? 'unsure' : 'foreign';
  }

  /** How much longer the path is left to others, after a znode there has just been removed. */
  #pauseBefore(znode: Znode | undefined, owner: string | undefined): number | undefined {
    const becameEmpty =
      znode === undefined &&
      this.#takeOver === undefined &&
      (this.blockedBy !== undefined || this.#wasRemoved(owner));
    if (!becameEmpty) {
      this.#emptyUntil = undefined;
      return undefined;
    }
    const { clock, random } = this.context;
    const now = clock.monotonic();
    this.#emptyUntil ??= now + LEAVE_EMPTY_MS.min + random.next() * LEAVE_EMPTY_MS.jitter;
    return now < this.#emptyUntil ? this.#emptyUntil - now : undefined;
  }

  /** Whether a znode of ours existed, is gone, and did not end with its session. */
  #wasRemoved(owner: string | undefined) {
    const last = this.#made?.certain === true ? this.#made : this.own;
    return last !== undefined && (last.owner === undefined || last.owner === owner);
  }

  /** Creates our znode, in place of the existing one. @throws {ZooKeeperError} when another write came first */
  async #write(
    znode: Znode | undefined,
    { data, mode }: WantedZnode,
    owner: string | undefined,
    call: ReconcileCall,
  ): Promise<void> {
    const { zookeeper, emit } = this.context;
    const { path } = this;
    const version = znode?.stat.version;
    const isRestored = znode === undefined && this.#wasRemoved(owner);
    this.checkWrite();
    const before = this.#made;
    const made = { data, owner, version: version === undefined ? 0 : replacementVersion(version) };
    this.#made = { ...made, certain: false };
    try {
      if (version === undefined) await zookeeper.createWithParents(path, data, mode, call);
      else await zookeeper.multi(replacing(path, version, data, mode), call);
    } catch (error) {
      // Another write came first, maybe one that has overwritten the znode before.
      if (isNotApplied(error)) this.#made = before;
      throw error;
    }
    this.#made = { ...made, certain: true };
    this.own = undefined;
    if (isRestored) emit({ type: 'restored', path, problem: 'was removed' });
  }

  /** Leaves the znode of another registrant alone. */
  #yield({ stat: { createdZxid, owner } }: Znode) {
    const { path } = this;
    this.own = undefined;
    this.#made = undefined;
    this.blockedBy = `${path} is registered by somebody else${owner === undefined ? '' : `, in session ${owner}`}`;
    if (this.#reported !== createdZxid) this.context.emit({ type: 'superseded', path, by: owner });
    this.#reported = createdZxid;
  }
}
