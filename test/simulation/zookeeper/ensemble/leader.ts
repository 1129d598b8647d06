import type { MultiOperation } from '../../../../src/zookeeper/client/zookeeper.js';
import type { Scheduler } from '../../world/scheduler.js';
import { type Change, Code, DataTree, type Moment, Refusal } from './data-tree.js';

/** A write that the leader has decided: what every server carries out, in this order. */
export interface Transaction extends Moment {
  readonly changes: readonly Change[];
  /** The session that it ends. */
  readonly closes: string | undefined;
}

/** What the leader says to a write. */
export interface Verdict {
  readonly code: number;
  readonly index: number | undefined;
  readonly transaction: Transaction;
}

interface LeaderSession {
  readonly timeoutMs: number;
  /** The server that its client is connected to: requests that come through another one are too late. */
  owner: number;
  /** True time. */
  heardAt: number;
  closing: boolean;
}

/** How often it is looked whether there is a leader again, before sessions can end, in milliseconds. */
const WITHOUT_LEADER_MS = 100;

export interface LeaderOptions {
  readonly scheduler: Scheduler;
  /** Sessions end this much after their time at the most: the leader counts in steps. */
  readonly stepMs: number;
  /** How many milliseconds of true time pass while the leader's clock counts one. */
  readonly rate: number;
  readonly wallAt: (time: number) => number;
  /** Until when the leader stands still. */
  readonly heldUntil: () => number;
  readonly onDecided: (transaction: Transaction) => void;
  /** The leader has ended a session that it has not heard of. */
  readonly onExpired: (sessionId: string) => void;
}

/**
 * What the ensemble agrees on: the order of all writes, and the sessions. Whichever server leads, this goes
 * on.
 */
export class Leader {
  /** As all decided transactions leave it: servers are behind. */
  readonly tree = new DataTree();
  /** While false, there is none: nothing is decided, and no session ends. */
  present = true;
  #zxid = 2 ** 32;
  #sessionNumbers = 0;
  readonly #sessions = new Map<string, LeaderSession>();

  constructor(private readonly options: LeaderOptions) {}

  get zxid(): number {
    return this.#zxid;
  }

  /** Whether the leader takes a session for alive. */
  isAlive(sessionId: string): boolean {
    return this.#sessions.get(sessionId)?.closing === false;
  }

  /** Makes a session whose client is connected to this server. */
  createSession(
    owner: number,
    timeoutMs: number,
  ): { readonly sessionId: string; readonly transaction: Transaction } {
    this.#sessionNumbers += 1;
    const sessionId = (0x1000_0000_0000_0000n + BigInt(this.#sessionNumbers)).toString(16);
    this.#sessions.set(sessionId, { timeoutMs, owner, heardAt: this.options.scheduler.now, closing: false });
    this.#planExpiry(sessionId);
    return { sessionId, transaction: this.#commit([], undefined) };
  }

  /**
   * A session's client is now connected to this server.
   * @returns the session's time-out, or undefined for one that has ended
   */
  moveSession(sessionId: string, owner: number): number | undefined {
    const session = this.#sessions.get(sessionId);
    if (session === undefined || session.closing) return undefined;
    session.owner = owner;
    session.heardAt = this.options.scheduler.now;
    return session.timeoutMs;
  }

  touch(sessionId: string): void {
    const session = this.#sessions.get(sessionId);
    if (session) session.heardAt = this.options.scheduler.now;
  }

  /** Decides a write that came through a server; `undefined` as operations ends the session. */
  decide(sessionId: string, owner: number, operations: readonly MultiOperation[] | undefined): Verdict {
    const session = this.#sessions.get(sessionId);
    const refused = (code: number, index?: number) => ({
      code,
      index,
      transaction: this.#commit([], undefined),
    });
    if (session === undefined || session.closing) return refused(Code.sessionExpired);
    if (session.owner !== owner) return refused(Code.sessionMoved);
    if (operations === undefined)
      return { code: Code.ok, index: undefined, transaction: this.#close(sessionId, session) };
    const moment = this.#next();
    const changes = this.tree.decide(operations, sessionId, moment);
    if (changes instanceof Refusal) return { ...changes, transaction: this.#commit([], undefined, moment) };
    return { code: Code.ok, index: undefined, transaction: this.#commit(changes, undefined, moment) };
  }

  /** A write of the servers' own, as the removal of an empty container. */
  decideOwn(operations: readonly MultiOperation[]): void {
    const moment = this.#next();
    const changes = this.tree.decide(operations, '', moment);
    if (!(changes instanceof Refusal)) this.#commit(changes, undefined, moment);
  }

  /** A new leader has been elected: every session has its whole time before it. */
  elected(): void {
    this.present = true;
    this.#zxid = (Math.floor(this.#zxid / 2 ** 32) + 1) * 2 ** 32;
    for (const session of this.#sessions.values()) session.heardAt = this.options.scheduler.now;
  }

  #close(sessionId: string, session: LeaderSession): Transaction {
    session.closing = true;
    const moment = this.#next();
    const operations = this.tree.ownedBy(sessionId).map((path) => ({ type: 'remove', path }) as const);
    const changes = this.tree.decide(operations, sessionId, moment);
    this.#sessions.delete(sessionId);
    return this.#commit(changes instanceof Refusal ? [] : changes, sessionId, moment);
  }

  #planExpiry(sessionId: string): void {
    const { scheduler, stepMs, rate, onExpired, heldUntil } = this.options;
    const session = this.#sessions.get(sessionId);
    if (session === undefined || session.closing) return;
    const due = session.heardAt + session.timeoutMs * rate;
    const inSteps = stepMs === 0 ? due : Math.ceil(due / stepMs) * stepMs;
    const at = this.present ? Math.max(inSteps, heldUntil()) : scheduler.now + WITHOUT_LEADER_MS;
    scheduler.at(at, undefined, () => {
      if (session.closing) return;
      if (
        !this.present ||
        heldUntil() > scheduler.now ||
        scheduler.now < session.heardAt + session.timeoutMs * rate
      )
        return this.#planExpiry(sessionId);
      onExpired(sessionId);
      this.#close(sessionId, session);
    });
  }

  #next(): Moment {
    this.#zxid += 1;
    return { zxid: this.#zxid, time: Math.floor(this.options.wallAt(this.options.scheduler.now)) };
  }

  #commit(changes: readonly Change[], closes: string | undefined, moment = this.#next()): Transaction {
    const transaction = { ...moment, changes, closes };
    this.options.onDecided(transaction);
    return transaction;
  }
}
