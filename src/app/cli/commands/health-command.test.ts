import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { ConfigError } from '../../../core/base/errors.js';
import { healthCommand } from './health-command.js';

type HealthOptions = Parameters<typeof healthCommand>[0]['options'];

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function listening(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const HELD = { status: 'ok', state: 'held', live: true, ready: true, reason: null, nodeId: 3, version: 7 };
const WAITING = {
  status: 'unavailable',
  state: 'acquiring',
  live: true,
  ready: false,
  reason: 'no node id is free: waiting',
  nodeId: null,
};

/** An instance that is ready or not, and always live. */
const instance = (isReady: boolean) =>
  listening((request, response) => {
    const ok = isReady || request.url === '/livez';
    response
      .writeHead(ok ? 200 : 503)
      .end(JSON.stringify(isReady ? HELD : { ...WAITING, status: ok ? 'ok' : 'unavailable' }));
  });

async function ask(options: HealthOptions, env: Record<string, string> = {}) {
  const io = capturedIo();
  const code = await healthCommand({ options, io: { ...io, env } });
  return { code, said: io.answer() };
}

describe('nodelease health', () => {
  it('ends with 0 while the instance is ready, and says what it holds', async () => {
    expect(await ask({ url: await instance(true) })).toEqual({
      code: 0,
      said: 'ok, held, node id 3 at version 7\n',
    });
  });

  it('ends with 1 while it is not, and says why', async () => {
    expect(await ask({ url: await instance(false) })).toEqual({
      code: 1,
      said: 'not ok, acquiring: no node id is free: waiting\n',
    });
  });

  it('asks with --live whether it is worth keeping', async () => {
    expect(await ask({ url: await instance(false), live: true })).toMatchObject({ code: 0 });
  });

  it('answers one line of JSON when asked to', async () => {
    const url = await instance(false);
    const { code, said } = await ask({ url: `${url}/`, json: true });
    expect(said).toMatch(/^\{.*\}\n$/);
    expect([code, JSON.parse(said)]).toEqual([
      1,
      {
        ok: false,
        url: `${url}/readyz`,
        problem: 'not ok, acquiring: no node id is free: waiting',
        ...WAITING,
      },
    ]);
  });

  it('knows where the instance is from the variables of run’s command, else from its listen address', async () => {
    const url = await instance(true);
    expect((await ask({}, { NODELEASE_URL: url, NODELEASE_HTTP: '127.0.0.1:1' })).code).toBe(0);
    expect((await ask({}, { NODELEASE_URL: '', NODELEASE_HTTP: `0.0.0.0:${new URL(url).port}` })).code).toBe(
      0,
    );
    expect((await ask({ url }, { NODELEASE_URL: 'http://127.0.0.1:1' })).code).toBe(0);
  });

  it('takes the path before the question from the URL', async () => {
    const asked: (string | undefined)[] = [];
    const url = await listening((request, response) => {
      asked.push(request.url);
      response.end(JSON.stringify(HELD));
    });
    await ask({ url: `${url}/internal/` });
    expect(asked).toEqual(['/internal/readyz']);
  });

  it.each([
    ['nothing', 200, ''],
    ['another program', 200, '{"status":"UP"}'],
    ['a list', 200, '[]'],
    ['an error page', 500, '<html>'],
    ['somewhere else', 302, JSON.stringify(HELD).replace('ok', '')],
  ])('ends with 1 where %s answers', async (_, status, body) => {
    const url = await listening((_request, response) =>
      response.writeHead(status, { location: '/' }).end(body),
    );
    expect(await ask({ url })).toEqual({
      code: 1,
      said: `status ${status}, and not the answer of a nodelease instance\n`,
    });
  });

  it('ends with 1 where an instance calls itself ready with another status than 200', async () => {
    const url = await listening((_request, response) => response.writeHead(503).end(JSON.stringify(HELD)));
    expect((await ask({ url })).code).toBe(1);
  });

  it('ends with 1 where what answers 200 calls itself unavailable, as a proxy before the instance may', async () => {
    const url = await listening((_request, response) =>
      response.end(JSON.stringify({ ...WAITING, status: 'unavailable' })),
    );
    expect((await ask({ url })).code).toBe(1);
  });

  it('takes empty variables for none', async () => {
    const { said } = await ask({ json: true }, { NODELEASE_URL: '', NODELEASE_HTTP: '' });
    expect(JSON.parse(said)).toMatchObject({ url: 'http://127.0.0.1:7070/readyz' });
  });

  it('ends with 1 where no program listens, or the connection ends, and says so', async () => {
    expect(await ask({ url: 'http://127.0.0.1:1' })).toMatchObject({
      code: 1,
      said: expect.stringContaining('ECONNREFUSED'),
    });
    const url = await listening((request) => request.socket.destroy());
    expect(await ask({ url })).toMatchObject({
      code: 1,
      said: expect.stringMatching(/readyz: socket hang up|ECONNRESET/),
    });
  });

  it.each(['before the head', 'in the middle of the body'])(
    'waits no longer than its time-out for an answer that stops %s',
    async (when) => {
      const io = capturedIo();
      let heard = () => {};
      const asked = new Promise<void>((resolve) => {
        heard = resolve;
      });
      const url = await listening((_request, response) => {
        if (when !== 'before the head') response.write('{');
        heard();
      });
      const code = healthCommand({ options: { url, timeout: 300 }, io });
      await asked;
      await io.clock.advance(300);
      expect(await code).toBe(1);
      expect(io.answer()).toContain('no answer within 300 ms');
      expect(io.clock.sleepers).toBe(0);
    },
  );

  it('reads no more of an answer than an instance would send', async () => {
    const url = await listening((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.on('drain', more);
      more();
    });
    expect((await ask({ url })).code).toBe(1);
  });

  it('takes an answer that is no HTTP for none', async () => {
    const server = createTcpServer((socket) => socket.end('hello\r\n\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    expect((await ask({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })).code).toBe(1);
    server.close();
  });

  it.each<[HealthOptions, Record<string, string>, RegExp]>([
    [{}, { NODELEASE_HTTP: '127.0.0.1:0' }, /NODELEASE_HTTP: expected --url with it/],
    [{}, { NODELEASE_HTTP: 'x' }, /NODELEASE_HTTP: expected HOST:PORT/],
    [{}, { NODELEASE_URL: 'x' }, /NODELEASE_URL: expected the URL of a running instance/],
    [{ url: 'https://127.0.0.1' }, {}, /--url: expected the URL of a running instance/],
  ])('refuses %j with %j', async (options, env, expected) => {
    await expect(ask(options, env)).rejects.toThrow(ConfigError);
    await expect(ask(options, env)).rejects.toThrow(expected);
  });
});
