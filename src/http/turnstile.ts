import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Answers one request. */
export type AnswerRequest = (request: IncomingMessage, response: ServerResponse) => void;

/** The requests of one connection, in their order. */
interface Lane {
  /** Ends the one that is under way; undefined where there is none. */
  end: (() => void) | undefined;
  readonly waiting: (() => void)[];
  /** How many were refused for those that wait, and have not been answered yet. */
  refused: number;
}

/** How many requests of one connection may wait for the one before them. */
const MOST_WAITING = 8;
/** And how many more are refused, with an answer. */
const MOST_REFUSED = 8;

/**
 * Lets requests in: one at a time for each connection, and so many in all. One is under way until its answer has been handed to the operating
 * system, so that whoever asks for much and reads none of it gets no further answer made; what is beyond the bounds is refused, in its turn.
 * A connection that sends still more ahead is closed: a thousand refusals in one turn of the event loop would take longer than all else.
 *
 * Node itself would have all requests answered that one connection sends ahead (pipelining), and keep the answers.
 */
export class Turnstile {
  readonly #lanes = new WeakMap<Socket, Lane>();
  #underWay = 0;

  /**
   * @param most how many requests may be under way in all
   * @param refuse answers those that are too many, at once and with little
   * @param isUrgent whether a request is let in in any case, in its turn, for it is answered at once and with little, too
   */
  constructor(
    private readonly most: number,
    private readonly answer: AnswerRequest,
    private readonly refuse: AnswerRequest,
    private readonly isUrgent: (request: IncomingMessage) => boolean = () => false,
  ) {}

  /** Answers a request in its turn, or refuses it, or closes its connection. Nobody is answered whose connection has gone before that. */
  admit(request: IncomingMessage, response: ServerResponse): void {
    if (request.socket.destroyed) return;
    const lane = this.#laneOf(request.socket);
    if (lane.end === undefined) this.#begin(lane, request, response);
    else if (lane.waiting.length < MOST_WAITING) lane.waiting.push(() => this.#begin(lane, request, response));
    else if (lane.refused < MOST_REFUSED) this.#refuseNow(lane, request, response);
    else request.socket.destroy();
  }

  /** Node sends it after those that wait. */
  #refuseNow(lane: Lane, request: IncomingMessage, response: ServerResponse): void {
    lane.refused += 1;
    response.once('close', () => {
      lane.refused -= 1;
    });
    this.refuse(request, response);
  }

  #begin(lane: Lane, request: IncomingMessage, response: ServerResponse): void {
    const isUrgent = this.isUrgent(request);
    const isCounted = !isUrgent && this.#underWay < this.most;
    if (isCounted) this.#underWay += 1;
    const end = () => {
      if (lane.end !== end) return;
      lane.end = undefined;
      if (isCounted) this.#underWay -= 1;
      if (!request.socket.destroyed) lane.waiting.shift()?.();
    };
    lane.end = end;
    response.once('close', end);
    (isUrgent || isCounted ? this.answer : this.refuse)(request, response);
  }

  #laneOf(socket: Socket): Lane {
    const known = this.#lanes.get(socket);
    if (known) return known;
    const lane: Lane = { end: undefined, waiting: [], refused: 0 };
    this.#lanes.set(socket, lane);
    // A response that has not come to its turn on the connection does not learn that it closes.
    socket.once('close', () => lane.end?.());
    return lane;
  }
}
