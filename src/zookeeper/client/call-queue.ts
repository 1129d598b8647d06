import { until } from '../../core/base/abort.js';
import type { Clock } from '../../core/base/clock.js';
import { CallLimits, oneCall } from './call-limits.js';
import type { Session } from './connection/library-session.js';
import type { SessionKeeper } from './session-keeper.js';
import { type ConnectedState, isSessionOver } from './session-state.js';
import { type CallOptions, RequestFailure, ZooKeeperError, type ZooKeeperFault } from './zookeeper.js';

/** A request to the servers, for messages and for judging a failure. */
export interface Call {
  /** In the words of the port: `create`, `read`. */
  readonly operation: string;
  /** Within the chroot. */
  readonly path?: string | undefined;
  /** The paths of a transaction's operations, in their order. */
  readonly paths?: readonly string[];
  /** Whether it may change anything. */
  readonly writes: boolean;
}

/** Why a call ends before its answer, apart from the caller's signal. */
const LATE = new Error('the time is over');
const CLOSED = new Error('the client is closed');
const SESSION_OVER = new Error('the session is over');

/**
 * Holds calls while there is no connection, and gives each its deadline and its signal.
 *
 * The library would queue without limit and send late. Here a call that was given up is not sent any more,
 * and the answer to one that was sent is ignored.
 */
export class CallQueue {
  readonly #limits: CallLimits;

  /** @param description the servers and the chroot, the beginning of every message */
  constructor(
    private readonly keeper: SessionKeeper,
    private readonly clock: Clock,
    private readonly timeoutMs: number,
    private readonly description: string,
  ) {
    this.#limits = new CallLimits(clock, LATE);
    keeper.onState(({ status }) => {
      if (status === 'closed') this.#limits.close(CLOSED);
    });
  }

  /** Resolves with the session as soon as there is a connection. */
  async whenConnected(options: CallOptions): Promise<ConnectedState> {
    const { state } = this.keeper;
    const { sessionId, signal } = options;
    if (state.status === 'connected' && sessionId === undefined && !signal?.aborted) return state;
    return this.#run({ operation: 'connect', writes: false }, options, async (state) => state);
  }

  /** Sends a request as soon as there is a connection, and resolves with its answer. */
  call<T>(call: Call, options: CallOptions, send: (session: Session) => Promise<T>): Promise<T> {
    return this.#run(call, options, () => send(this.keeper.session));
  }

  /** The options of several requests that are one call, and so have one deadline. */
  oneCall(options: CallOptions): () => CallOptions {
    return oneCall(this.clock, options, this.timeoutMs);
  }

  async #run<T>(
    call: Call,
    { timeoutMs = this.timeoutMs, signal, sessionId, reconnectOnTimeout = false }: CallOptions,
    send: (state: ConnectedState) => Promise<T>,
  ): Promise<T> {
    const { keeper } = this;
    const begunAt = this.clock.monotonic();
    const limit = this.#limits.begin(begunAt, timeoutMs, signal);
    // To read the clock takes longer than much of a request: once a call.
    if (keeper.state.status === 'connected') keeper.session.turn(begunAt);
    let session: Session | undefined;
    let answer: Promise<T> | undefined;
    try {
      for (;;) {
        const { state } = keeper;
        // Where the call is for a session that cannot be the next to be connected.
        if (sessionId !== undefined && state.status !== 'closed' && isSessionOver(state, sessionId))
          throw SESSION_OVER;
        if (state.status === 'connected') {
          return await limit.bound(() => {
            session = keeper.session;
            answer = send(state);
            return answer;
          });
        }
        await until(
          (listener) => keeper.onState(listener),
          () => keeper.state !== state || undefined,
          (changed) => limit.bound(() => changed),
        );
      }
    } catch (error) {
      const failed = (fault: ZooKeeperFault, detail: string, cause?: unknown) =>
        this.#error(call, fault, detail, { mayBeApplied: session !== undefined, cause });
      if (error instanceof RequestFailure) throw this.#error(call, error.fault, detailOf(call, error), error);
      if (error === CLOSED) throw failed('closed', CLOSED.message);
      if (error === SESSION_OVER) throw failed('session-expired', `session ${sessionId} is over`);
      if (signal?.aborted && error === signal.reason) throw failed('aborted', 'given up', error);
      if (error !== LATE) throw failed('refused', 'the client failed', error);
      const late = `no ${session ? 'answer' : 'connection'} within ${Math.round(timeoutMs)} ms`;
      if (session && answer && reconnectOnTimeout) void this.#giveUp(session, answer, late);
      throw failed('timeout', late, keeper.problem && new Error(keeper.problem));
    } finally {
      this.#limits.release(limit);
    }
  }

  /** Has the connection given up over which a request was sent that is not answered. */
  async #giveUp(session: Session, answer: Promise<unknown>, problem: string) {
    const { clock } = this;
    // After a pause of this process, timers run before the answers that wait in the socket. These two turns
    // let the answers in.
    const turns = clock.sleep(0).then(() => clock.sleep(0));
    const isAnswered = () => true;
    if ((await Promise.race([answer.then(isAnswered, isAnswered), turns])) !== true) session.giveUp(problem);
  }

  #error(
    { operation, path, paths, writes }: Call,
    fault: ZooKeeperFault,
    detail: string,
    { mayBeApplied, cause, index = 0 }: Pick<RequestFailure, 'mayBeApplied' | 'cause' | 'index'>,
  ): ZooKeeperError {
    const about = paths?.[index] ?? path;
    const what = about === undefined ? operation : `${operation} ${about}`;
    return new ZooKeeperError(
      `${this.description}: ${what}: ${detail} (${fault})`,
      fault,
      writes && mayBeApplied ? 'unknown' : 'not-applied',
      about,
      cause,
    );
  }
}

function detailOf({ operation }: Call, { fault, message }: RequestFailure): string {
  return operation === 'create' && fault === 'no-node' ? 'its parent does not exist' : message;
}
