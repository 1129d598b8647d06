import { onAbort, orAborted, timeoutSignal } from '../../core/base/abort.js';
import { checked, FUNCTION, type Kinds, kind, MS, maybe, TEXT } from '../../core/base/arguments.js';
import { backoffMs } from '../../core/base/backoff.js';
import { ConfigError, explain } from '../../core/base/errors.js';
import { Listeners } from '../../core/base/listeners.js';
import { retrying } from '../../core/base/retry.js';
import type { Lease } from '../../core/lease/model/lease.js';
import { CALL_TIMEOUT_MS } from '../client/zookeeper.js';
import { isFault, ZooKeeperError } from '../client/zookeeper-error.js';
import type { AnnouncedNode, NodeState } from './announced-node.js';
import type { Contributions } from './contributions.js';
import type { DataCall, DataContext } from './datum.js';

/** Why a node is gone. */
export type DisconnectReason = Extract<NodeState, { status: 'disconnected' }>['reason'];

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
export interface Supervised {
  readonly context: Pick<DataContext, 'clock' | 'random'>;
  readonly contributions: Contributions;
  announce(options: DataCall & { readonly data: string }): Promise<AnnouncedNode>;
}

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
  #replacements = 0;
  readonly #stopping = new AbortController();
  readonly #listeners = new Listeners<SupervisorState>();
  readonly #ended: Promise<void>;
  readonly #forgetLease: () => void;

  /** @internal Use `SharedData.supervise`. */
  constructor(
    private readonly data: Supervised,
    private readonly options: SupervisorOptions,
  ) {
    const {
      maxReplacements: max = Number.POSITIVE_INFINITY,
      backoffMs: first = 200,
      maxBackoffMs: longest = 10_000,
      lease,
    } = checked(options, OPTIONS);
    if (!(longest >= first))
      throw new ConfigError(
        'maxBackoffMs',
        longest,
        `a number of milliseconds of at least backoffMs, ${first}`,
      );
    if (lease && options.data !== undefined)
      throw new ConfigError('data', options.data, 'none together with a lease');
    if (options.onState) this.#listeners.add(options.onState);
    data.contributions.refuses = (sessionId) => this.#refusal(sessionId);
    this.#ended = this.#keep(max, { first, max: longest });
    this.#forgetLease = onAbort(lease?.signal, () => this.#stopping.abort('lease-lost' satisfies StopReason));
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
    const { clock } = this.data.context;
    const { timeoutMs: ms = CALL_TIMEOUT_MS, signal } = checked(call);
    const error = (fault: 'timeout' | 'closed', text: string) =>
      new ZooKeeperError(`the node ${text}`, { fault, outcome: 'unknown' });
    const limit = timeoutSignal(clock, ms, () => error('timeout', `has not joined within ${ms} ms`), signal);
    let forget: () => void = () => undefined;
    try {
      return await orAborted(
        new Promise<AnnouncedNode>((resolve, reject) => {
          const look = (state: SupervisorState) => {
            if (state.status === 'joined') resolve(state.node);
            if (state.status === 'stopped')
              reject(error('closed', `supervisor has stopped (${state.reason})`));
          };
          forget = this.onState(look);
          look(this.#state);
        }),
        limit.signal,
      );
    } finally {
      forget();
      limit.release();
    }
  }

  /**
   * Takes the node and its ephemeral data away, for good. Resolves when they are gone, or within a few
   * seconds. Never rejects. Idempotent.
   */
  async stop(): Promise<void> {
    this.#stopping.abort('left' satisfies StopReason);
    await this.#ended;
  }

  /** The same as `stop()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Never rejects. */
  async #keep(max: number, backoff: { readonly first: number; readonly max: number }): Promise<void> {
    const { clock, random } = this.data.context;
    const { signal } = this.#stopping;
    let stop: { readonly reason: StopReason; readonly problem?: string } | undefined;
    let lost: LostNode | undefined;
    let short = 0;
    try {
      while (stop === undefined) {
        const node = await this.#announced(lost);
        const joinedAt = clock.monotonic();
        const reason = await orAborted(this.#untilGone(node), signal);
        lost = { nodeId: node.id, reason, replacements: this.#replacements };
        this.#become({ status: 'disconnected', lost });
        stop =
          reason === 'closed'
            ? { reason }
            : this.#replacements >= max
              ? { reason: 'limit-reached' }
              : await this.#declined(lost);
        if (stop) break;
        this.#replacements += 1;
        this.#become({ status: 'replacing', lost });
        short = clock.monotonic() - joinedAt >= GOOD_AFTER_MS ? 0 : short + 1;
        if (short > 0) await clock.sleep(backoffMs(backoff, short, random), signal);
      }
    } catch (error) {
      stop = signal.aborted
        ? { reason: signal.reason as StopReason }
        : { reason: 'closed', problem: explain(error) };
    }
    this.#forgetLease();
    this.#stopping.abort(stop?.reason);
    await Promise.all([this.#node?.leave(), this.data.contributions.withdraw()]);
    if (stop) this.#become({ status: 'stopped', ...stop });
    this.#listeners.clear();
  }

  /** Announces a node, until it is there. @throws {ZooKeeperError} `closed` @throws the reason to stop */
  async #announced(lost: LostNode | undefined): Promise<AnnouncedNode> {
    const { clock, random } = this.data.context;
    const { lease, data = '' } = this.options;
    const { signal } = this.#stopping;
    const text = lease
      ? JSON.stringify({ taskId: lease.taskId, nodeId: lease.id, version: lease.version })
      : data;
    const retry = retrying({
      ...{ clock, random, signal },
      mayPass: (error) => !isFault(error, 'closed'),
      onFailure: (error) => {
        const problem = explain(error);
        this.#become(lost ? { status: 'replacing', lost, problem } : { status: 'connecting', problem });
      },
    });
    this.#node = await retry((call) => this.data.announce({ data: text, ...call }));
    return this.#node;
  }

  #untilGone(node: AnnouncedNode): Promise<DisconnectReason> {
    return new Promise((resolve) => {
      const onState = (state: NodeState) => {
        if (state.status === 'disconnected') resolve(state.reason);
        else this.#become({ status: state.status, node });
        if (state.status === 'joined') this.data.contributions.renew();
      };
      node.onState(onState);
      onState(node.state);
    });
  }

  async #declined(
    lost: LostNode,
  ): Promise<{ readonly reason: StopReason; readonly problem?: string } | undefined> {
    const { replace = 'automatic' } = this.options;
    if (replace === 'automatic') return undefined;
    const { signal } = this.#stopping;
    try {
      const answer = await orAborted(Promise.resolve(lost).then(replace), signal);
      return answer ? undefined : { reason: 'declined' };
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
