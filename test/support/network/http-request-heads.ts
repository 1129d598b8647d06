type State =
  | { readonly in: 'head' }
  | { readonly in: 'body'; left: number }
  | { readonly in: 'chunk-size' }
  | { readonly in: 'chunk'; left: number }
  | { readonly in: 'trailers' };

const LINE_END = '\r\n';
const HEAD_END = '\r\n\r\n';

/**
 * Follows one HTTP/1.1 connection from the client's side and says where each request's head begins and ends.
 */
export class HttpRequestHeads {
  readonly #onHead: (head: string, body: string) => void;
  #state: State = { in: 'head' };
  #text = '';

  /**
   * @param onHead called with every request line and its headers, without the empty line, and with what has
   * come after it so far
   */
  constructor(onHead: (head: string, body: string) => void) {
    this.#onHead = onHead;
  }

  /** Takes the next bytes of the connection, cut anywhere. */
  push(bytes: Buffer): void {
    // One character a byte, so that lengths are bytes; heads are ASCII anyway.
    this.#text += bytes.toString('latin1');
    while (this.#step()) {}
  }

  /** Consumes one element; false when more bytes are needed. */
  #step(): boolean {
    const state = this.#state;
    switch (state.in) {
      case 'head': {
        const head = this.#takeThrough(HEAD_END);
        if (head === undefined) return false;
        this.#onHead(head, this.#text);
        this.#state = bodyOf(head);
        return true;
      }
      case 'body':
      case 'chunk': {
        if (this.#text === '') return false;
        const taken = Math.min(state.left, this.#text.length);
        this.#text = this.#text.slice(taken);
        state.left -= taken;
        if (state.left === 0) this.#state = state.in === 'body' ? { in: 'head' } : { in: 'chunk-size' };
        return true;
      }
      case 'chunk-size': {
        const line = this.#takeThrough(LINE_END);
        if (line === undefined) return false;
        const size = Number.parseInt(line, 16);
        this.#state = size > 0 ? { in: 'chunk', left: size + LINE_END.length } : { in: 'trailers' };
        return true;
      }
      case 'trailers': {
        const line = this.#takeThrough(LINE_END);
        if (line === undefined) return false;
        if (line === '') this.#state = { in: 'head' };
        return true;
      }
    }
  }

  #takeThrough(end: string): string | undefined {
    const at = this.#text.indexOf(end);
    if (at < 0) return undefined;
    const taken = this.#text.slice(0, at);
    this.#text = this.#text.slice(at + end.length);
    return taken;
  }
}

function bodyOf(head: string): State {
  if (/^transfer-encoding:.*chunked\s*$/im.test(head)) return { in: 'chunk-size' };
  const length = Number(/^content-length:\s*(\d+)\s*$/im.exec(head)?.[1] ?? 0);
  return length > 0 ? { in: 'body', left: length } : { in: 'head' };
}
