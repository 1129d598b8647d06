import { onAbort, orAborted, until, withTimeout } from '../../core/base/abort.js';
import { checked, FUNCTION, type Kinds, kind, MS, maybe, TEXT } from '../../core/base/arguments.js';
import { ConfigError, explain } from '../../core/base/errors.js';
import { Listeners } from '../../core/base/listeners.js';
import { type Backoff, backoffMs, retrying } from '../../core/base/retry.js';
import type { Lease } from '../../core/lease/model/lease.js';
import { CALL_TIMEOUT_MS, isFault, ZooKeeperError } from '../client/zookeeper.js';
import { type AnnouncedNode, type DisconnectReason, LEAVE_TIMEOUT_MS, leaveLost } from './announced-node.js';
import type { Contributions } from './contributions.js';
import type { DataCall, DataContext } from './datum.js';

/** A node that is gone, and may be replaced by a new one. */
export interface LostNode {
  readonly nodeId: string;
  readonly reason: DisconnectReason;
  /** How many nodes have been replaced before it. */
  readonly replacements: number;
}

/** Why a supervisor has stopped. */
export type StopReason =
  /** `stop()` was called. */
  | 'left'
  /** The ZooKeeper client was closed. */
  | 'closed'
  /** Replaced `maxReplacements` times, the node is gone again. */
  | 'limit-reached'
  /** The application does not want a new node, or failed to say. */
  | 'declined'
  /** The lease that the node represents is lost. */
  | 'lease-lost';

/** `problem` is what went wrong last, for people. */
export type SupervisorState =
  /** There has been no node yet. */
  | { readonly status: 'connecting'; readonly problem?: string }
  | { readonly status: 'joined'; readonly node: AnnouncedNode }
  /** There is no connection, and the node may be gone already. */
  | { readonly status: 'suspended'; readonly node: AnnouncedNode }
  /** The node is gone; whether it is replaced is being asked. */
  | { readonly status: 'disconnected'; readonly lost: LostNode }
  | { readonly status: 'replacing'; readonly lost: LostNode; readonly problem?: string }
  | { readonly status: 'stopped'; readonly reason: StopReason; readonly problem?: string };

/** How a node is kept among the known ones. */
export interface SupervisorOptions {
  /** By itself, or on the application's word for each lost node. @default automatic */
  readonly replace?: 'automatic' | ((lost: LostNode) => boolean | Promise<boolean>) | undefined;
  /** How many nodes are replaced in all; the next loss stops the supervisor. @default no limit */
  readonly maxReplacements?: number | undefined;
  /**
   * The pause before a replacement where the node did not last for 5 s, doubled each time. In milliseconds.
   * @default 200
   */
  readonly backoffMs?: number | undefined;
  /** The longest such pause, in milliseconds. @default 10000 */
  readonly maxBackoffMs?: number | undefined;
  /**
   * The lease that the node represents: its znode says so, as JSON with `taskId`, `nodeId` and `version`, and
   * goes at once when the lease is lost.
   * @default none
   */
  readonly lease?: Pick<Lease, 'id' | 'version' | 'taskId' | 'signal'> | undefined;
  /** What the node says of itself; not with a lease. @default none */
  readonly data?: string | undefined;
  /** Receives every state. It must not throw and must not block. */
  readonly onState?: ((state: SupervisorState) => void) | undefined;
}

/** What is supervised. */
interface Supervised {
  readonly context: DataContext;
  readonly contributions: Contributions;
  announce(options: { readonly data: string }, stopping?: AbortSignal): Promise<AnnouncedNode>;
}

/** How a supervisor ends. */
type Stop = Omit<Extract<SupervisorState, { status: 'stopped' }>, 'status'>;

/** A node that lasted this long was a good one: it is replaced at once. In milliseconds. */
const GOOD_AFTER_MS = 5_000;

