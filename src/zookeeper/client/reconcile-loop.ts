import { withTimeout } from '../../core/base/abort.js';
import { backoffMs, CALLER_WAITS } from '../../core/base/backoff.js';
import { explain } from '../../core/base/errors.js';
import { Listeners } from '../../core/base/listeners.js';
import { until } from '../../core/base/until.js';
import { WakeUp } from '../../core/base/wake-up.js';
import { concurrentCalls } from './call-limits.js';
import { inRounds } from './retry.js';
import type { SessionState } from './session-state.js';
import type { EventOptions, TimeSources, Watch, Znode, ZooKeeper } from './zookeeper.js';
import { closedError, isFault, ZooKeeperError } from './zookeeper-error.js';

/**
 * How far ZooKeeper has the wanted state. `synced`: completely, in this session. `degraded`: not completely,
 * or not for certain; the loop continues in the background.
 */
export type ReconcileState =
  | { readonly status: 'synced' }
  | { readonly status: 'degraded'; readonly problem: string }
  | { readonly status: 'closed' };

/** Problems and their end, for logs. */
export type ReconcileEvent =
  | { readonly type: 'synced' }
  | { readonly type: 'degraded'; readonly problem: string };

/** An item that is wanted in ZooKeeper, or is to be removed there. */
export interface Reconciled {
  /** Of its znode, or of what it consists of. */
  readonly path: string;
  /** Whether ZooKeeper may differ from the wanted state. */
  dirty: boolean;
  /** Why it is left as it is; undefined while nothing is in the way. */
  readonly blockedBy: string | undefined;
  /**
   * Goes a step towards what is wanted. Resolves to true when nothing is left to do until something changes;
   * to false to be called again at once; to a number to be called again after that many milliseconds. It is
   * called again at once, too, where another write came first: `node-exists`, `no-node`, `bad-version`. Any
   * other failure is tried again later.
   */
  step(call: ReconcileCall): Promise<boolean | number>;
  /**
   * Whether a znode that was seen at the path is as it is wanted, or is known to be in the way. Where it is
   * given, the znode is watched once a step has succeeded.
   */
  expects?(znode: Znode | undefined, sessionId: string): boolean;
}

/** The bounds of the calls of one turn. */
export interface ReconcileCall {
  readonly sessionId: string;
  readonly signal: AbortSignal;
}

interface ReconcileLoopOptions extends TimeSources, EventOptions<ReconcileEvent> {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'description' | 'watchData'>;
  /** For messages: the beginning of the sentence "… has been closed". */
  readonly name: string;
}

/** In milliseconds. */
const NEVER = Number.POSITIVE_INFINITY;
/** How many problems are remembered, so as not to report them again. */
const MAX_REPORTED = 100;
/** Before anything has been tried. */
const BEGUN: ReconcileState = { status: 'degraded', problem: 'there has been no connection yet' };

/**
 * Keeps own znodes as they are wanted: reconciles each dirty item at once, all items in a new session, a
 * changed one again, and a failed one after a pause of up to a second.
 */
export class ReconcileLoop {
  /** With the watches of their znodes. */
  readonly #items = new Map<Reconciled, { readonly path: string; readonly watch: Watch } | undefined>();
  readonly #listeners = new Listeners<ReconcileState>();
  /** Notified whenever the wait of {@link until} may be over. */
  readonly #progress = new Listeners<void>();
  readonly #closing = new AbortController();
  readonly #forgetSession: () => void;
  #state: ReconcileState = BEGUN;
  /**
   * The problems of events since all was as wanted; undefined before the first event. Several of them may take
   * turns. A short degradation while an item is written is no event.
   */
  #reported: Set<string> | undefined;
  readonly #wakeUp = new WakeUp();
  #failures = 0;
  /** The shortest pause that an item has asked for. */
  #pauseMs = NEVER;
  readonly #ended: Promise<void>;

