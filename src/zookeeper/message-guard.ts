import type { ConnectionManager } from './library-internals.js';

/** No server sends a message this large: whoever seems to speaks another protocol. */
const LONGEST_MESSAGE = 1 << 26;

/** Answers that the library knows how to tell. Of others its code for "API error" is made, for want of a neutral one. */
const STAND_IN_CODE = -100;

export interface MessageGuardOptions {
  readonly manager: ConnectionManager;
  /** The codes that the library has names for. */
  readonly knownCodes: ReadonlySet<number>;
  /** A whole message has come. */
  readonly onMessage: () => void;
  /** The server sent something that cannot be understood: the connection is of no more use. */
  readonly onNonsense: (problem: string) => void;
}

/**
 * Stands between the socket and the library, which takes what a server sends in a way that can kill the process: it throws for codes and
 * events that it does not know, in a socket's handler where nobody can catch it; it calls itself once for each message of a burst; and it
 * takes the rest of a message from a broken connection for the beginning of the next one.
 *
 * The guard cuts the stream into messages itself, hands them over one at a time, translates the codes that the library does not know,
 * and gives up the connection where the library throws all the same.
 */
export class MessageGuard {
  /** The code of the answer that is being handed over: the server's own, where the library is given another. */
  code: number | undefined;
  #rest: Buffer = Buffer.alloc(0);
  readonly #library: (message: Buffer) => void;

  constructor(private readonly options: MessageGuardOptions) {
    const { manager } = options;
    this.#library = manager.onSocketData.bind(manager);
    manager.onSocketData = (bytes) => this.#take(bytes);
  }

  /** A new connection begins: what is left of the last one belongs to nothing. */
  reset(): void {
    this.#rest = Buffer.alloc(0);
  }

  #take(bytes: Buffer): void {
    const { manager, onMessage, onNonsense } = this.options;
    const { socket } = manager;
    let buffer = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#rest = Buffer.alloc(0);
    while (buffer.length >= 4) {
      const end = buffer.readInt32BE(0) + 4;
      if (end < 4 || end > LONGEST_MESSAGE) {
        onNonsense('it does not speak the protocol of ZooKeeper');
        return;
      }
      if (buffer.length < end) break;
      onMessage();
      try {
        this.#handOver(buffer.subarray(0, end));
      } catch (error) {
        onNonsense(`its answer cannot be understood: ${error instanceof Error ? error.message : String(error)}`);
        return;
      } finally {
        this.code = undefined;
      }
      // Something in it may have ended the connection.
      if (socket !== manager.socket || socket?.destroyed) return;
      buffer = buffer.subarray(end);
    }
    this.#rest = buffer;
  }

  #handOver(message: Buffer): void {
    const reply = readReply(message);
    if (reply !== undefined && reply.code !== 0 && this.options.manager.state !== CONNECTING) {
      this.code = reply.code;
      if (!this.options.knownCodes.has(reply.code)) message.writeInt32BE(STAND_IN_CODE, CODE_AT);
    }
    this.#library(message);
  }
}

/** The library's name for a connection over which no session is confirmed yet: the one message that comes then is of another form. */
const CONNECTING = 1;
const XID_AT = 4;
const CODE_AT = 16;

/** The code in the header of an answer: length, xid, zxid, code. Undefined for a notification, a ping, or an answer about credentials. */
function readReply(message: Buffer): { readonly code: number } | undefined {
  if (message.length < CODE_AT + 4 || message.readInt32BE(XID_AT) < 0) return undefined;
  return { code: message.readInt32BE(CODE_AT) };
}
