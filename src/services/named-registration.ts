import type { ReconcileCall } from '../zookeeper/reconcile-loop.js';
import type { Znode } from '../zookeeper/zookeeper.js';
import { isFault } from '../zookeeper/zookeeper-error.js';
import {
  catchUp,
  isNotApplied,
  OwnData,
  ownerOf,
  type RegisteredZnode,
  type RegistrationContext,
  type WantedZnode,
} from './registered-znode.js';
import { replacementVersion, replacing } from './service-directory.js';

/** Our znode, known by the transaction that created it. */
interface Own {
  readonly createdZxid: bigint;
  readonly owner: string | undefined;
}

/** A znode that we have created, or may have. Its transaction is learned by reading it. */
interface Made {
  readonly data: string;
  readonly owner: string | undefined;
  /** Of the data, as long as nobody changes them. */
  readonly version: number;
  /** The claim that it fulfils. */
  readonly claim: number;
  /** Whether the server said so. */
  readonly certain: boolean;
}

/**
 * How long a path whose znode has gone is left to others, in milliseconds: at least, and by chance up to so much longer. Curator replaces a
 * znode by removing it and creating its own, at most twice: a faster registrant would keep it out.
 */
const LEAVE_EMPTY_MS = { min: 100, jitter: 200 };

/**
 * A registration whose znode has a fixed name.
 *
 * Two registrants may share a session, so a znode is told apart by the transaction that created it. The last one to register replaces what
 * stands there, once; the others leave its znode alone from then on, so that they never fight. When the znode is removed, ours or the other's,
 * the path is left empty for a moment: a registrant of another kind may be replacing it.
 *
 * A znode whose transaction is not known yet is taken for ours by its session, its data, and their version. Not guaranteed: that a persistent
 * one is recognised whose data somebody changes before our first read. If it is still wanted, it is replaced where its creation was answered,
 * and else left alone; if it is not wanted any more, it stays until somebody removes it.
 */
export class NamedRegistration implements RegisteredZnode {
  blockedBy: string | undefined;
  pauseMs: number | undefined;
  /** How many claims there have been, and how many of them are fulfilled. */
  #claimed = 1;
  #fulfilled = 0;
  #own: Own | undefined;
  #made: Made | undefined;
  readonly #data: OwnData;
  /** Until when the path is left to others, on the monotonic clock. */
  #emptyUntil: number | undefined;
  /** The other's znode that was reported, so that it is done once. */
  #reported: bigint | undefined;

  constructor(
    readonly path: string,
    private readonly context: RegistrationContext,
  ) {
    this.#data = new OwnData(context);
  }

  suits({ path, mode }: WantedZnode): boolean {
    return path === this.path && mode !== 'ephemeral-sequential';
  }

  claim(): void {
    this.#claimed += 1;
  }

  async establish(wanted: WantedZnode, call: ReconcileCall): Promise<boolean> {
    // A claim that is made from here on belongs to a later wanted znode, and outlives this step.
    const claim = this.#claimed;
    const znode = await this.#look(call);
    this.pauseMs = this.#pauseBefore(znode, ownerOf(wanted, call.sessionId));
    if (this.pauseMs !== undefined) return true;
    if (znode === undefined) return this.#make(wanted, claim, call);
    const { createdZxid, owner } = znode.stat;
    const isOwn = createdZxid === this.#own?.createdZxid;
    if (isOwn && owner === ownerOf(wanted, call.sessionId)) {
      this.#fulfil(claim);
      this.blockedBy = undefined;
      const isRight = znode.data.toString('utf8') === wanted.data;
      if (isRight) this.#data.confirm(wanted.data);
      else await this.#data.overwrite(this.path, znode, wanted, call);
      return isRight;
    }
    // Our own may be of another type, or of an earlier session that the servers have not ended yet.
    if (isOwn || this.#claims) return this.#replace(znode, wanted, claim, call);
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

  expects(znode: Znode | undefined, wanted: WantedZnode, sessionId: string | undefined): boolean {
    if (znode === undefined || sessionId === undefined) return false;
    const { createdZxid, owner } = znode.stat;
    if (this.blockedBy !== undefined && createdZxid === this.#reported) return true;
    return createdZxid === this.#own?.createdZxid && owner === ownerOf(wanted, sessionId) && znode.data.toString('utf8') === wanted.data;
  }

  get #claims(): boolean {
    return this.#claimed > this.#fulfilled;
  }

  #fulfil(claim: number): void {
    this.#fulfilled = Math.max(this.#fulfilled, claim);
  }

  /** Reads what stands there, after every write of ours whose reply was lost has been applied or never will be. */
  async #look(call: ReconcileCall): Promise<Znode | undefined> {
    const { zookeeper } = this.context;
    if (this.#made?.certain === false) await catchUp(zookeeper, this.path, call);
    const znode = await zookeeper.read(this.path, call);
    this.#recognise(znode);
    return znode;
  }

  /** Finds out whether what stands there is what we have created, or may have. */
  #recognise(znode: Znode | undefined): void {
    const made = this.#made;
    if (made === undefined || znode === undefined) return;
    const { createdZxid, owner, version } = znode.stat;
    // The one before still stands, so none was created in its place.
    if (createdZxid === this.#own?.createdZxid) this.#made = undefined;
    else if (owner !== made.owner) return;
    else if (version === made.version && znode.data.toString('utf8') === made.data) {
      this.#made = undefined;
      this.#own = { createdZxid, owner };
      this.#fulfil(made.claim);
    } else if (version > made.version && (made.certain || owner !== undefined)) {
      // Overwritten before our first read: it may be ours or another's. A new one in its place can be told apart.
      this.#fulfilled = this.#claimed - 1;
    }
  }

  /**
   * Whether it may be removed. One of this session that was overwritten before our first read may be another registrant's, who would create
   * it again. A persistent one is left in that case, since its registrant may have gone.
   */
  #isOurs({ stat: { createdZxid, owner, version } }: Znode): boolean {
    return createdZxid === this.#own?.createdZxid || (owner !== undefined && owner === this.#made?.owner && version > this.#made.version);
  }

