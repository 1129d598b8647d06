import { BoundSession } from '../zookeeper/bound-session.js';
import type { ReconcileCall, Reconciled } from '../zookeeper/reconcile-loop.js';
import type { MultiOperation, Znode } from '../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import type { Attempt, caughtUp, Datum } from './datum.js';

import { decodeEntry } from './entry.js';
import { placeName } from './layout.js';

import { SharedDataError } from './shared-data-error.js';

/** How often it is tried against others' changes before it counts as a failure. */
const ROUNDS = 8;

/** What a contribution shares with the others of its client. */
export interface Contributors {
  /** Which contribution each own znode is for, by path. */
  readonly claims: Map<string, Contribution>;
  /** Why nothing may be contributed in this session; undefined where it may. */
  readonly refuses: (sessionId: string) => string | undefined;
  /** The owner of the element as the replica has it. */
  readonly ownerOf: (contribution: Contribution) => string | undefined;
  /** Has the server catch up with what another one did for this session, once for a connection. */
  readonly caughtUp: (...args: Parameters<typeof caughtUp>) => Promise<void>;
  /** Nothing of it is left, nor wanted. */
  readonly onGone: (contribution: Contribution) => void;
}

/** The part of an attempt that a contribution has. */
type Step = Pick<Attempt, 'session' | 'call'>;

/**
 * One ephemeral element that this node contributes, in whichever session it is: made again in each new one, moved into a gap before it, where
 * another node's element was, and removed when it is not wanted any more.
 */
export class Contribution implements Reconciled {
  dirty = true;
  /** Whether ZooKeeper has what is wanted, or nothing where nothing is. */
  settled = false;
  /** Why it cannot be written as wanted. */
  refusal: SharedDataError | undefined;
  /** Undefined while it is being removed. */
  #document: string | undefined;
  /** Where it may stand in this session: several where a reply was lost. */
  #places: number[] = [];
  #sessionId: string | undefined;

  /**
   * @param id the element's id; undefined for a list's, which may stand there twice
   * @param hash of a set's or map's element
   */
  constructor(
    readonly datum: Datum,
    readonly id: string | undefined,
    private readonly hash: string,
    private readonly contributors: Contributors,
  ) {}

  get path(): string {
    return this.#pathAt(this.#places[0] ?? 0);
  }

  get blockedBy(): string | undefined {
    return this.#document === undefined ? undefined : this.refusal?.message;
  }

  /** Wants the element with this document, or none. It has to be settled then. */
  want(document: string | undefined): void {
    this.#document = document;
    this.settled = false;
    this.refusal = undefined;
  }

  /** Whether it may stand there. */
  isAt(name: string): boolean {
    return this.#places.some((n) => this.#nameAt(n) === name);
  }

  /** Whether it stands where it may stand, with no gap before it. */
  isUnbroken(has: (name: string) => boolean): boolean {
    return this.datum.record.kind === 'scalar' || this.#places.every((n) => has(this.#nameAt(n)) && (n === 0 || has(this.#nameAt(n - 1))));
  }

