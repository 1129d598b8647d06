import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { Hono } from 'hono';
import { afterEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/errors.js';
import { NodeMonitor, nodeHandler } from '../../src/http/index.js';
import { staticLease } from '../../src/lease/static-lease.js';

type Use = (request: unknown, response: unknown, next?: () => void) => void;
/** What of Express is used here, which comes without types. */
interface Express extends RequestListener {
  use(...args: (string | Use)[]): void;
  get(path: string, use: (request: unknown, response: { send(text: string): void }) => void): void;
}
const express = createRequire(import.meta.url)('express') as { (): Express; json(): Use };

const GLOBALS = [globalThis.Request, globalThis.Response];
const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function held(): NodeMonitor {
  const monitor = new NodeMonitor();
  monitor.hold(staticLease({ id: 3, taskId: 'web-3' }));
  return monitor;
}

async function ask(url: string, init?: RequestInit): Promise<[status: number, body: string]> {
  const response = await fetch(url, init);
  return [response.status, await response.text()];
}

describe('the health of a node, as a part of a server of one’s own', () => {
  it('stands in one of node:http, as a whole or below a path', async () => {
    const url = await serve(nodeHandler({ monitor: held() }).handle);
    expect(await ask(`${url}/readyz`)).toEqual([200, expect.stringContaining('"nodeId":3')]);
    expect(await ask(`${url}/nowhere`)).toEqual([404, expect.stringContaining('not-found')]);
    expect(await ask(`${url}/readyz`, { method: 'POST', body: 'x' })).toEqual([405, expect.stringContaining('method')]);
    const internal = nodeHandler({ monitor: held(), basePath: '/internal' });
    const below = await serve((request, response) => {
      if (request.url?.startsWith('/internal/')) internal.handle(request, response);
      else response.end('mine');
    });
    expect(await ask(`${below}/internal/readyz`)).toEqual([200, expect.stringContaining('"status":"ok"')]);
    expect(await ask(`${below}/internal/nowhere`)).toEqual([404, expect.stringContaining('/internal/nowhere')]);
    expect(await ask(`${below}/readyz`)).toEqual([200, 'mine']);
  });

  it('stands in Express below a path, and leaves to it what it does not know', async () => {
    const app = express();
    app.use(express.json());
    app.use('/internal', nodeHandler({ monitor: held() }).handle as Use);
    app.get('/internal/mine', (_, response) => response.send('mine'));
    app.get('/', (_, response) => response.send('home'));
    const url = await serve(app);
    expect(await ask(`${url}/internal/readyz`)).toEqual([200, expect.stringContaining('"status":"ok"')]);
    expect(await ask(`${url}/internal/lease?x=1`)).toEqual([200, expect.stringContaining('"taskId":"web-3"')]);
    expect(await ask(`${url}/internal/mine`)).toEqual([200, 'mine']);
    expect(await ask(`${url}/`)).toEqual([200, 'home']);
    expect((await ask(`${url}/internal/nowhere`))[0]).toBe(404);
    const posted = { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } };
    expect(await ask(`${url}/internal/readyz`, posted)).toEqual([405, expect.stringContaining('method')]);
  });

  it('leaves the body of what it does not know to whoever answers it', async () => {
    const app = express();
    app.use(nodeHandler({ monitor: held() }).handle as Use);
    app.use(express.json());
    app.use(((request: { body: unknown }, response: { send(text: string): void }) => {
      // Longer than it would take to throw the body away.
      setTimeout(() => response.send(JSON.stringify(request.body)), 1_000);
    }) as Use);
    const text = JSON.stringify({ text: 'x'.repeat(80_000) });
    const posted = { method: 'POST', body: text, headers: { 'content-type': 'application/json' } };
    expect(await ask(`${await serve(app)}/orders`, posted)).toEqual([200, text]);
  });

  it('stands in Hono, and in whatever else speaks in requests and responses', async () => {
    const { fetch: answer } = nodeHandler({ monitor: held() });
    const app = new Hono().get('/', (context) => context.text('home')).mount('/internal', answer);
    expect(await (await app.request('/internal/readyz')).json()).toMatchObject({ status: 'ok', nodeId: 3 });
    expect((await app.request('/internal/nowhere')).status).toBe(404);
    expect(await (await app.request('/')).text()).toBe('home');
  });

  it('answers what is no proper request, and leaves the globals of the program as they were', async () => {
    const url = await serve(nodeHandler({ monitor: held() }).handle);
    expect((await ask(`${url}/%zz`))[0]).toBe(404);
    expect([globalThis.Request, globalThis.Response]).toEqual(GLOBALS);
  });

  it.each(['internal', '/internal/', '/', '/a b', '/:x'])('is refused below what is no path: %j', (basePath) => {
    expect(() => nodeHandler({ basePath })).toThrow(ConfigError);
  });
});
