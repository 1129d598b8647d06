import { pathToFileURL } from 'node:url';
import { Hono } from 'hono';
import { consoleAssets } from '../../src/app/http/console-assets.js';
import { HttpProblem, problemOf, problemResponse } from '../../src/app/http/problem.js';
import { listen } from '../../src/app/http/server/listen.js';
import { systemClock } from '../../src/core/base/system.js';
import type { ClusterSnapshot, NodeTenures } from '../../src/node/wire/cluster-snapshot.js';
import { packageRoot } from '../support/package-root.js';

/** What comes first on a stream. */
export interface Hello extends Omit<ClusterSnapshot, 'report'> {
  readonly epoch: string;
  readonly instance: Readonly<Record<string, unknown>> | null;
  readonly report: ClusterSnapshot['report'] | null;
}

/**
 * A server that says to the page whatever a test wants it to say. What it sends the page is the built page.
 */
export class ScriptedConsole {
  /** How often a stream was asked for. */
  asked = 0;
  /** Wanted of each client that asks for the stream. */
  token: string | undefined;
  /** What is known of who held these ids. */
  history: (ids: readonly number[]) => readonly NodeTenures[] = () => [];
  /** What a stream is refused with instead. */
  refusal: HttpProblem | undefined;
  url = '';
  readonly #streams = new Set<ReadableStreamDefaultController<Uint8Array>>();
  #close: () => Promise<void> = async () => {};

  /**
   * @param hello what a new stream begins with, at the time of its beginning
   * @param services all events that the page of services receives
   */
  constructor(
    private readonly hello: () => Hello,
    private readonly services: readonly (readonly [event: string, data: unknown])[] = [],
  ) {}

  async start(): Promise<this> {
    const app = new Hono();
    app.onError((failure) => problemResponse(problemOf(failure)));
    app.route(
      '/',
      consoleAssets({ '/': 'main', '/services': 'services' }, pathToFileURL(`${packageRoot}/dist/console/`)),
    );
    app.get('/api/services', () => {
      const reported = this.services.map(([event, data]) => frame(event, data));
      const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
        for (const each of reported) controller.enqueue(each);
      };
      return new Response(new ReadableStream({ start }), {
        headers: { 'content-type': 'text/event-stream' },
      });
    });
    app.get('/api/history', ({ req }) => {
      const ids = (req.query('ids') ?? '').split(',').map(Number);
      return Response.json({ nodes: this.history(ids) });
    });
    app.get('/api/events', ({ req }) => {
      this.asked += 1;
      if (this.refusal) throw this.refusal;
      if (this.token !== undefined && req.header('authorization') !== `Bearer ${this.token}`)
        throw new HttpProblem('unauthorized', 'a token is needed', { 'www-authenticate': 'Bearer' });
      return new Response(this.#stream(), { headers: { 'content-type': 'text/event-stream' } });
    });
    const listener = await listen({
      fetch: app.fetch,
      at: { host: '127.0.0.1', port: 0 },
      clock: systemClock,
    });
    this.url = listener.url;
    this.#close = () => listener.close();
    return this;
  }

  /** Says something to everybody who listens. */
  send(event: string, data: unknown): void {
    for (const stream of this.#streams) stream.enqueue(frame(event, data));
  }

  /** Ends all streams. */
  drop(): void {
    for (const stream of this.#streams) stream.close();
    this.#streams.clear();
  }

  async close(): Promise<void> {
    this.drop();
    await this.#close();
  }

  #stream(): ReadableStream<Uint8Array> {
    let mine: ReadableStreamDefaultController<Uint8Array>;
    return new ReadableStream({
      start: (controller) => {
        mine = controller;
        this.#streams.add(controller);
        controller.enqueue(frame('hello', this.hello()));
      },
      cancel: () => {
        this.#streams.delete(mine);
      },
    });
  }
}

function frame(event: string, data: unknown): Uint8Array {
  return new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
