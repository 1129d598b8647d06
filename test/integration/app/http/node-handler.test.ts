import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Hono } from 'hono';
import { afterEach, describe, expect, it } from 'vitest';
import { NodeMonitor, nodeHandler } from '../../../../src/app/http/index.js';
import { ConfigError } from '../../../../src/core/base/errors.js';
import { staticLease } from '../../../../src/core/lease/hold/static-lease.js';
import { packageRoot } from '../../../support/package-root.js';

type Use = (request: unknown, response: unknown, next?: () => void) => void;
/** What of Express is used here, which comes without types. */
interface Express extends RequestListener {
  use(...args: (string | Use)[]): Express;
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
  it('works in a server of node:http, as a whole or below a path', async () => {
    const url = await serve(nodeHandler({ monitor: held() }).handle);
    expect(await ask(`${url}/readyz`)).toEqual([200, expect.stringContaining('"nodeId":3')]);
    expect(await ask(`${url}/nowhere`)).toEqual([404, expect.stringContaining('not-found')]);
    expect(await ask(`${url}/readyz`, { method: 'POST', body: 'x' })).toEqual([
      405,
      expect.stringContaining('method'),
    ]);
    const internal = nodeHandler({ monitor: held(), basePath: '/internal' });
    const below = await serve((request, response) => {
      if (request.url?.startsWith('/internal/')) internal.handle(request, response);
      else response.end('mine');
    });
    expect(await ask(`${below}/internal/readyz`)).toEqual([200, expect.stringContaining('"status":"ok"')]);
    expect(await ask(`${below}/internal/nowhere`)).toEqual([
      404,
      expect.stringContaining('/internal/nowhere'),
    ]);
    expect(await ask(`${below}/readyz`)).toEqual([200, 'mine']);
  });

  it('works in Express below a path, and leaves to it what it does not know', async () => {
    const app = express();
    app.use(express.json());
    app.use('/internal', nodeHandler({ monitor: held() }).handle as Use);
    app.get('/internal/mine', (_, response) => response.send('mine'));
    app.get('/', (_, response) => response.send('home'));
    const url = await serve(app);
    expect(await ask(`${url}/internal/readyz`)).toEqual([200, expect.stringContaining('"status":"ok"')]);
    expect(await ask(`${url}/internal/lease?x=1`)).toEqual([
      200,
      expect.stringContaining('"taskId":"web-3"'),
    ]);
    expect(await ask(`${url}/internal/mine`)).toEqual([200, 'mine']);
    expect(await ask(`${url}/`)).toEqual([200, 'home']);
    expect((await ask(`${url}/internal/nowhere`))[0]).toBe(404);
    const posted = { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } };
    expect(await ask(`${url}/internal/readyz`, posted)).toEqual([405, expect.stringContaining('method')]);
  });

  it('leaves the body of what it does not know to the one that answers it', async () => {
    const app = express();
    app.use(nodeHandler({ monitor: held() }).handle as Use);
    app.use(express.json());
    app.use(((request: { body: unknown }, response: { send(text: string): void }) => {
      // Longer than it would take to throw the body away.
      setTimeout(() => response.send(JSON.stringify(request.body)), 700);
    }) as Use);
    const text = JSON.stringify({ text: 'x'.repeat(80_000) });
    const posted = { method: 'POST', body: text, headers: { 'content-type': 'application/json' } };
    expect(await ask(`${await serve(app)}/orders`, posted)).toEqual([200, text]);
  });

  it('works in Hono, and in whatever else speaks in requests and responses', async () => {
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
    // Files share their process, and Hono's own would extend those of the platform.
    expect(GLOBALS.every((type) => Object.getPrototypeOf(type) === Function.prototype)).toBe(true);
  });

  it('has the page at the path with a slash at its end, and sends clients there that leave it out', async () => {
    // The page is made by the build.
    const built = (await import(
      join(packageRoot, 'dist/app/http/index.js')
    )) as typeof import('../../../../src/app/http/index.js');
    const options = { cluster: () => Promise.reject(new Error('no request asks for the cluster')) };
    const app = express();
    app.use('/internal', built.nodeHandler(options).handle as Use);
    app.use('/deep', express().use('/er', built.nodeHandler(options).handle as Use) as unknown as Use);
    const whole = await serve(built.nodeHandler({ ...options, basePath: '/some/where' }).handle);
    const root = await serve(built.nodeHandler(options).handle);
    const mounted = await serve(app);
    for (const page of [`${mounted}/internal`, `${mounted}/deep/er`, `${whole}/some/where`, root]) {
      const answers = await Promise.all([fetch(page), fetch(`${page}/`), fetch(`${page}?x=1`)]);
      expect(answers.map(({ status, url }) => [status, url])).toEqual([
        [200, `${page}/`],
        [200, `${page}/`],
        [200, `${page}/?x=1`],
      ]);
      const [, html] = await ask(`${page}/`);
      for (const [, part = ''] of html.matchAll(/(?:src|href)="([^"#]+)"/g))
        expect([part, (await fetch(new URL(part, `${page}/`))).status]).toEqual([part, 200]);
      expect((await fetch(page, { method: 'POST', redirect: 'manual' })).status).toBe(405);
    }
    const moved = await fetch(`${mounted}/internal?x=//evil`, { redirect: 'manual' });
    expect([moved.status, moved.headers.get('location')]).toEqual([308, './internal/?x=//evil']);
  });

  it('lets what goes wrong in what comes next go wrong there, and gives no answer itself', async () => {
    const app = express();
    app.use(nodeHandler({ monitor: held() }).handle as Use);
    app.use(((_: unknown, __: unknown, next: (error: Error) => void) =>
      next(new Error('mine'))) as unknown as Use);
    app.use(((
      _: Error,
      __: unknown,
      response: { status(code: number): { send(text: string): void } },
      ___: unknown,
    ) => response.status(418).send('my own failure')) as unknown as Use);
    expect(await ask(`${await serve(app)}/orders`)).toEqual([418, 'my own failure']);
    const thrown = new Promise((resolve) => process.once('uncaughtException', resolve));
    const others = process.rawListeners('uncaughtException').slice(0, -1);
    for (const each of others) process.off('uncaughtException', each as () => void);
    try {
      const { handle } = nodeHandler({ monitor: held() });
      const mine = await serve((request, response) =>
        handle(request, response, () => {
          response.end('begun');
          throw new Error('thrown by what comes next');
        }),
      );
      expect(await ask(`${mine}/orders`)).toEqual([200, 'begun']);
      expect(await thrown).toMatchObject({ message: 'thrown by what comes next' });
    } finally {
      for (const each of others) process.on('uncaughtException', each as () => void);
    }
  });

  it.each(['internal', '/internal/', '/', '/a b', '/:x'])(
    'is refused below what is no path: %j',
    (basePath) => {
      expect(() => nodeHandler({ basePath })).toThrow(ConfigError);
    },
  );
});
