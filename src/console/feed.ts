import { EventStreamParser, type StreamEvent } from './event-stream.js';
import type { PageClock } from './page-clock.js';

/** How the connection to the server is doing. */
export type FeedState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** It was lost, or could not be made; tried again at `retryAt` of the monotonic clock, in milliseconds. */
  | { readonly kind: 'waiting'; readonly retryAt: number; readonly reason: string }
  /** The server wants a bearer token, or another one than it was sent. */
  | { readonly kind: 'token'; readonly refused: boolean };

export interface FeedOptions {
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
/** The server sends something at least every 10 seconds: a connection that is silent for longer is dead, in milliseconds. */
const SILENCE_MS = 25_000;

/**
 * Keeps a stream of server-sent events coming: connects, and connects again whenever that fails, after 1 to 10 seconds with jitter. By `fetch`,
 * because an `EventSource` can send no bearer token.
 */
export class Feed {
  #token: string | undefined;
  #hurry = new AbortController();
  #failures = 0;

  constructor(private readonly options: FeedOptions) {}

  /** Goes on until `signal` aborts, and resolves then. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const wait = await this.#attempt(signal);
      if (signal.aborted) return;
      await this.#pause(wait, signal);
    }
  }

  /** Tries at once instead of waiting; with a token, if one is given. */
  retry(token?: string): void {
    this.#token = token ?? this.#token;
    this.#hurry.abort();
  }

  /** One connection, from its beginning to its end. */
  async #attempt(signal: AbortSignal): Promise<FeedState> {
    const { open, onState } = this.options;
    const ending = new AbortController();
    const end = () => ending.abort(signal.reason);
    signal.addEventListener('abort', end);
    const watch = new SilenceWatch(this.options.clock, SILENCE_MS, ending);
    onState({ kind: 'connecting' });
    try {
      const response = await open(this.#token, ending.signal);
      if (response.status === 401) return { kind: 'token', refused: this.#token !== undefined };
      if (!response.ok || response.body === null) return this.#failed(await refusalOf(response));
      await this.#read(response.body, watch);
      return this.#failed('the connection has ended');
    } catch (error) {
      return this.#failed(watch.isDead ? 'the server has fallen silent' : causeOf(error));
    } finally {
      watch.end();
      signal.removeEventListener('abort', end);
      ending.abort();
    }
  }

  async #read(body: ReadableStream<Uint8Array>, watch: SilenceWatch): Promise<void> {
    const { onState, onEvent } = this.options;
    const decoder = new TextDecoder();
    const parser = new EventStreamParser();
    const reader = body.getReader();
    for (let isLive = false; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      watch.heard();
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        try {
          onEvent(event);
        } catch (cause) {
          throw new RangeError('the server has sent something that this page does not understand', { cause });
        }
        if (isLive) continue;
        isLive = true;
        this.#failures = 0;
        onState({ kind: 'live' });
      }
    }
  }

  #failed(reason: string): FeedState {
    const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    this.#failures += 1;
    const wait = longest * (0.5 + this.options.random() / 2);
    return { kind: 'waiting', retryAt: this.options.clock.monotonic() + Math.max(FIRST_WAIT_MS, wait), reason };
  }

  async #pause(state: FeedState, signal: AbortSignal): Promise<void> {
    const { clock, onState } = this.options;
    this.#hurry = new AbortController();
    const hurry = this.#hurry;
    const end = () => hurry.abort();
    signal.addEventListener('abort', end);
    onState(state);
    // Without a token there is nothing to wait for but the token.
    const until = state.kind === 'waiting' ? state.retryAt - clock.monotonic() : 2 ** 31 - 1;
    await clock.sleep(until, hurry.signal).catch(() => undefined);
    signal.removeEventListener('abort', end);
  }
}

/** Ends a connection on which nothing is heard any more. */
class SilenceWatch {
  isDead = false;
  #heardAt: number;
  readonly #over = new AbortController();

  constructor(clock: PageClock, limitMs: number, ending: AbortController) {
    this.clock = clock;
    this.#heardAt = clock.monotonic();
    void this.#watch(limitMs, ending);
  }

  private readonly clock: PageClock;

  heard(): void {
    this.#heardAt = this.clock.monotonic();
  }

  end(): void {
    this.#over.abort();
  }

  async #watch(limitMs: number, ending: AbortController): Promise<void> {
    try {
      for (;;) {
        const left = this.#heardAt + limitMs - this.clock.monotonic();
        if (left <= 0) break;
        await this.clock.sleep(left, this.#over.signal);
      }
      this.isDead = true;
      ending.abort();
    } catch {
      // The connection has ended before.
    }
  }
}

/** Why the server does not send a stream: what it says itself, where it says anything. */
async function refusalOf(response: Response): Promise<string> {
  try {
    const { message } = (await response.json()) as { message?: unknown };
    if (typeof message === 'string') return message;
  } catch {
    // Not one of our answers: its status has to do.
  }
  return `the server answered with status ${response.status}`;
}

/** Browsers tell no more than that it failed. */
function causeOf(error: unknown): string {
  return error instanceof RangeError ? error.message : 'the server cannot be reached';
}
