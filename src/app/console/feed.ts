import type { PageClock } from './page-clock.js';

/** How the connection to the server is doing. */
export type FeedState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** It was lost, or could not be made; tried again at `retryAt` of the monotonic clock, in milliseconds. */
  | { readonly kind: 'waiting'; readonly retryAt: number; readonly reason: string }
  /** The server wants a bearer token, or another one than it was sent. */
  | { readonly kind: 'token'; readonly refused: boolean };

/** One event of a stream of server-sent events. */
export interface StreamEvent {
  readonly event: string;
  readonly data: string;
}

interface FeedOptions {
  /** Asks for the stream, with this token where there is one. Rejects when no server answers. */
  readonly open: (token: string | undefined, signal: AbortSignal) => Promise<Response>;
  readonly clock: PageClock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly onState: (state: FeedState) => void;
  readonly onEvent: (event: StreamEvent) => void;
}

/** The waits between attempts, in milliseconds: doubled from the first to the longest. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 10_000;
/**
 * The server sends something at least every 10 seconds: a connection that is silent for longer is dead, in
 * milliseconds.
 */
const SILENCE_MS = 25_000;
/** For as long as there can be a wait: until a token is given. */
const FOREVER_MS = 2 ** 31 - 1;
/**
 * More than this in one event is no console talking, in characters: a page of 1,000 ids takes about 400,000.
 */
const LONGEST_EVENT = 64_000_000;

/**
 * Keeps a stream of server-sent events coming: connects, and connects again whenever that fails, after 1 to
 * 10 seconds with jitter. By `fetch`, because an `EventSource` can send no bearer token.
 */
export class Feed {
  /** Sent with each attempt. */
  token: string | undefined;
  #hurry = new AbortController();
  #failures = 0;

  constructor(private readonly options: FeedOptions) {}

  /** Goes on for as long as the page is open. */
  async run(): Promise<never> {
    const { clock, onState } = this.options;
    for (;;) {
      const state = await this.#attempt();
      this.#hurry = new AbortController();
      onState(state);
      const wait = state.kind === 'waiting' ? state.retryAt - clock.monotonic() : FOREVER_MS;
      await clock.sleep(wait, this.#hurry.signal).catch(() => undefined);
    }
  }

  /** Tries at once instead of waiting; with a token, if one is given. */
  retry(token?: string): void {
    this.token = token ?? this.token;
    this.#hurry.abort();
  }

  /** One connection, from its beginning to its end. */
  async #attempt(): Promise<FeedState> {
    const { open, onState } = this.options;
    const ending = new AbortController();
    onState({ kind: 'connecting' });
    try {
      const response = await this.#inTime(open(this.token, ending.signal));
      if (response.status === 401) return { kind: 'token', refused: this.token !== undefined };
      if (!response.ok || response.body === null)
        return this.#failed(await this.#inTime(refusalOf(response)));
      await this.#read(response.body.getReader());
      return this.#failed('the connection has ended');
    } catch (error) {
      // Of other failures browsers report no details.
      return this.#failed(error instanceof RangeError ? error.message : 'the server cannot be reached');
    } finally {
      ending.abort();
    }
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>) {
    const { onState, onEvent } = this.options;
    const decoder = new TextDecoder();
    let rest = '';
    for (let isLive = false; ; ) {
      const { done, value } = await this.#inTime(reader.read());
      if (done) return;
      const piece = decoder.decode(value, { stream: true });
      // Only a piece with the end of a line can end an event: a long one comes in many pieces.
      const blocks = piece.includes('\n') ? (rest + piece).split('\n\n') : [rest + piece];
      rest = blocks.pop() ?? '';
      if (rest.length > LONGEST_EVENT) throw new RangeError('the server has sent an event that does not end');
      for (const event of blocks.flatMap(eventOf)) {
        try {
          onEvent(event);
        } catch (cause) {
          throw new RangeError('the server has sent something that this page does not understand', { cause });
        }
        if (!isLive) onState({ kind: 'live' });
        isLive = true;
        this.#failures = 0;
      }
    }
  }

  /** @throws {RangeError} when the server is silent for too long */
  async #inTime<T>(answer: Promise<T>): Promise<T> {
    const over = new AbortController();
    const silence = this.options.clock.sleep(SILENCE_MS, over.signal).then(() => {
      throw new RangeError('the server has fallen silent');
    });
    try {
      return await Promise.race([answer, silence]);
    } finally {
      over.abort();
    }
  }

  #failed(reason: string): FeedState {
    const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    this.#failures += 1;
    const wait = longest * (0.5 + this.options.random() / 2);
    return {
      kind: 'waiting',
      retryAt: this.options.clock.monotonic() + Math.max(FIRST_WAIT_MS, wait),
      reason,
    };
  }
}

/** The event of a block of lines, as this server writes them; none for a comment. */
function eventOf(block: string): StreamEvent[] {
  const lines = block.split('\n');
  const valuesOf = (field: string) =>
    lines.flatMap((line) => (line.startsWith(field) ? [line.slice(field.length)] : []));
  const data = valuesOf('data: ');
  return data.length === 0 ? [] : [{ event: valuesOf('event: ').join(), data: data.join('\n') }];
}

/** The header of a request with the token. */
export function authorization(token: string | undefined): Readonly<Record<string, string>> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** Why the server refuses: what it says itself, where it says anything. */
export async function refusalOf(response: Response): Promise<string> {
  try {
    const { message } = (await response.json()) as { message?: unknown };
    if (typeof message === 'string') return message;
  } catch {
    // Not one of our answers: its status has to do.
  }
  return `the server answered with status ${response.status}`;
}
