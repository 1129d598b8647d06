import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RoutingOptions } from '../../../../src/zookeeper/services/routing/index.js';
import { type Backend, Backends, RecordingProvider } from './routing-support.js';

const POLL = { timeout: 20_000 };

/** A way to send a request to the service. */
export interface RoutingClient {
  /** Whether a body that is given as text can be sent again: fetch makes a stream of it. */
  readonly replaysText: boolean;
  /** Whether closing it closes its connections. */
  readonly closes: boolean;
  open(provider: RecordingProvider, options?: RoutingOptions): OpenClient;
}

export interface OpenClient {
  send(path: string, init?: SendInit): Promise<Reply>;
  close(): Promise<void>;
}

export interface SendInit {
  readonly method?: string;
  readonly body?: string;
  readonly signal?: AbortSignal;
  readonly headers?: Record<string, string>;
}

export interface Reply {
  readonly status: number;
  text(): Promise<string>;
}

/** What every way of sending must do. */
export function describeRouting(name: string, client: RoutingClient): void {
  describe(name, () => {
    let backends: Backends;
    let provider: RecordingProvider;
    const clients: OpenClient[] = [];

    beforeEach(() => {
      backends = new Backends();
    });

    afterEach(async () => {
      for (const open of clients.splice(0)) await open.close();
      await backends.close();
    });

    /** `downAfter`: how many errors it takes for an instance to be left alone. */
    function over(
      instances: readonly Pick<Backend, 'instance'>[],
      options?: RoutingOptions,
      downAfter?: number,
    ): OpenClient {
      provider = new RecordingProvider(instances, downAfter);
      const open = client.open(provider, options);
      clients.push(open);
      return open;
    }

    it('spreads requests over the instances, with path, query, method, headers and body as they are', async () => {
      const seen: unknown[] = [];
      const three = await Promise.all(
        ['a', 'b', 'c'].map((id) =>
          backends.http(id, (request, response) => {
            let body = '';
            request.setEncoding('utf8').on('data', (chunk) => {
              body += chunk;
            });
            request.on('end', () => {
              seen.push([
                id,
                request.method,
                request.url,
                request.headers['x-color'],
                request.headers.host,
                body,
              ]);
              response.end(id);
            });
          }),
        ),
      );
      const { send } = over(three);
      for (let i = 0; i < 6; i += 1) {
        const reply = await send('/items?q=1&r=%20', {
          method: 'POST',
          headers: { 'x-color': 'red' },
          body: `body ${i}`,
        });
        expect([reply.status, await reply.text()]).toEqual([200, 'abc'[i % 3]]);
      }
      const host = (i: number) => `127.0.0.1:${three[i % 3]?.instance.port}`;
      expect(seen).toEqual(
        [0, 1, 2, 3, 4, 5].map((i) => [
          'abc'[i % 3],
          'POST',
          '/items?q=1&r=%20',
          'red',
          host(i),
          `body ${i}`,
        ]),
      );
      expect(provider.noted).toEqual([]);
    });

    it('asks another instance when a connection is refused, whatever the method: nothing was sent', async () => {
      const [dead, alive] = [await backends.refusing('dead'), await backends.http('alive')];
      for (const method of ['GET', 'POST']) {
        const { send } = over([dead, alive]);
        const reply = await send('/', { method, ...(method === 'POST' ? { body: 'text' } : undefined) });
        expect(await reply.text()).toBe('alive');
        expect(provider.noted).toEqual(['dead']);
      }
    });

    it('leaves an instance alone that has failed often enough', async () => {
      const [dead, alive] = [await backends.resetting('dead'), await backends.http('alive')];
      const { send } = over([dead, alive], {}, 2);
      for (let i = 0; i < 20; i += 1) expect(await (await send('/')).text()).toBe('alive');
      expect(provider.noted).toEqual(['dead', 'dead']);
      expect(dead.served).toBe(2);
    });

    it('sends a GET to another instance when the connection is cut before the answer, a POST never', async () => {
      const [bad, good] = [await backends.resetting('bad'), await backends.http('good')];
      expect(await (await over([bad, good]).send('/')).text()).toBe('good');
      expect(provider.noted).toEqual(['bad']);
      await expect(over([bad, good]).send('/', { method: 'POST', body: 'text' })).rejects.toThrow();
      expect(provider.noted).toEqual(['bad']);
      expect([bad.served, good.served]).toEqual([2, 1]);
    });

    it('sends a PUT to another instance only where its body can be sent twice', async () => {
      const [bad, good] = [await backends.resetting('bad'), await backends.http('good')];
      const sent = over([bad, good]).send('/', { method: 'PUT', body: 'text' });
      if (client.replaysText) expect(await (await sent).text()).toBe('good');
      else await expect(sent).rejects.toThrow();
      expect(good.served).toBe(client.replaysText ? 1 : 0);
      expect(provider.noted).toEqual(['bad']);
    });

    it('takes 502, 503 and 504 for a failure of the instance, and 500 for an answer', async () => {
      const good = await backends.http('good');
      for (const status of [502, 503, 504]) {
        const bad = await backends.http('bad', (_request, response) =>
          response.writeHead(status).end('a'.repeat(100_000)),
        );
        expect(await (await over([bad, good]).send('/')).text()).toBe('good');
        expect(provider.noted).toEqual(['bad']);
        const post = await over([bad, good]).send('/', { method: 'POST', body: 'text' });
        expect([post.status, (await post.text()).length]).toEqual([status, 100_000]);
        expect(provider.noted).toEqual(['bad']);
      }
      const failing = await backends.http('failing', (_request, response) =>
        response.writeHead(500).end('sorry'),
      );
      expect((await over([failing, good]).send('/')).status).toBe(500);
      expect(provider.noted).toEqual([]);
    });

    it('cuts off the answer of a busy instance when it has another’s', async () => {
      let cut = false;
      const bad = await backends.http('bad', (_request, response) => {
        response.writeHead(503).flushHeaders();
        response.once('close', () => {
          cut = true;
        });
      });
      expect(await (await over([bad, await backends.http('good')]).send('/')).text()).toBe('good');
      await expect.poll(() => cut, POLL).toBe(true);
    });

    it('leaves status codes alone where it is configured so', async () => {
      const [bad, good] = [
        await backends.http('bad', (_request, response) => response.writeHead(503).end('busy')),
        await backends.http('good'),
      ];
      const reply = await over([bad, good], { retryStatuses: [] }).send('/');
      expect([reply.status, await reply.text(), provider.noted]).toEqual([503, 'busy', []]);
    });

    it('gives the last answer when all instances are busy, after as many attempts as allowed', async () => {
      const busy = (id: string) =>
        backends.http(id, (_request, response) => response.writeHead(503).end(`${id} is busy`));
      const five = await Promise.all(['a', 'b', 'c', 'd', 'e'].map(busy));
      const third = await over(five).send('/');
      expect([third.status, await third.text(), provider.noted]).toEqual([503, 'c is busy', ['a', 'b', 'c']]);
      const first = await over(five, { maxAttempts: 1 }).send('/');
      expect([first.status, await first.text(), provider.noted]).toEqual([503, 'a is busy', ['a']]);
      const last = await over(five.slice(0, 2)).send('/');
      expect([last.status, await last.text(), provider.noted]).toEqual([503, 'b is busy', ['a', 'b']]);
    });

    it('gives the last error when no instance can be reached', async () => {
      const dead = [await backends.refusing('x'), await backends.refusing('y')];
      await expect(over(dead).send('/')).rejects.toSatisfy((error) => codeOf(error) === 'ECONNREFUSED');
      expect(provider.noted).toEqual(['x', 'y']);
    });

    it('says that there is no instance', async () => {
      await expect(over([]).send('/')).rejects.toSatisfy((error) => codeOf(error) === 'NO_INSTANCE');
      await expect(over([]).send('/', { method: 'POST', body: 'text' })).rejects.toSatisfy(
        (error) => codeOf(error) === 'NO_INSTANCE',
      );
    });

    it('does not blame an instance for the abort of a caller, nor ask another', async () => {
      let cut = false;
      const hanging = await backends.http('hanging', (_request, response) => {
        response.once('close', () => {
          cut = true;
        });
      });
      const good = await backends.http('good');
      const giveUp = new AbortController();
      const sent = over([hanging, good]).send('/', { signal: giveUp.signal });
      await expect.poll(() => hanging.served, POLL).toBe(1);
      giveUp.abort(new Error('changed my mind'));
      await expect(sent).rejects.toThrow('changed my mind');
      await expect.poll(() => cut, POLL).toBe(true);
      expect([provider.noted, good.served]).toEqual([[], 0]);
      expect(getEventListeners(giveUp.signal, 'abort')).toEqual([]);
    });

    it('does not repeat what has been answered in part, and blames the instance', async () => {
      const cut = await backends.http('cut', (_request, response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('some');
        setImmediate(() => response.destroy());
      });
      const good = await backends.http('good');
      const reply = await over([cut, good]).send('/');
      expect(reply.status).toBe(200);
      await expect(reply.text()).rejects.toThrow();
      expect([provider.noted, good.served]).toEqual([['cut'], 0]);
    });

    it('goes on with 200 requests at once while a third of the instances fails', async () => {
      const three = [await backends.http('a'), await backends.resetting('bad'), await backends.http('b')];
      const { send } = over(three, {}, 2);
      const replies = await Promise.all(
        Array.from({ length: 200 }, async (_, i) => (await send(`/${i}`)).text()),
      );
      expect(new Set(replies)).toEqual(new Set(['a', 'b']));
      expect(replies).toHaveLength(200);
    });

    if (client.closes)
      it('leaves no connection behind when it is closed', async () => {
        const two = [await backends.http('a'), await backends.http('b')];
        const open = over(two);
        await Promise.all(Array.from({ length: 20 }, async () => (await open.send('/')).text()));
        await open.close();
        await expect.poll(() => two.map(({ sockets }) => sockets.size), POLL).toEqual([0, 0]);
      });

    it('follows a redirect to somewhere else there, and one within the service to any instance', async () => {
      const elsewhere = await backends.http('elsewhere');
      const login = `http://127.0.0.1:${elsewhere.instance.port}/login`;
      const a = await backends.http('a', (_request, response) =>
        response.writeHead(302, { location: login }).end(),
      );
      const { send } = over([a]);
      const reply = await send('/');
      // Only fetch follows redirects of itself.
      if (reply.status === 200) expect(await reply.text()).toBe('elsewhere');
      else expect(reply.status).toBe(302);
      expect(a.served).toBe(1);
    });
  });
}

/**
 * That each of some ways of sending asks another instance when one does not answer in time; all of them at
 * once, since they wait.
 */
export async function asksAnotherInTime(...ways: readonly RoutingClient[]): Promise<void> {
  const backends = new Backends();
  const [hanging, good] = [await backends.http('hanging', () => {}), await backends.http('good')];
  const opened = ways.map((way) => {
    const provider = new RecordingProvider([hanging, good]);
    return { provider, client: way.open(provider, { headersTimeoutMs: 1_500 }) };
  });
  try {
    const answers = await Promise.all(opened.map(async ({ client }) => (await client.send('/')).text()));
    expect(answers).toEqual(ways.map(() => 'good'));
    expect(opened.map(({ provider }) => provider.noted)).toEqual(ways.map(() => ['hanging']));
  } finally {
    for (const { client } of opened) await client.close();
    await backends.close();
  }
}

/** The code of an error, or of its cause: fetch wraps what it rejects with. */
export function codeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  return 'code' in error && typeof error.code === 'string' ? error.code : codeOf(error.cause);
}
