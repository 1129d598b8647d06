import type { Actor, Scheduler } from '../../world/scheduler.js';
import { Line } from './line.js';
import type { ClientMessage, Reply, Request, ServerMessage } from './protocol.js';

/** A request that a server has taken in, and its answer once that is there. */
export interface Pending {
  readonly request: Request;
  reply: Reply | undefined;
}

export interface ConnectionOptions {
  readonly scheduler: Scheduler;
  readonly latencyMs: () => number;
  /** Until when nothing passes between the client's machine and the server, and either of them. */
  readonly heldUntil: () => number;
  /** The client's process. */
  readonly actor: Actor;
  readonly toServer: (connection: Connection, message: ClientMessage) => void;
  readonly toClient: (message: ServerMessage) => void;
}

/** A TCP connection between a client and a server, both of its ends. */
export class Connection {
  readonly up: Line<ClientMessage>;
  readonly down: Line<ServerMessage>;
  /** Set by the server. */
  sessionId: string | undefined;
  /** Requests that the server has not answered, in their order. */
  readonly pending: Pending[] = [];
  #clientOpen = true;
  #serverOpen = true;
  /** Nothing that the server sends arrives any more. */
  #deaf = false;

  constructor(readonly options: ConnectionOptions) {
    const { scheduler, latencyMs, heldUntil, actor } = options;
    this.up = new Line({
      ...{ scheduler, latencyMs, heldUntil },
      deliver: (message) => {
        if (this.#serverOpen) options.toServer(this, message);
      },
    });
    this.down = new Line({
      ...{ scheduler, latencyMs, heldUntil, actor },
      deliver: (message) => {
        if (!this.#clientOpen || (this.#deaf && message.kind !== 'closed')) return;
        if (message.kind === 'closed') this.#clientOpen = false;
        options.toClient(message);
      },
    });
  }

  get serverOpen(): boolean {
    return this.#serverOpen;
  }

  /** The server's end is closed. What it has sent still arrives. */
  closeServer(): void {
    if (!this.#serverOpen) return;
    this.#serverOpen = false;
    this.down.send({ kind: 'closed' });
  }

  /**
   * The client's end is closed.
   * @param lossy whether what it has sent is lost, rather than still delivered
   */
  closeClient(lossy: boolean): void {
    if (!this.#clientOpen) return;
    this.#clientOpen = false;
    if (lossy) this.up.drop();
    this.up.send({ kind: 'closed' });
  }

  /** What has been sent to the server still arrives, and then it breaks: all replies are lost. */
  loseReplies(): void {
    this.#deaf = true;
    this.up.send({ kind: 'closed' });
  }

  /**
   * Something in between breaks it.
   * @param lossy whether requests under way are lost too, not replies alone
   */
  reset(lossy: boolean): void {
    if (lossy) this.up.drop();
    this.loseReplies();
    this.down.send({ kind: 'closed' });
  }
}
