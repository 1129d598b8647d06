import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { describeTarget, healthProbe } from './health-probe.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function serve(answer: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(answer))}/health?deep=1`;
}

const never = () => new AbortController().signal;
const http = (url: string, signal = never()) => healthProbe({ kind: 'http', url })(signal);

describe('asking a URL', () => {
  it.each([200, 204, 299])('is content with %d, and asks for just that path', async (status) => {
    const seen: unknown[] = [];
    const url = await serve(({ method, url: path }, response) => {
      seen.push(method, path);
      response.writeHead(status).end(status === 204 ? undefined : 'fine');
    });
    await http(url);
    expect(seen).toEqual(['GET', '/health?deep=1']);
  });

  it.each([302, 404, 500, 503])('is not content with %d, and follows nothing', async (status) => {
    let asked = 0;
    const url = await serve((_, response) => {
      asked += 1;
      response.writeHead(status, { location: '/elsewhere' }).end();
    });
    await expect(http(url)).rejects.toThrow(`it answers ${status}`);
    expect(asked).toBe(1);
  });

  it('reads no more of a body than it has to', async () => {
    const closed = deferred();
    const url = await serve((_, response) => {
      response.on('close', () => closed.resolve(undefined));
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
        response.once('drain', more);
      };
      more();
    });
    await http(url);
    await closed.promise;
  });

  it.each<[string, RequestListener]>([
    ['silence', () => undefined],
    ['a body that does not end', (_, response) => void response.writeHead(200).write('x')],
  ])('gives up with the reason that it is given, at once: %s', async (_, answer) => {
    const asked = new AbortController();
    const url = await serve((request, response) => {
      answer(request, response);
      setImmediate(() => asked.abort(new Error('too late')));
    });
    await expect(http(url, asked.signal)).rejects.toThrow('too late');
  });

  it('says that nobody is there', async () => {
    const url = await serve(() => undefined);
    for (const server of servers.splice(0)) await new Promise((done) => server.close(done));
    await expect(http(url)).rejects.toThrow(/ECONNREFUSED/);
  });
});

describe('asking a port', () => {
  const tcp = (port: number, signal = never(), host = 'localhost') => healthProbe({ kind: 'tcp', host, port })(signal);

  it('is content with a connection, and ends it', async () => {
    const closed = deferred();
    const port = await listen(
      createTcpServer((socket) =>
        socket
          .on('error', () => undefined)
          .on('close', () => closed.resolve(undefined))
          .resume(),
      ),
    );
    await tcp(port);
    await closed.promise;
  });

  it('says that nobody is there', async () => {
    const port = await listen(createTcpServer());
    for (const server of servers.splice(0)) await new Promise((done) => server.close(done));
    await expect(tcp(port, never(), '127.0.0.1')).rejects.toThrow(/ECONNREFUSED/);
  });

  it('gives up with the reason that it is given', async () => {
    const port = await listen(createTcpServer());
    await expect(tcp(port, AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
    const late = new AbortController();
    // An address of a documentation network, which nobody answers for.
    const asking = tcp(port, late.signal, '192.0.2.254');
    setImmediate(() => late.abort(new Error('too late')));
    await expect(asking).rejects.toThrow('too late');
  });
});

describe('a target for people', () => {
  it('shows no password', () => {
    expect(describeTarget({ kind: 'http', url: 'http://me:secret@host:80/x?token=1' })).toBe('http://host/x');
    expect(describeTarget({ kind: 'tcp', host: '::1', port: 80 })).toBe('tcp:[::1]:80');
  });
});

function deferred(): { promise: Promise<unknown>; resolve: (value: unknown) => void } {
  let resolve: (value: unknown) => void = () => undefined;
  const promise = new Promise<unknown>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
