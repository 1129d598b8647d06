import { withTimeout } from '../base/abort.js';
import { backoffMs } from '../base/backoff.js';
import type { Clock, RandomSource } from '../base/clock.js';
import { concurrently } from '../base/concurrently.js';
import { explain } from '../base/errors.js';
import { Listeners } from '../base/listeners.js';
import type { SessionState } from './session-state.js';
import type { ZooKeeper } from './zookeeper.js';
import { isFault, ZooKeeperError } from './zookeeper-error.js';

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
  /** For people. */
  readonly path: string;
  /** Whether ZooKeeper may differ from the wanted state. */
  dirty: boolean;
  /** Why it is left as it is; undefined while nothing is in the way. */
  readonly blockedBy: string | undefined;
}

/** The bounds of the calls of one turn. */
export interface ReconcileCall {
  readonly sessionId: string;
  readonly signal: AbortSignal;
}

export interface ReconcileLoopOptions<T extends Reconciled> {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'description'>;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** For messages: the beginning of the sentence "… has been closed". */
  readonly name: string;
  /** All there is. The dirty ones are settled. */
  readonly items: () => Iterable<T>;
  /**
   * Settles one item; a failure is tried again later. Sets `dirty` to false before its first read, so that a
   * later change makes it dirty again.
   */
  readonly settle: (item: T, call: ReconcileCall) => Promise<void>;
  /** Must not throw and must not block. */
  readonly onEvent?: ((event: ReconcileEvent) => void) | undefined;
}

/** Between two attempts while something fails. */
const RETRY_MS = { first: 100, max: 1_000 };
/** How many items are settled at a time. */
const SETTLED_AT_ONCE = 64;
/** Before anything has been tried. */
const BEGUN: ReconcileState = { status: 'degraded', problem: 'there has been no connection yet' };

/**
 * Keeps ZooKeeper as it is wanted: settles each dirty item at once, all items in a new session, and a failed
 * one again after a pause of up to a second.
 */
export class ReconcileLoop<T extends Reconciled> {
  readonly #listeners = new Listeners<ReconcileState>();
  /** Notified whenever the wait of {@link until} may be over. */
  readonly #progress = new Listeners<void>();
  readonly #closing = new AbortController();
  readonly #forgetSession: () => void;
  #state: ReconcileState = BEGUN;
  /**
   * The problem of the last event, empty for none. A short degradation while an item is written is no event.
   */
  #reported: string | undefined;
  #woken = false;
  #wake: () => void = () => undefined;
  #failures = 0;
  readonly #ended: Promise<void>;

  constructor(private readonly options: ReconcileLoopOptions<T>) {
    this.#forgetSession = options.zookeeper.onState((state) => this.#onSession(state));
    this.#ended = this.#keep();
  }

  get state(): ReconcileState {
    return this.#state;
  }

  /** Aborted when the loop is closed, with a {@link ZooKeeperError} that says so. */
  get signal(): AbortSignal {
    return this.#closing.signal;
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
    let forget: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => {
      const check = () => {
        if (isReached() || this.#state.status === 'closed') resolve();
      };
      forget = this.#progress.add(check);
      check();
    });
    try {
      await withTimeout(this.options.clock, timeoutMs, reached, signal);
    } finally {
      forget();
    }
    return isReached();
  }

  /** An item may differ from the wanted state until it has been settled. */
  touched(item: T): void {
    item.dirty = true;
    if (this.#state.status === 'synced')
      this.#setState({ status: 'degraded', problem: `${item.path} is about to be written` });
    this.#awake();
    this.#progress.tell();
  }

  /** Settles nothing any more. Resolves when the settling under way has ended. Idempotent. */
  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort(
        new ZooKeeperError(`${this.options.name} has been closed`, { fault: 'closed', outcome: 'unknown' }),
      );
      this.#forgetSession();
      this.#setState({ status: 'closed' });
      this.#wake();
    }
    await this.#ended;
  }

  async #keep(): Promise<void> {
    const { zookeeper, random } = this.options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      this.#woken = false;
      const session = zookeeper.state;
      if (session.status !== 'connected') this.#withoutSession(session);
      else {
        const problem = await this.#reconcile(session.sessionId);
        if (signal.aborted) return;
        if (problem !== undefined) this.#degrade(problem);
        else this.#succeed();
      }
      await this.#untilWoken(this.#failures === 0 ? undefined : backoffMs(RETRY_MS, this.#failures, random));
    }
  }

  /** Settles all dirty items. Returns the problem of the first that is not as wanted. */
  async #reconcile(sessionId: string): Promise<string | undefined> {
    const { items, settle } = this.options;
    const dirty = [...items()].filter((item) => item.dirty);
    const problems = await concurrently(dirty, SETTLED_AT_ONCE, async (item) => {
      try {
        await settle(item, { sessionId, signal: this.#closing.signal });
        this.#progress.tell();
        return undefined;
      } catch (error) {
        item.dirty = true;
        // A new session, or the end of this one, wakes the loop by itself.
        return { text: explain(error), again: !isFault(error, 'session-expired') };
      }
    });
    const failures = problems.filter((problem) => problem !== undefined);
    this.#failures = failures.some(({ again }) => again) ? this.#failures + 1 : 0;
    const blocked = [...items()].find(({ blockedBy }) => blockedBy !== undefined);
    return failures[0]?.text ?? blocked?.blockedBy;
  }

  #onSession(session: SessionState): void {
    if (session.status === 'connected') for (const item of this.options.items()) item.dirty = true;
    else this.#withoutSession(session);
    this.#failures = 0;
    this.#awake();
  }

  #withoutSession(session: SessionState): void {
    // Neither a closed client nor a first connection that takes its time is a problem.
    const begins = session.status === 'connecting' && session.problem === undefined && this.#state === BEGUN;
    if (session.status === 'closed') this.#setState({ status: 'closed' });
    else if (!begins) this.#degrade(told(session, this.options.zookeeper.description));
  }

  #awake(): void {
    this.#woken = true;
    this.#wake();
  }

  /** Until there is something to do, or for that long. */
  async #untilWoken(limitMs?: number): Promise<void> {
    if (this.#woken || this.#closing.signal.aborted) return;
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await (limitMs === undefined ? woken : withTimeout(this.options.clock, limitMs, woken));
  }

  #succeed(): void {
    if ([...this.options.items()].some(({ dirty }) => dirty)) return;
    if (this.#state.status !== 'synced') this.#setState({ status: 'synced' });
    const isNews = this.#reported !== '';
    this.#reported = '';
    if (isNews) this.options.onEvent?.({ type: 'synced' });
  }

  #degrade(problem: string): void {
    if (this.#state.status === 'closed') return;
    if (this.#state.status !== 'degraded' || this.#state.problem !== problem)
      this.#setState({ status: 'degraded', problem });
    const isNews = this.#reported !== problem;
    this.#reported = problem;
    if (isNews) this.options.onEvent?.({ type: 'degraded', problem });
  }

  #setState(state: ReconcileState): void {
    if (this.#state.status === 'closed') return;
    this.#state = state;
    this.#listeners.tell(state);
    this.#progress.tell();
  }
}

function told(session: SessionState, where: string): string {
  if (session.status === 'expired') return `the session with ${where} has expired`;
  const problem = 'problem' in session && session.problem !== undefined ? `: ${session.problem}` : '';
  return `no connection to ${where}${problem}`;
}