const OPTIONS: Kinds = {
  replace: maybe(kind("'automatic' or a function", (value) => value === 'automatic' || FUNCTION.is(value))),
  maxReplacements: maybe(kind('a number of at least 0', MS.is)),
  data: maybe(TEXT),
  lease: maybe(kind('the lease of a node id', (value) => Object(value).signal instanceof AbortSignal)),
};

/**
 * Keeps a node announced: a disconnected one stays disconnected, and is replaced by a new one. The ephemeral
 * data of its `SharedData` is there only while a node is joined, and is written again under the next.
 */
export class NodeSupervisor implements AsyncDisposable {
  #state: SupervisorState = { status: 'connecting' };
  #node: AnnouncedNode | undefined;
  /** The last call that announces one: it may succeed after the end. */
  #announcing: Promise<AnnouncedNode> | undefined;
  #replacements = 0;
  /** Aborts with a {@link StopReason}. */
  readonly #stopping = new AbortController();
  readonly #listeners = new Listeners<SupervisorState>();
  readonly #ended: Promise<void>;

  /** @internal Use `SharedData.supervise`. */
  constructor(
    private readonly data: Supervised,
    private readonly options: SupervisorOptions,
  ) {
    const { backoffMs: first = 200, maxBackoffMs: max = 10_000, lease } = checked(options, OPTIONS);
    if (!(max >= first))
      throw new ConfigError('maxBackoffMs', max, `a number of milliseconds of at least backoffMs, ${first}`);
    if (lease && options.data !== undefined)
      throw new ConfigError('data', options.data, 'none together with a lease');
    if (options.onState) this.#listeners.add(options.onState);
    data.contributions.refuses = (sessionId) => this.#refusal(sessionId);
    this.#ended = this.#run({ first, max });
  }

  /** What the node is doing. */
  get state(): SupervisorState {
    return this.#state;
  }

  /** How many nodes have been replaced. */
  get replacements(): number {
    return this.#replacements;
  }

