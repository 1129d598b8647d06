import type { Socket } from 'node:net';
import type { Clock } from '../clock.js';

/** For how long a client that was refused may go on sending, in milliseconds: it must be able to read why. */
const LINGER_MS = 1_000;
/** And how much, in bytes. */
const LINGER_BYTES = 4 * 1024 * 1024;

/** What is answered to bytes that are no proper request, by Node's code for what is wrong with them. */
interface Refusal {
  readonly status: string;
  readonly error: string;
  readonly message: string;
}

const OTHERWISE: Refusal = {
  status: '400 Bad Request',
  error: 'bad-request',
  message: 'expected a request in HTTP/1.1, got something else',
};

/**
 * Answers what is no proper request and closes the connection, a moment later: were it closed while the client still sends, the operating
 * system would throw away the answer.
 */
export class RefusedBytes {
  readonly #refused = new WeakSet<Socket>();
  readonly #refusals: Readonly<Record<string, Refusal>>;

  /** @param largestHead how large the head of a request may be, in bytes */
  constructor(
    private readonly clock: Pick<Clock, 'sleep'>,
    largestHead: number,
  ) {
    this.#refusals = {
      HPE_HEADER_OVERFLOW: {
        status: '431 Request Header Fields Too Large',
        error: 'too-large',
        message: `the head of the request: expected at most ${largestHead} bytes`,
      },
      HPE_CHUNK_EXTENSIONS_OVERFLOW: {
        status: '413 Payload Too Large',
        error: 'too-large',
        message: 'the extensions of a chunk are too long',
      },
      ERR_HTTP_REQUEST_TIMEOUT: { status: '408 Request Timeout', error: 'too-slow', message: 'the request did not come in time' },
    };
  }

  /** @param isAnswering whether an answer may be on its way to the client, which must not be mixed with another one */
  refuse(error: NodeJS.ErrnoException, socket: Socket, isAnswering: boolean): void {
    if (this.#refused.has(socket)) {
      if (socket.bytesRead > LINGER_BYTES) socket.destroy();
      return;
    }
    this.#refused.add(socket);
    if (isAnswering || !socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const { status, error: code, message } = this.#refusals[error.code ?? ''] ?? OTHERWISE;
    const body = JSON.stringify({ error: code, message });
    const head = [`HTTP/1.1 ${status}`, 'connection: close', 'content-type: application/json', 'cache-control: no-store'];
    socket.end([...head, `content-length: ${Buffer.byteLength(body)}`, '', body].join('\r\n'));
    void this.#linger(socket);
  }

  async #linger(socket: Socket): Promise<void> {
    const gone = new AbortController();
    socket.once('close', () => gone.abort());
    await this.clock.sleep(LINGER_MS, gone.signal).catch(() => {});
    socket.destroy();
  }
}