  constructor(private readonly options: ReconcileLoopOptions) {
    this.#forgetSession = options.zookeeper.onState((state) => this.#onSession(state));
    this.#ended = this.#keep();
  }

  get state(): ReconcileState {
    return this.#state;
  }

  /**
   * Calls `listener` with every new state, until the returned function is called. Not with the present one.
   * Listeners must not throw.
   */
  onState(listener: (state: ReconcileState) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Resolves to true once a condition on the items holds; to false after `timeoutMs`, or when closed. Checked
   * at each change of one.
   *
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async until(isReached: () => boolean, timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    const reached = await until(
      (listener) => this.#progress.add(listener),
      () => isReached() || (this.#state.status === 'closed' ? false : undefined),
      (found) => withTimeout(this.options.clock, timeoutMs, found, signal),
    );
    return reached ?? isReached();
  }

  /**
   * The failure of a wait in which {@link until} has not come.
   *
   * @param what has not come, as a clause
   * @param item where the wait is for one
   */
  late(what: string, timeoutMs: number, item?: Pick<Reconciled, 'path' | 'blockedBy'>): ZooKeeperError {
    const { state } = this;
    if (state.status === 'closed')
      return new ZooKeeperError(
        `${what}: ${this.options.name} has been closed`,
        'closed',
        'unknown',
        item?.path,
      );
    const problem = item?.blockedBy ?? ('problem' in state ? state.problem : state.status);
    return new ZooKeeperError(`${what} after ${timeoutMs} ms: ${problem}`, 'timeout', 'unknown', item?.path);
  }

  /** Reconciles an item soon: it is new, or may differ from what is wanted. */
  reconcile(item: Reconciled): void {
    if (!this.#items.has(item)) this.#items.set(item, undefined);
    item.dirty = true;
    if (this.#state.status === 'synced')
      this.#setState({ status: 'degraded', problem: `${item.path} is about to be written` });
    this.#wakeUp.wake();
    this.#progress.notify();
  }

  /** Leaves an item as it is from now on. */
  forget(item: Reconciled): void {
    this.#items.get(item)?.watch.close();
    this.#items.delete(item);
    this.#wakeUp.wake();
    this.#progress.notify();
  }

  /** Reconciles nothing any more. Resolves when the calls under way have ended. Idempotent. */
  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort(closedError(this.options.name, 'unknown'));
      this.#forgetSession();
      for (const followed of this.#items.values()) followed?.watch.close();
      this.#setState({ status: 'closed' });
      this.#wakeUp.wake();
    }
    await this.#ended;
  }

  async #keep(): Promise<void> {
    const { zookeeper, clock, random } = this.options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const session = zookeeper.state;
      if (session.status !== 'connected') {
        this.#withoutSession(session);
        await this.#wakeUp.wait();
        continue;
      }
      const problem = await this.#reconcileDirty(session.sessionId);
      if (signal.aborted) return;
      // The connection was lost, or the session has changed, as the last step ended.
      if (!this.#isIn(session.sessionId)) continue;
      // Items that have changed in the meantime are not as wanted yet.
      const isDone = ![...this.#items.keys()].some(({ dirty }) => dirty);
      if (problem !== undefined || isDone) this.#become(problem);
      const retryMs = this.#failures === 0 ? NEVER : backoffMs(CALLER_WAITS, this.#failures, random);
      const timeoutMs = Math.min(this.#pauseMs, retryMs);
      await this.#wakeUp.wait(timeoutMs === NEVER ? undefined : { clock, timeoutMs });
    }
  }

  /** Returns the problem of the first item that is not as wanted. */
  async #reconcileDirty(sessionId: string): Promise<string | undefined> {
    this.#pauseMs = NEVER;
    const dirty = [...this.#items.keys()].filter((item) => item.dirty);
    const problems = await concurrentCalls(dirty, async (item) => {
      try {
        await this.#reconcileItem(item, { sessionId, signal: this.#closing.signal });
        this.#progress.notify();
        return undefined;
      } catch (error) {
        item.dirty = true;
        // A new session, or the end of this one, wakes the loop by itself.
        return { text: explain(error), again: !isFault(error, 'session-expired') };
      }
    });
    const failures = problems.filter((problem) => problem !== undefined);
    this.#failures = failures.some(({ again }) => again) ? this.#failures + 1 : 0;
    const blocked = [...this.#items.keys()].find(({ blockedBy }) => blockedBy !== undefined);
    return failures[0]?.text ?? blocked?.blockedBy;
  }

  async #reconcileItem(item: Reconciled, call: ReconcileCall): Promise<void> {
    const done = await inRounds(item.path, async () => {
      // It may have been forgotten since, and another item have its path. In another session it is dirty again.
      if (!this.#items.has(item) || !this.#isIn(call.sessionId)) return true;
      // Every change from here on makes it dirty again.
      item.dirty = false;
      return (await item.step(call)) || undefined;
    });
    // Behind what waits for it.
    process.nextTick(() => this.#follow(item));
    if (done === true) return;
    item.dirty = true;
    this.#pauseMs = Math.min(this.#pauseMs, done);
  }

  /** Watches the item's znode, whose name may have changed. */
  #follow(item: Reconciled): void {
    const { zookeeper } = this.options;
    const { path } = item;
    const followed = this.#items.get(item);
    if (!item.expects || path === followed?.path) return;
    if (!this.#items.has(item) || this.#closing.signal.aborted) return;
    followed?.watch.close();
    const watch = zookeeper.watchData(path, (znode) => {
      const { state } = zookeeper;
      // In the next session all items are reconciled.
      if (state.status !== 'connected' || path !== item.path) return;
      if (!item.expects?.(znode, state.sessionId)) this.reconcile(item);
    });
    this.#items.set(item, { path, watch });
  }

  #isIn(sessionId: string): boolean {
    const { state } = this.options.zookeeper;
    return state.status === 'connected' && state.sessionId === sessionId;
  }

  #onSession(session: SessionState): void {
    if (session.status === 'connected') for (const item of this.#items.keys()) item.dirty = true;
    else this.#withoutSession(session);
    this.#failures = 0;
    this.#pauseMs = NEVER;
    this.#wakeUp.wake();
  }

  #withoutSession(session: SessionState): void {
    // Neither a closed client nor a first connection that takes its time is a problem.
    const begins = session.status === 'connecting' && session.problem === undefined && this.#state === BEGUN;
    if (session.status === 'closed') this.#setState({ status: 'closed' });
    else if (!begins) this.#become(problemOf(session, this.options.zookeeper.description));
  }

  /** @param problem undefined where all is as wanted */
  #become(problem: string | undefined): void {
    const before = 'problem' in this.#state ? this.#state.problem : undefined;
    if (this.#state.status === 'closed') return;
    if (before !== problem)
      this.#setState(problem === undefined ? { status: 'synced' } : { status: 'degraded', problem });
    const isKnown = problem === undefined ? this.#reported?.size === 0 : this.#reported?.has(problem);
    if (isKnown) return;
    if (!this.#reported || problem === undefined || this.#reported.size >= MAX_REPORTED)
      this.#reported = new Set();
    if (problem !== undefined) this.#reported.add(problem);
    this.options.onEvent?.(problem === undefined ? { type: 'synced' } : { type: 'degraded', problem });
  }

  #setState(state: ReconcileState): void {
    if (this.#state.status === 'closed') return;
    this.#state = state;
    this.#listeners.notify(state);
    this.#progress.notify();
  }
}

function problemOf(session: SessionState, where: string): string {
  if (session.status === 'expired') return `the session with ${where} has expired`;
  const problem = 'problem' in session && session.problem !== undefined ? `: ${session.problem}` : '';
  return `no connection to ${where}${problem}`;
}
