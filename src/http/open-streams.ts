import { HTTP_LIMITS } from './http-limits.js';
import { HttpProblem } from './problem.js';

/**
 * Answers that go on for as long as their clients listen. They have a bound of their own, so that they never take the place of requests that are
 * answered at once, and they end with the server. Nothing is kept of what a client does not take: a stream is asked for more only when there is room.
 */
export class OpenStreams {
  readonly #open = new Set<() => void>();
  #count = 0;
  #isOver = false;

  constructor(private readonly most: number = HTTP_LIMITS.streams) {}

  /** How many there are. */
  get count(): number {
    return this.#count;
  }

  /**
   * Answers with a stream, which counts until it has ended or its client has gone.
   *
   * @throws {HttpProblem} `unavailable` when there are too many
   */
  async answer(request: Request, make: () => Promise<Response>): Promise<Response> {
    if (this.#isOver) throw unavailable('this server is being closed');
    if (this.#count >= this.most) throw unavailable(`there are ${this.most} streams already, which is the most`);
    this.#count += 1;
    let response: Response | undefined;
    try {
      response = await make();
    } finally {
      if (!response?.body) this.#count -= 1;
    }
    const { body } = response;
    if (body === null) return response;
    const reader = body.getReader();
    const end = () => {
      if (!this.#open.delete(end)) return;
      this.#count -= 1;
      void reader.cancel().catch(() => undefined);
    };
    this.#open.add(end);
    // No client would ever read what HEAD leaves out.
    if (this.#isOver || request.method === 'HEAD') end();
    return new Response(request.method === 'HEAD' ? null : untilEnd(reader, end), response);
  }

  /** Ends all of them, and lets no more begin. */
  endAll(): void {
    this.#isOver = true;
    for (const end of this.#open) end();
  }
}

/** What a reader reads; `end` is called once there is no more of it, or no client for it. */
function untilEnd(reader: ReadableStreamDefaultReader<Uint8Array>, end: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          end();
          controller.close();
        } catch (error) {
          end();
          controller.error(error);
        }
      },
      cancel: async (reason) => {
        const cancelled = reader.cancel(reason);
        end();
        await cancelled;
      },
    },
    { highWaterMark: 0 },
  );
}

function unavailable(message: string): HttpProblem {
  return new HttpProblem('unavailable', message, { 'retry-after': '5' });
}
