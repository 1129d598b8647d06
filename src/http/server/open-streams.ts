import { checkArguments, FUNCTION, whole } from '../../base/arguments.js';
import { HttpProblem, PLAIN } from '../problem.js';
import { HTTP_LIMITS } from './http-limits.js';

/**
 * Answers that continue for as long as their clients listen. They have a separate limit, so that they never
 * take the place of requests that are answered at once, and they end with the server.
 */
export class OpenStreams {
  /** What ends each of them. */
  readonly #open = new Set<() => void>();
  #isOver = false;

  constructor(private readonly max: number = HTTP_LIMITS.streams) {
    checkArguments({ max }, { max: whole(1) });
  }

  /** How many there are. */
  get count(): number {
    return this.#open.size;
  }

  /**
   * A stream of what `source` yields. It counts until that has ended or its client has gone; `gone` aborts
   * then. The source is asked for more only when the client has taken what there is: nothing is kept for it.
   *
   * @throws {HttpProblem} `unavailable` when there are too many
   */
  open(source: (gone: AbortSignal) => AsyncGenerator<Uint8Array, void>): ReadableStream<Uint8Array> {
    checkArguments({ source }, { source: FUNCTION });
    if (this.#isOver) throw unavailable('this server is being closed');
    if (this.count >= this.max) throw unavailable(`there are ${this.max} streams already, which is the most`);
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

  /** Answers with a stream of server-sent events. @throws {HttpProblem} as {@link open} */
  async answer(
    request: Request,
    source: (gone: AbortSignal) => AsyncGenerator<Uint8Array, void>,
  ): Promise<Response> {
    checkArguments({ request });
    const { method } = request;
    const body = this.open(source);
    // No client would read what HEAD leaves out.
    if (method === 'HEAD') await body.cancel();
    return new Response(method === 'HEAD' ? null : body, {
      headers: { ...PLAIN, 'content-type': 'text/event-stream' },
    });
  }

  /** Ends all of them, and lets no more begin. */
  endAll(): void {
    this.#isOver = true;
    for (const close of this.#open) close();
  }
}

function unavailable(message: string): HttpProblem {
  return new HttpProblem('unavailable', message, { 'retry-after': '5' });
}