  async settle({ sessionId, signal }: ReconcileCall): Promise<void> {
    if (this.#sessionId !== sessionId) this.#forget();
    this.#sessionId = sessionId;
    const session = new BoundSession(this.datum.context.zookeeper, sessionId);
    for (let round = 0; round < ROUNDS; round += 1) {
      // Every change from here on makes it dirty again.
      this.dirty = false;
      const wanted = this.#document;
      try {
        const isDone = await this.#step({ session, call: { signal } }, sessionId, wanted);
        if (!isDone || wanted !== this.#document) continue;
        this.settled = true;
        if (wanted === undefined) this.contributors.onGone(this);
        return;
      } catch (error) {
        if (error instanceof SharedDataError) {
          this.refusal = error;
          return;
        }
        if (!isFault(error, 'node-exists', 'no-node', 'bad-version', 'not-empty')) throw error;
      }
    }
    const text = `${this.path} is being changed all the time`;
    throw new ZooKeeperError(text, { fault: 'timeout', outcome: 'unknown', path: this.path });
  }

  /** One step towards what is wanted. Resolves to whether it was the last one. */
  async #step(step: Step, sessionId: string, wanted: string | undefined): Promise<boolean> {
    const { datum, contributors } = this;
    const refused = contributors.refuses(sessionId);
    if (refused !== undefined && wanted !== undefined) throw new SharedDataError(`${datum.title}: ${refused}`, 'not-joined', this.path);
    const own = await this.#standing(step, sessionId, wanted);
    if (wanted === undefined) {
      if (own) await step.session.remove(this.#pathAt(own.n), -1, step.call);
      this.#forget();
      return true;
    }
    const collection = datum.record.kind === 'scalar' ? undefined : await datum.ensured(step);
    if (collection === undefined && datum.record.kind !== 'scalar') return false;
    if (own === undefined) return this.#make(step, sessionId, wanted, collection);
    this.#places = [own.n];
    this.refusal = undefined;
    if (own.znode.data.toString('utf8') !== wanted) await step.session.setData(this.#pathAt(own.n), wanted, -1, step.call);
    const { gap, other } = await this.#before(own.n, step, sessionId);
    if (other !== undefined) {
      await step.session.remove(this.#pathAt(own.n), -1, step.call);
      this.#forget();
      return this.#taken(other);
    }
    if (gap === own.n || collection === undefined) return true;
    await this.#write(step, gap, [datum.creation(this.#nameAt(gap), wanted, collection), { type: 'remove', path: this.#pathAt(own.n) }]);
    contributors.claims.delete(this.#pathAt(own.n));
    return true;
  }

  /** Where it stands already. */
  async #standing({ session, call }: Step, sessionId: string, wanted: string | undefined) {
    const { datum, contributors } = this;
    if (this.#places.length > 0) await contributors.caughtUp(session, datum.path, call);
    for (const n of this.#places) {
      const path = this.#pathAt(n);
      const znode = await session.read(path, call);
      if (znode?.stat.owner !== sessionId || (contributors.claims.get(path) ?? this) !== this) continue;
      const isSame =
        this.id === undefined ? wanted === undefined || znode.data.toString('utf8') === wanted : this.#idOf(n, znode) === this.id;
      if (!isSame) continue;
      contributors.claims.set(path, this);
      return { n, znode };
    }
    return undefined;
  }

  /** Makes it at the first place that is free, unless another node has the element. */
  async #make(step: Step, sessionId: string, wanted: string, collection: Znode | undefined): Promise<boolean> {
    const { datum, contributors } = this;
    const { session, call } = step;
    const known = contributors.ownerOf(this);
    if (known !== undefined && known !== sessionId) return this.#taken(known);
    if (collection === undefined) {
      const znode = await session.read(datum.path, call);
      datum.check(znode);
      if (znode) return this.#taken(znode.stat.owner);
      this.#places.push(0);
      await session.createWithParents(datum.path, wanted, 'ephemeral', call);
    } else {
      let n = datum.record.kind === 'list' ? await this.#length(step) : 0;
      for (let znode = await session.read(this.#pathAt(n), call); znode; znode = await session.read(this.#pathAt(n), call)) {
        if (this.id !== undefined && this.#idOf(n, znode) === this.id && znode.stat.owner !== sessionId)
          return this.#taken(znode.stat.owner);
        n += 1;
      }
      await this.#write(step, n, [datum.creation(this.#nameAt(n), wanted, collection)]);
    }
    this.refusal = undefined;
    contributors.claims.set(this.path, this);
    return true;
  }

  async #write({ session, call }: Step, n: number, operations: readonly MultiOperation[]): Promise<void> {
    this.#places.push(n);
    await session.multi(operations, call);
    this.#places = [n];
    this.contributors.claims.set(this.#pathAt(n), this);
  }

  /** Another node has it: a set has what is wanted then. */
  #taken(owner: string | undefined): boolean {
    this.#places = [];
    this.refusal = undefined;
    if (this.datum.record.kind === 'set') return true;
    const text = `${this.datum.title}: another node contributes this entry, in session ${owner ?? 'none'}`;
    throw new SharedDataError(text, 'owned-by-other', this.#pathAt(0));
  }

  /** The first place of the gap right before its own, which is that itself where there is none, and which other node has the element before it. */
  async #before(own: number, { session, call }: Step, sessionId: string): Promise<{ gap: number; other?: string | undefined }> {
    let gap = own;
    for (let n = own - 1; n >= 0 && (gap === n + 1 || this.id !== undefined); n -= 1) {
      const znode = await session.read(this.#pathAt(n), call);
      if (znode === undefined && gap === n + 1) gap = n;
      const isSame = znode !== undefined && this.id !== undefined && this.#idOf(n, znode) === this.id;
      if (isSame && znode.stat.owner !== sessionId) return { gap, other: znode.stat.owner };
    }
    return { gap };
  }

  async #length({ session, call }: Step): Promise<number> {
    const names = (await session.children(this.datum.path, call)) ?? [];
    return Math.max(-1, ...names.filter((name) => /^\d+$/.test(name)).map(Number)) + 1;
  }

  #idOf(n: number, znode: Znode): string | undefined {
    return decodeEntry(this.datum.record.kind, this.#nameAt(n), znode)?.id ?? undefined;
  }

  #nameAt(n: number): string {
    return this.datum.record.kind === 'list' ? String(n) : placeName(this.hash, n);
  }

  #pathAt(n: number): string {
    return this.datum.record.kind === 'scalar' ? this.datum.path : `${this.datum.path}/${this.#nameAt(n)}`;
  }

  #forget(): void {
    for (const n of this.#places)
      if (this.contributors.claims.get(this.#pathAt(n)) === this) this.contributors.claims.delete(this.#pathAt(n));
    this.#places = [];
  }
}
