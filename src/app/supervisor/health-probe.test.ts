import { execFileSync } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { freePort } from '../../../test/support/servers/free-ports.js';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { systemClock } from '../../core/base/system.js';
import { NameResolver } from '../../zookeeper/client/connection/name-resolver.js';
import { checkHealth, describeTarget, healthProbe } from './health-check.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  servers.push(server);
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function serve(answer: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(answer))}/health?deep=1`;
}

const never = () => new AbortController().signal;
/** Knows this host by another name, and counts who asks. */
function resolver(addresses: readonly string[] = ['127.0.0.1']): { names: NameResolver; asked: string[] } {
  const asked: string[] = [];
  const lookup = async (host: string) => {
    asked.push(host);
    return addresses;
  };
  return { names: new NameResolver(lookup), asked };
}
const { names: strict, asked: askedOfStrict } = resolver([]);
const http = (url: string, signal = never(), names = strict) =>
  healthProbe({ kind: 'http', url }, systemClock, names)(signal);

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

  it('leaves no connection behind, so that each probe has its own', async () => {
    const connections: Socket[] = [];
    const server = createServer((_, response) => void response.end('fine')).on('connection', (socket) =>
      connections.push(socket),
    );
    const url = `http://127.0.0.1:${await listen(server)}/`;
    const asked = new AbortController();
    for (let i = 0; i < 3; i += 1) await http(url, asked.signal);
    expect(connections).toHaveLength(3);
    await Promise.all(connections.map((socket) => socket.destroyed || once(socket, 'close')));
    await expect.poll(() => getEventListeners(asked.signal, 'abort')).toEqual([]);
  });

  it('takes a certificate that no authority has signed, under the name in the URL', async () => {
    let servername: unknown;
    const server = createTlsServer(certificate('app.internal'), ({ headers, socket }, response) => {
      servername = 'servername' in socket && socket.servername;
      response.end(headers.host);
    });
    const port = await listen(server);
    const { names, asked } = resolver();
    await http(`https://app.internal:${port}/`, never(), names);
    expect([servername, asked]).toEqual(['app.internal', ['app.internal']]);
  });

  it('asks for the host that the URL names, wherever its name leads', async () => {
    const hosts: unknown[] = [];
    const url = new URL(
      await serve(({ headers }, response) => {
        hosts.push(headers.host);
        response.end();
      }),
    );
    const { names } = resolver();
    await http(`http://app.internal:${url.port}/`, never(), names);
    expect(hosts).toEqual([`app.internal:${url.port}`]);
    await expect(http(`http://app.internal:${url.port}/`)).rejects.toThrow(
      'app.internal: the name has no address',
    );
  });

  it.each<[string, string, boolean]>([
    [
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
      'the connection ended without an answer',
      false,
    ],
    ['nonsense\r\n\r\n', 'Parse Error', false],
    ['HTTP/1.1 103 Early Hints\r\n\r\n', 'socket hang up', true],
    ['HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab', 'aborted', true],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab', 'aborted', true],
    ['', 'socket hang up', true],
  ])('comes to an end whatever is answered: %j', async (text, problem, waitsForMore) => {
    for (const ends of [true, false]) {
      const asked = new AbortController();
      const server = createTcpServer((socket) => {
        socket
          .on('error', () => undefined)
          .once('data', () => (ends ? socket.end(text) : socket.write(text)));
        if (!ends && waitsForMore)
          socket.once('data', () => setTimeout(() => asked.abort(new Error('too late')), 50));
      });
      const url = `http://127.0.0.1:${await listen(server)}/`;
      await expect(http(url, asked.signal)).rejects.toThrow(ends || !waitsForMore ? problem : 'too late');
    }
  });

  it('is content with a body that the end of the connection ends', async () => {
    const server = createTcpServer((socket) =>
      socket.once('data', () => socket.end('HTTP/1.0 200 OK\r\n\r\nfine')),
    );
    await http(`http://127.0.0.1:${await listen(server)}/`);
  });

  it('says that no program is there', async () => {
    await expect(http(`http://127.0.0.1:${await freePort()}/`)).rejects.toThrow(/ECONNREFUSED/);
  });
});

describe('asking a port', () => {
  const tcp = (port: number, signal = never(), host = 'localhost') =>
    healthProbe({ kind: 'tcp', host, port }, systemClock, strict)(signal);

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
    const asked = new AbortController();
    await tcp(port, asked.signal);
    await closed.promise;
    await expect.poll(() => getEventListeners(asked.signal, 'abort')).toEqual([]);
  });

  it('tries both of the host’s own addresses where only a port is given, and asks no name server for them', async () => {
    const [port, only6] = [await listen(createTcpServer()), await listen(createTcpServer(), '::1')];
    await tcp(port);
    await tcp(only6);
    await expect(tcp(await freePort())).rejects.toThrow(/ECONNREFUSED 127\.0\.0\.1:\d+, .*::1/);
    expect(askedOfStrict).not.toContain('localhost');
  });

  it('says that no program is there', async () => {
    await expect(tcp(await freePort(), never(), '127.0.0.1')).rejects.toThrow(/ECONNREFUSED/);
  });

  it('gives up with the reason that it is given', async () => {
    const port = await listen(createTcpServer());
    await expect(tcp(port, AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
    const late = new AbortController();
    // An address of a documentation network, which no host answers for.
    const asking = tcp(port, late.signal, '192.0.2.254');
    setImmediate(() => late.abort(new Error('too late')));
    await expect(asking).rejects.toThrow('too late');
  });
});

describe('a host whose name cannot be resolved', () => {
  it.each(['http', 'tcp'] as const)(
    'costs one lookup, however often it is asked, and no more time than a probe has: %s',
    async (kind) => {
      const clock = new VirtualClock();
      let underWay = 0;
      const names = new NameResolver(() => {
        underWay += 1;
        return new Promise(() => undefined);
      });
      const target = {
        http: { kind: 'http', url: 'http://app.internal/' },
        tcp: { kind: 'tcp', host: 'app.internal', port: 80 },
      } as const;
      const reports: string[] = [];
      const ending = new AbortController();
      const check = {
        ...{ probe: healthProbe(target[kind], clock, names), clock, intervalMs: 1_000, threshold: 3 },
        onChange: () => reports.push('announced'),
        onWaiting: (problem: unknown) => reports.push(`${clock.monotonic()} ${problem}`),
      };
      const ended = checkHealth(check, ending.signal);
      for (let i = 0; i < 20; i += 1) await clock.advance(500);
      expect([reports, underWay]).toEqual([['1000 TimeoutError: no answer within 1000 ms'], 1]);
      ending.abort();
      await ended;
      expect(clock.sleepers).toBe(0);
    },
  );
});

describe('a target for people', () => {
  it('shows no password', () => {
    expect(describeTarget({ kind: 'http', url: 'http://me:secret@host:80/x?token=1' })).toBe('http://host/x');
    expect(describeTarget({ kind: 'tcp', host: '::1', port: 80 })).toBe('tcp:[::1]:80');
  });
});

/** A certificate that is signed by itself, made for this test. */
function certificate(host: string): { key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'nodelease-certificate-'));
  try {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const kind = [
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      `/CN=${host}`,
    ];
    execFileSync('openssl', ['req', ...kind, '-keyout', key, '-out', cert], { stdio: 'pipe' });
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function deferred(): { promise: Promise<unknown>; resolve: (value: unknown) => void } {
  let resolve: (value: unknown) => void = () => undefined;
  const promise = new Promise<unknown>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
