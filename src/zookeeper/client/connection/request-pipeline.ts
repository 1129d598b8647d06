import type { Socket } from 'node:net';
import type { Clock } from '../../../core/base/clock.js';
import { RequestFailure } from '../zookeeper.js';
import type { ConnectionManager, MessageGuard } from './library-internals.js';
import { Answer, AUTH_REQUIRED, failureOf, type Request, SESSION_MOVED } from './messages.js';
import type { SessionActivity } from './session-activity.js';

/** The default limit of servers for one request, in bytes (`jute.maxbuffer`). */
const LARGEST_REQUEST = 1_048_575;

/**
 * The requests of one turn of the event loop. No request is sent before `sentAt`, and `last` is sent after
 * the others.
 */
interface Turn {
  readonly socket: Socket | undefined;
  readonly sentAt: number;
  readonly last: (() => void)[];
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
  readonly #underWay = new Set<(failure: RequestFailure) => void>();
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
    const { manager, guard, activity, clock, unusable } = this.options;
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
      this.#underWay.add(reject);
      const { sentAt, last } = this.turn();
      const post = () => {
        // The connection may have been lost since.
        if (!this.#underWay.has(reject)) return;
        // Sent as 32 bits, and counted up without end by the library.
        if (manager.xid >= 0x7fff_ff00) manager.xid = 1;
        manager.queue(request, (error) => {
          if (!this.#underWay.has(reject)) return;
          const { message, code } = guard;
          // A refusal is an answer, too. There is a message only during the call.
          if (message && activity.isNews(sentAt)) activity.answered(sentAt, clock.monotonic());
          if (code !== AUTH_REQUIRED) this.answers += 1;
          try {
            if (error)
              throw failureOf(code || ('code' in error && typeof error.code === 'number' ? error.code : 0));
            resolve(read(new Answer(message as Buffer)));
          } catch (failure) {
            // Not a refusal: an unreadable answer ends the connection.
            if (!(failure instanceof RequestFailure)) throw failure;
            reject(failure);
            if (code === SESSION_MOVED || code === AUTH_REQUIRED) unusable(failure.message);
          }
          this.#underWay.delete(reject);
        });
      };
      if (isLast) last.push(post);
      else post();
    });
  }

  /** The current turn of the event loop. @param now the time, if the clock was just read */
  turn(now?: number): Turn {
    if (this.#turn) return this.#turn;
    const { manager, guard, clock } = this.options;
    const { socket } = manager;
    guard.readAt = now ?? clock.monotonic();
    this.#turn = { socket, sentAt: guard.readAt, last: [] };
    socket?.cork();
    process.nextTick(() => this.flush());
    return this.#turn;
  }

  /** Ends the current turn, and sends its requests now. */
  flush(): void {
    for (const post of this.#turn?.last ?? []) post();
    this.#turn?.socket?.uncork();
    this.#turn = undefined;
  }

  /** Fails all that is under way. */
  fail(failure: RequestFailure): void {
    const failing = [...this.#underWay];
    this.#underWay.clear();
    for (const fail of failing) fail(failure);
  }
}
