import type { Connection } from './ensemble/connection.js';
import type { ServerMessage } from './ensemble/protocol.js';

/** The machine that a session's client runs on, and its network. */
export interface ClientHost {
  connect(server: number, take: (message: ServerMessage) => void): Connection;
  /** Has something done at the end of this turn of the event loop. */
  atEndOfTurn(act: () => void): void;
  /** What is to happen to the request that is sent now. */
  fault(): 'request-lost' | 'reply-lost' | number;
  /** Whether what a closed socket has sent is lost, rather than still delivered. */
  losesSent(): boolean;
}