  /** Calls `listener` with every new state, until the returned function is called. It must not throw. */
  onState(listener: (state: SupervisorState) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Resolves to the node that is joined.
   * @throws {ZooKeeperError} `timeout`; `closed` where it has stopped
   * @throws `signal.reason`
   */
  async whenJoined(call: DataCall = {}): Promise<AnnouncedNode> {
    const { timeoutMs = CALL_TIMEOUT_MS, signal } = checked(call);
    const state = await until(
      (listener) => this.onState(listener),
      () => (this.#state.status === 'joined' || this.#state.status === 'stopped' ? this.#state : undefined),
      (found) => withTimeout(this.data.context.clock, timeoutMs, found, signal),
    );
    if (state?.status === 'joined') return state.node;
    if (state)
      throw new ZooKeeperError(`the node supervisor has stopped (${state.reason})`, 'closed', 'unknown');
    throw new ZooKeeperError(`the node has not joined within ${timeoutMs} ms`, 'timeout', 'unknown');
  }

  /**
   * Takes the node and its ephemeral data away, for good. Resolves when they are gone, or within a few
   * seconds. Never rejects. Idempotent.
   */
  async stop(): Promise<void> {
    this.#stopFor('left');
    await this.#ended;
  }

  /** The same as `stop()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #stopFor(reason: StopReason): void {
    this.#stopping.abort(reason);
  }

  /** Never rejects. */
  async #run(backoff: Backoff): Promise<void> {
    const { signal } = this.#stopping;
    const forgetLease = onAbort(this.options.lease?.signal, () => this.#stopFor('lease-lost'));
    const stop = await this.#keepJoined(backoff).catch(
      (error: unknown): Stop =>
        signal.aborted ? { reason: signal.reason } : { reason: 'closed', problem: explain(error) },
    );
    forgetLease();
    this.#stopFor(stop.reason);
    const left = this.#announcing?.then(
      (node) => node.leave(),
      () => leaveLost(this.data.context, this.#text),
    );
    await Promise.all([
      left && withTimeout(this.data.context.clock, LEAVE_TIMEOUT_MS, left),
      this.data.contributions.withdraw(),
    ]);
    this.#become({ status: 'stopped', ...stop });
    this.#listeners.clear();
  }

  /** Announces one node after another. @throws {ZooKeeperError} `closed` @throws the reason to stop */
  async #keepJoined(backoff: Backoff): Promise<Stop> {
    const { clock, random } = this.data.context;
    let lost: LostNode | undefined;
    let shortLived = 0;
    for (;;) {
      const node = await this.#announce(lost);
      const joinedAt = clock.monotonic();
      const reason = await this.#untilGone(node);
      lost = { nodeId: node.id, reason, replacements: this.#replacements };
      this.#become({ status: 'disconnected', lost });
      const stop = await this.#stopAfter(lost);
      if (stop) return stop;
      this.#replacements += 1;
      this.#become({ status: 'replacing', lost });
      shortLived = clock.monotonic() - joinedAt >= GOOD_AFTER_MS ? 0 : shortLived + 1;
      if (shortLived > 0) await clock.sleep(backoffMs(backoff, shortLived, random), this.#stopping.signal);
    }
  }

  /** Announces a node, in place of the lost one. @throws as {@link #keepJoined} */
  async #announce(lost: LostNode | undefined): Promise<AnnouncedNode> {
    const { clock, random } = this.data.context;
    const retry = retrying({
      ...{ clock, random, signal: this.#stopping.signal },
      mayPass: (error) => !isFault(error, 'closed'),
      onFailure: (error) => {
        const problem = explain(error);
        this.#become(lost ? { status: 'replacing', lost, problem } : { status: 'connecting', problem });
      },
    });
    this.#node = await retry((call) => {
      this.#announcing = this.data.announce({ data: this.#text }, call.signal);
      return orAborted(this.#announcing, call.signal);
    });
    return this.#node;
  }

  /** What the node says of itself. */
  get #text(): string {
    const { lease, data = '' } = this.options;
    return lease ? JSON.stringify({ taskId: lease.taskId, nodeId: lease.id, version: lease.version }) : data;
  }

  /** Reports the states of a node until it is gone. @throws the reason to stop */
  #untilGone(node: AnnouncedNode): Promise<DisconnectReason> {
    return until(
      (listener) => node.onState(listener),
      () => {
        const { state } = node;
        if (state.status === 'disconnected') return state.reason;
        this.#become({ status: state.status, node });
        if (state.status === 'joined') this.data.contributions.renew();
        return undefined;
      },
      (gone) => orAborted(gone, this.#stopping.signal),
    );
  }

  /** How it ends with the loss of a node; undefined where that is replaced. @throws the reason to stop */
  async #stopAfter(lost: LostNode): Promise<Stop | undefined> {
    const { replace = 'automatic', maxReplacements = Number.POSITIVE_INFINITY } = this.options;
    if (lost.reason === 'closed') return { reason: 'closed' };
    if (lost.replacements >= maxReplacements) return { reason: 'limit-reached' };
    if (replace === 'automatic') return undefined;
    const { signal } = this.#stopping;
    try {
      const isReplaced = await orAborted(Promise.resolve(lost).then(replace), signal);
      return isReplaced ? undefined : { reason: 'declined' };
    } catch (error) {
      signal.throwIfAborted();
      return { reason: 'declined', problem: explain(error) };
    }
  }

  /** Why nothing is contributed in a session. */
  #refusal(sessionId: string): string | undefined {
    if (this.#stopping.signal.aborted) return 'the node has left';
    const isJoined = this.#node?.sessionId === sessionId && this.#node.state.status === 'joined';
    return isJoined ? undefined : 'the node is not announced';
  }

  #become(state: SupervisorState): void {
    this.#state = state;
    this.#listeners.notify(state);
  }
}
