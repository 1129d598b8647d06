import { checkArguments, FLAG, FUNCTION, kind, whole } from '../../../core/base/arguments.js';
import type { Clock } from '../../../core/base/clock.js';
import { PLAIN, unavailable } from '../problem.js';
import { checkOrigin } from './access.js';
import { HTTP_LIMITS } from './http-limits.js';

/** When a client may ask for a stream again, in seconds. */
const RETRY_S = 5;
const REQUEST = kind('a Request', (value) => typeof Object(Object(value).headers).get === 'function');

/**
 * Answers that continue for as long as their clients listen. They have a separate limit, so that they never
 * take the place of requests that are answered at once, and they end with the server.
 */
export class OpenStreams {
  /** What ends each of them. */
  readonly #open = new Set<() => void>();
  readonly #others: OpenStreams[] = [];
  #isOver = false;

  /** @param makesRoom whether the oldest one ends where there are too many, instead of the newest */
  constructor(
    private readonly max: number = HTTP_LIMITS.streams,
    private readonly makesRoom = false,
  ) {
    checkArguments({ max, makesRoom }, { max: whole(1), makesRoom: FLAG });
  }

  /**
   * Further streams, which have their own limit, and end with these. A new client always has room: the oldest
   * one has to connect again.
   */
  ofTheirOwn(max: number): OpenStreams {
    checkArguments({ max }, { max: whole(1) });
    const others = new OpenStreams(max, true);
    this.#others.push(others);
    return others;
  }

  /** How many there are. */
  get count(): number {
    return this.#open.size;
  }

  /**
   * A stream of what `source` yields. It counts until that has ended or its client has gone; `gone` aborts
   * then. The source is asked for more only when the client has taken what there is: nothing is kept for it.
   *
   * @param last what a client is sent at the end, where the server ends
   * @throws {HttpProblem} `unavailable` when there are too many
   */
  open(
    source: (gone: AbortSignal) => AsyncGenerator<Uint8Array, void>,
    last: () => Uint8Array = () => new Uint8Array(),
  ): ReadableStream<Uint8Array> {
    checkArguments({ source, last }, { source: FUNCTION, last: FUNCTION });
    if (this.#isOver) throw unavailable('this server is being closed', RETRY_S);
    if (this.makesRoom && this.count >= this.max) [...this.#open][0]?.();
    if (this.count >= this.max)
      throw unavailable(`there are ${this.max} streams already, which is the most`, RETRY_S);
    const gone = new AbortController();
    const chunks = source(gone.signal);
    let close: () => void;
    const over = async () => {
      this.#open.delete(close);
      gone.abort();
      await chunks.return();
    };
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          close = () => {
            void over();
            const rest = last();
            if (rest.length > 0) controller.enqueue(rest);
            controller.close();
          };
          this.#open.add(close);
        },
        pull: async (controller) => {
          try {
            const { done, value } = await chunks.next();
            if (done) close();
            else controller.enqueue(value);
          } catch (error) {
            await over();
            throw error;
          }
        },
        cancel: over,
      },
      { highWaterMark: 0 },
    );
  }

  /**
   * Answers with a stream of server-sent events.
   * @throws {HttpProblem} as {@link open}; `forbidden` for a page of another origin, which would take the place
   * of others
   */
  async answer(
    request: Request,
    source: (gone: AbortSignal) => AsyncGenerator<Uint8Array, void>,
    last?: () => Uint8Array,
  ): Promise<Response> {
    checkArguments({ request }, { request: REQUEST });
    checkOrigin(request);
    const { method } = request;
    const body = this.open(source, last);
    // No client would read what HEAD leaves out.
    if (method === 'HEAD') await body.cancel();
    return new Response(method === 'HEAD' ? null : body, {
      headers: { ...PLAIN, 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' },
    });
  }

  /** Ends all of them, and lets no more begin. */
  endAll(): void {
    this.#isOver = true;
    for (const close of this.#open) close();
    for (const others of this.#others) others.endAll();
  }
}

/** From one question whether a client may still follow to the next, in milliseconds. */
const RECHECK_MS = 10_000;

/** The same stream, which ends with its next message once `mayFollow` denies it: its token was replaced. */
export function whileAllowed(
  stream: ReadableStream<Uint8Array>,
  clock: Pick<Clock, 'monotonic'>,
  mayFollow: () => Promise<boolean>,
): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  let checkedAt = clock.monotonic();
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const { done, value } = await reader.read();
    const isDue = clock.monotonic() - checkedAt >= RECHECK_MS;
    if (isDue) checkedAt = clock.monotonic();
    if (!done && (!isDue || (await mayFollow()))) return controller.enqueue(value);
    controller.close();
    await reader.cancel();
  };
  return new ReadableStream({ pull, cancel: (reason) => reader.cancel(reason) }, { highWaterMark: 0 });
}
