import { HTTP_LIMITS } from './http-limits.js';
import { HttpProblem } from './problem.js';

/**
 * The answers that go on for as long as their clients listen. They have a bound of their own, so that they never take the place of requests
 * that are answered at once, such as those of health checks.
 *
 * Nothing is kept here of what a client does not take: what makes a stream is asked for more only when there is room for it.
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
    let isOpen = true;
    const end = () => {
      if (isOpen) this.#count -= 1;
      isOpen = false;
    };
    try {
      const response = await make();
      if (response.body === null) {
        end();
        return response;
      }
      // Nobody would ever read what HEAD leaves out.
      if (request.method === 'HEAD') {
        end();
        await response.body.cancel();
        return new Response(null, response);
      }
      return new Response(this.#counted(response.body, end), response);
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Ends all of them, and lets no more begin. */
  endAll(): void {
    this.#isOver = true;
    for (const end of this.#open) end();
  }

  #counted(body: ReadableStream<Uint8Array>, end: () => void): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    const cancel = () => void reader.cancel().catch(() => {});
    const ended = () => {
      this.#open.delete(cancel);
      end();
    };
    this.#open.add(cancel);
    if (this.#isOver) cancel();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const { done, value } = await reader.read();
            if (!done) return controller.enqueue(value);
            ended();
            controller.close();
          } catch (error) {
            ended();
            controller.error(error);
          }
        },
        cancel: async (reason) => {
          ended();
          await reader.cancel(reason);
        },
      },
      { highWaterMark: 0 },
    );
  }
}

function unavailable(message: string): HttpProblem {
  return new HttpProblem('unavailable', message, { 'retry-after': '5' });
}