  /** How much longer the path is left to others, after a znode there has just been removed. */
  #pauseBefore(znode: Znode | undefined, owner: string | undefined): number | undefined {
    const becameEmpty = znode === undefined && !this.#claims && (this.blockedBy !== undefined || this.#wasRemoved(owner));
    if (!becameEmpty) {
      this.#emptyUntil = undefined;
      return undefined;
    }
    const { clock, random } = this.context;
    const now = clock.monotonic();
    this.#emptyUntil ??= now + LEAVE_EMPTY_MS.min + random.next() * LEAVE_EMPTY_MS.jitter;
    return now < this.#emptyUntil ? this.#emptyUntil - now : undefined;
  }

  /** Whether one of ours stood there, where nothing stands any more, and did not go with its session. */
  #wasRemoved(owner: string | undefined): boolean {
    const last = this.#made?.certain === true ? this.#made : this.#own;
    return last !== undefined && (last.owner === undefined || last.owner === owner);
  }

  async #make(wanted: WantedZnode, claim: number, call: ReconcileCall): Promise<boolean> {
    const { zookeeper, emit } = this.context;
    const owner = ownerOf(wanted, call.sessionId);
    const removed = this.#wasRemoved(owner);
    const made = await this.#write(wanted, { owner, version: 0, claim }, () =>
      zookeeper.createWithParents(this.path, wanted.data, wanted.mode, call),
    );
    if (made && removed) emit({ type: 'restored', path: this.path, problem: 'was removed' });
    return false;
  }

  async #replace(znode: Znode, wanted: WantedZnode, claim: number, call: ReconcileCall): Promise<boolean> {
    const owner = ownerOf(wanted, call.sessionId);
    const operations = replacing(this.path, znode.stat.version, wanted.data, wanted.mode);
    await this.#write(wanted, { owner, version: replacementVersion(znode.stat.version), claim }, () =>
      this.context.zookeeper.multi(operations, call),
    );
    return false;
  }

  /** Creates a znode of ours. It has to be read afterwards in any case. */
  async #write({ data }: WantedZnode, by: Omit<Made, 'data' | 'certain'>, write: () => Promise<unknown>): Promise<boolean> {
    this.context.guard.check(this.path);
    const before = this.#made;
    this.#made = { ...by, data, certain: false };
    this.#data.attempt(data);
    try {
      await write();
    } catch (error) {
      // Another write came first, maybe one that has overwritten the znode before.
      if (isNotApplied(error)) this.#made = before;
      if (isFault(error, 'node-exists', 'no-node', 'bad-version')) return false;
      throw error;
    }
    this.#made = { ...by, data, certain: true };
    this.#own = undefined;
    this.#fulfil(by.claim);
    this.blockedBy = undefined;
    return true;
  }

  /** Leaves the znode of another registrant alone. */
  #yield({ stat: { createdZxid, owner } }: Znode): void {
    this.#own = undefined;
    this.#made = undefined;
    this.blockedBy = `${this.path} is registered by somebody else${owner === undefined ? '' : `, in session ${owner}`}`;
    if (this.#reported === createdZxid) return;
    this.#reported = createdZxid;
    this.context.emit({ type: 'superseded', path: this.path, by: owner });
  }
}
