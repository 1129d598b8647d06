import { onAbort } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import type { LibrarySession } from './library-session.js';
import type { SessionKeeper } from './session-keeper.js';
import type { SessionState } from './session-state.js';
import type { CallOptions } from './zookeeper.js';
import { RequestFailure, ZooKeeperError, type ZooKeeperFault } from './zookeeper-error.js';

/** What is asked of the servers, for messages and for judging a failure. */
export interface Call {
  /** In the words of the port: `create`, `read`. */
  readonly operation: string;
  /** Within the chroot. */
  readonly path?: string | undefined;
  /** Those of a transaction's operations, in their order. */
  readonly paths?: readonly string[];
  /** Whether it may change anything. */
  readonly writes: boolean;
}

export interface CallQueueOptions {
  readonly keeper: SessionKeeper;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** The servers and the chroot, the beginning of every message. */
  readonly description: string;
}

/** A request that was sent, and in which session. */
interface Sent {
  readonly session: LibrarySession;
  /** Resolves once it has an answer, or none can come any more. */
  readonly answered: Promise<void>;
}

type Connected = SessionState & { status: 'connected' };

/** One call from when it is made to when it has an answer. */
interface Pending {
  readonly sessionId: string | undefined;
  send(): void;
  fail(fault: ZooKeeperFault, detail: string, cause?: unknown): void;
}

/**
 * Holds calls while there is no connection, and gives each its deadline and its signal.
 *
 * The library would queue without limit and send late; here a call that was given up is not sent any more, and the answer to one that was
 * sent is ignored.
 */
export class CallQueue {
  readonly #waiting = new Set<Pending>();
  readonly #all = new Set<Pending>();
  #closed = false;

  constructor(private readonly options: CallQueueOptions) {
    options.keeper.onState((state) => this.#onState(state));
  }

  /** Sends a request as soon as there is a connection, and resolves with its answer. */
  call<T>(call: Call, options: CallOptions, send: (session: LibrarySession) => Promise<T>): Promise<T> {
    return this.#begin(call, options, (_, resolve, reject) => {
      const { session } = this.options.keeper;
      const request = send(session);
      request.then(resolve, reject);
      return { session, answered: request.then(ignore, ignore) };
    });
  }

  /** Resolves with the session as soon as there is a connection. */
  whenConnected(options: CallOptions): Promise<Connected> {
    return this.#begin({ operation: 'connect', writes: false }, options, (state, resolve) => {
      resolve(state);
      return undefined;
    });
  }

  #begin<T>(
    call: Call,
    { timeoutMs = this.options.timeoutMs, signal, sessionId, reconnectOnTimeout = false }: CallOptions,
    run: (state: Connected, resolve: (value: T) => void, reject: (error: unknown) => void) => Sent | undefined,
  ): Promise<T> {
    const { clock, keeper } = this.options;
    return new Promise<T>((resolve, reject) => {
      let isSent = false;
      let sent: Sent | undefined;
      let forget: (() => void) | undefined;
      const timer = new AbortController();
      const settle = () => {
        this.#waiting.delete(pending);
        this.#all.delete(pending);
        timer.abort(SETTLED);
        forget?.();
      };
      const fail = (fault: ZooKeeperFault, detail: string, cause?: unknown) => {
        settle();
        reject(this.#error(call, fault, detail, isSent, cause));
      };
      const pending: Pending = {
        sessionId,
        fail,
        send: () => {
          const { state } = keeper;
          if (state.status !== 'connected') return;
          this.#waiting.delete(pending);
          isSent = true;
          sent = run(
            state,
            (value) => {
              if (!this.#all.has(pending)) return;
              settle();
              resolve(value);
            },
            (error) => {
              if (!this.#all.has(pending)) return;
              if (!(error instanceof RequestFailure)) return fail('refused', 'the client failed', error);
              settle();
              reject(this.#error(call, error.fault, detailOf(call, error), error.mayBeApplied, undefined, error.index));
            },
          );
        },
      };
      const giveUp = () => fail('aborted', 'given up', signal?.reason);
      this.#all.add(pending);
      if (this.#closed) return fail('closed', 'the client is closed');
      if (signal?.aborted) return giveUp();
      if (isOver(sessionId, keeper.state)) return fail('session-expired', `session ${sessionId} is over`);
      if (signal) forget = onAbort(signal, giveUp);
      clock.sleep(timeoutMs, timer.signal).then(
        () => {
          this.#late(pending, timeoutMs, isSent);
          if (sent && reconnectOnTimeout) void this.#giveUp(sent, timeoutMs);
        },
        // The call has ended in another way.
        () => undefined,
      );
      if (keeper.state.status === 'connected') pending.send();
      else this.#waiting.add(pending);
    });
  }

  #late(pending: Pending, timeoutMs: number, sent: boolean): void {
    const { problem } = this.options.keeper;
    const cause = problem === undefined ? undefined : new Error(problem);
    pending.fail('timeout', `no ${sent ? 'answer' : 'connection'} within ${Math.round(timeoutMs)} ms`, cause);
  }

  /** Has the connection given up over which a request was sent that is not answered. */
  async #giveUp({ session, answered }: Sent, timeoutMs: number): Promise<void> {
    const { clock } = this.options;
    // After a pause of this process timers come before the answers that wait in the socket: those get their turn.
    const turns = clock.sleep(0).then(() => clock.sleep(0));
    if ((await Promise.race([answered.then(() => true), turns])) !== true) session.giveUp(`no answer within ${Math.round(timeoutMs)} ms`);
  }

  #onState(state: SessionState): void {
    if (state.status === 'closed') {
      this.#closed = true;
      for (const pending of [...this.#all]) pending.fail('closed', 'the client is closed');
      return;
    }
    for (const pending of [...this.#waiting]) {
      if (isOver(pending.sessionId, state)) pending.fail('session-expired', `session ${pending.sessionId} is over`);
      else pending.send();
    }
  }

  #error(call: Call, fault: ZooKeeperFault, detail: string, mayBeApplied: boolean, cause: unknown, index = 0): ZooKeeperError {
    const { operation, writes } = call;
    const path = call.paths?.[index] ?? call.path;
    const what = path === undefined ? operation : `${operation} ${path}`;
    return new ZooKeeperError(`${this.options.description}: ${what}: ${detail} (${fault})`, {
      fault,
      path,
      cause,
      outcome: writes && mayBeApplied ? 'unknown' : 'not-applied',
    });
  }
}

const ignore = () => undefined;

/** One for all: nobody gets to see it. */
const SETTLED = new Error('the call has ended');

/** Whether a call is for a session that cannot be the next to be connected. */
function isOver(sessionId: string | undefined, state: SessionState): boolean {
  if (sessionId === undefined || state.status === 'closed') return false;
  return !('sessionId' in state) || state.status === 'expired' || state.sessionId !== sessionId;
}

function detailOf({ operation }: Call, { fault, message }: RequestFailure): string {
  return operation === 'create' && fault === 'no-node' ? 'its parent does not exist' : message;
}
