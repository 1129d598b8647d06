import type { Clock } from '../../../core/base/clock.js';
import { RequestFailure } from '../zookeeper.js';
import type { ConnectionManager, MessageGuard } from './library-internals.js';
import { Answer, AUTH_REQUIRED, failureOf, type Request, SESSION_MOVED } from './messages.js';
import type { SessionActivity } from './session-activity.js';

/** The default limit of servers for one request, in bytes (`jute.maxbuffer`). */
const LARGEST_REQUEST = 1_048_575;

/** What there is to send without a turn. */
const NO_REQUESTS: Pick<Turn, 'first' | 'last'> = { first: [], last: [] };

/** A request that has no answer yet. */
interface PendingRequest {
  readonly request: Request;
  readonly sentAt: number;
  xid?: number;
  /** The caller's part. May throw a {@link RequestFailure}, which the caller gets through `reject`. */
  resolve(answer: Answer): void;
  reject(failure: RequestFailure): void;
}

/**
 * The requests of one turn of the event loop. No request is sent before `sentAt`, and `last` is sent after
 * the others.
 */
interface Turn {
  readonly sentAt: number;
  readonly first: PendingRequest[];
  readonly last: PendingRequest[];
}

interface RequestPipelineOptions {
  readonly manager: ConnectionManager;
  readonly guard: MessageGuard;
  readonly activity: SessionActivity;
  readonly clock: Clock;
  /** This connection is no longer usable: the session has moved, or is not let in. */
  readonly unusable: (problem: string) => void;
}

/**
 * The requests of one session that have no answer yet. The requests of one turn of the event loop are sent in
 * one write, at its end.
 */
export class RequestPipeline {
  /** Whether the session is confirmed over a connection that is still open. */
  isOpen = false;
  /** How many requests were answered, other than by the refusal of the session. */
  answers = 0;
  /** In the order of sending, which is that of the answers. */
  readonly #sent: PendingRequest[] = [];
  #turn: Turn | undefined;

  constructor(private readonly options: RequestPipelineOptions) {}

  /**
   * Sends a request, with `isLast` after the others of this turn of the event loop: a caller waits for an
   * answer, and a watch for changes.
   *
   * @param read reads the answer. May throw a {@link RequestFailure}
   * @throws {RequestFailure} a server's refusal; `connection-loss` without a connection, or when it breaks
   */
  send<T>(request: Request, read: (answer: Answer) => T, isLast = false): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (!this.isOpen) return reject(new RequestFailure('connection-loss', false, 'there is no connection'));
      // A server closes the connection on it, every time that it is sent.
      if (request.size > LARGEST_REQUEST)
        return reject(
          new RequestFailure(
            'refused',
            false,
            `${request.size} bytes, where a request takes ${LARGEST_REQUEST}`,
          ),
        );
      const { sentAt, first, last } = this.turn();
      (isLast ? last : first).push({ request, sentAt, resolve: (answer) => resolve(read(answer)), reject });
    });
  }

  /** The current turn of the event loop. @param now the time, if the clock was just read */
  turn(now?: number): Turn {
    if (this.#turn) return this.#turn;
    const { guard, clock } = this.options;
    guard.readAt = now ?? clock.monotonic();
    this.#turn = { sentAt: guard.readAt, first: [], last: [] };
    process.nextTick(() => this.flush());
    return this.#turn;
  }

  /** Ends the current turn, and sends its requests now. */
  flush(): void {
    const { first, last } = this.#turn ?? NO_REQUESTS;
    this.#turn = undefined;
    const bytes = [...first, ...last].map((pending) => this.#number(pending));
    if (bytes.length > 0) this.options.manager.socket?.write(Buffer.concat(bytes));
  }

  #number(pending: PendingRequest): Buffer {
    const { manager } = this.options;
    // Sent as 32 bits, and shared with the library, which counts it up without end.
    if (manager.xid >= 0x7fff_ff00) manager.xid = 1;
    pending.xid = manager.xid;
    manager.xid += 1;
    this.#sent.push(pending);
    return pending.request.numbered(pending.xid);
  }

  /** Takes a message. Returns false where it does not answer the request that is the next one in turn. */
  answered(xid: number, message: Buffer): boolean {
    const [pending] = this.#sent;
    if (pending === undefined || pending.xid !== xid) return false;
    const { manager, activity, clock, unusable } = this.options;
    const answer = new Answer(message);
    const { code } = answer;
    manager.zxid = answer.zxid;
    // A refusal is an answer, too.
    if (activity.isNews(pending.sentAt)) activity.answered(pending.sentAt, clock.monotonic());
    if (code !== AUTH_REQUIRED) this.answers += 1;
    try {
      if (code !== 0) throw failureOf(code);
      pending.resolve(answer);
    } catch (failure) {
      // Not a refusal: an unreadable answer ends the connection.
      if (!(failure instanceof RequestFailure)) throw failure;
      pending.reject(failure);
      if (code === SESSION_MOVED || code === AUTH_REQUIRED) unusable(failure.message);
    }
    this.#sent.shift();
    return true;
  }

  /** Fails all that is under way. */
  fail(failure: RequestFailure): void {
    const { first, last } = this.#turn ?? NO_REQUESTS;
    for (const pending of [this.#sent, first, last].flatMap((each) => each.splice(0)))
      pending.reject(failure);
  }
}
