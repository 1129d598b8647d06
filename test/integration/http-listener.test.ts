import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { type HttpListener, type ListenOptions, listen } from '../../src/http/listen.js';
import { systemClock } from '../../src/system.js';

/** What the program has before anything listens. */
const GLOBALS = [globalThis.Request, globalThis.Response];
/** For whom the time to wait is never over. */
const NEVER: ListenOptions['clock'] = {
  sleep: (_, signal) => new Promise((__, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true })),
};

const listeners: HttpListener[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(listeners.splice(0).map((each) => each.close()));
});

async function start(options: Partial<ListenOptions> = {}): Promise<HttpListener> {
  const fetch = ({ url }: Request) => Response.json({ path: new URL(url).pathname });
  const listener = await listen({ fetch, at: { host: '127.0.0.1', port: 0 }, label: '--http', clock: systemClock, ...options });
  listeners.push(listener);
  return listener;
}

/** A connection that a test has in its own hands. */
function open({ address }: HttpListener): Socket {
  const socket = connect({ host: address.host, port: address.port, allowHalfOpen: true });
  socket.on('error', () => {});
  sockets.push(socket);
  return socket;
}

/** What comes back for these bytes, until the server closes the connection. */
async function answerTo(listener: HttpListener, bytes: string): Promise<string> {
  const socket = open(listener);
  socket.write(bytes);
  return text(socket).catch(() => '');
}

describe('a listener', () => {
  it('tells where it listens, and answers there', async () => {
    const listener = await start();
    expect(listener.address).toEqual({ host: '127.0.0.1', port: expect.any(Number) });
    expect(listener.url).toBe(`http://127.0.0.1:${listener.address.port}`);
    expect(await (await fetch(`${listener.url}/x`)).json()).toEqual({ path: '/x' });
  });

  it('listens on IPv6, and by a name', async () => {
    const six = await start({ at: { host: '::1', port: 0 } });
    expect(six.url).toBe(`http://[::1]:${six.address.port}`);
    expect(await (await fetch(`${six.url}/six`)).json()).toEqual({ path: '/six' });
    const named = await start({ at: { host: 'localhost', port: 0 } });
    expect(await (await fetch(`${named.url}/named`)).json()).toEqual({ path: '/named' });
  });

  it.each([
    ['a port that is taken', '127.0.0.1', undefined, 'a port that no other program listens on (this one is taken)'],
    ['an address of another machine', '192.0.2.1', 0, 'an address of this machine'],
    ['a name that nobody has', 'nobody.invalid', 0, 'a host name that'],
  ])('refuses %s, naming the setting and the value', async (_, host, port, expected) => {
    const { address } = await start();
    const at = { host, port: port ?? address.port };
    const error = await listen({ fetch: () => new Response(), at, label: '--http', clock: systemClock }).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining(`--http: expected ${expected}`) });
    expect(String(error)).toContain(`got "${at.host}:${at.port}"`);
  });

  it('leaves the Request and Response of the program as they were', async () => {
    await start();
    expect(globalThis.Request).toBe(GLOBALS[0]);
    expect(globalThis.Response).toBe(GLOBALS[1]);
  });
});

describe('what is no proper request', () => {
  it.each([
    ['no HTTP at all', 'hello\r\n\r\n', 400],
    ['a head that is too large', `GET / HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
    ['no host', 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n', 400],
    ['no host, in HTTP 1.0', 'GET /old HTTP/1.0\r\n\r\n', 200],
    ['a host that is none', 'GET / HTTP/1.1\r\nhost: a b\r\nconnection: close\r\n\r\n', 400],
    ['a path that is none', 'GET * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n', 400],
    ['two lengths', 'PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n', 400],
    ['an unknown method', 'BREW / HTTP/1.1\r\nhost: x\r\n\r\n', 400],
  ])('is answered and does no harm: %s', async (_, bytes, status) => {
    const listener = await start();
    const answer = await answerTo(listener, bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).not.toMatch(/\bat .*\.(js|ts)\b/);
    expect((await fetch(listener.url)).status).toBe(200);
  });
});

describe('a client that is slow', () => {
  it('holds up nobody else, and is let go', async () => {
    const listener = await start();
    const slow = Array.from({ length: 200 }, () => open(listener));
    for (const socket of slow) socket.write('GET / HTTP/1.1\r\nhost: x\r\nx-slow: ');
    const trickle = setInterval(() => slow.forEach((socket) => void socket.write('a')), 500);
    try {
      const begun = performance.now();
      for (let i = 0; i < 20; i += 1) expect((await fetch(listener.url)).status).toBe(200);
      expect(performance.now() - begun).toBeLessThan(5_000);
      const [end] = await Promise.all(slow.map((socket) => text(socket).catch(() => '')));
      expect(end).toMatch(/^(HTTP\/1\.1 408 |$)/);
    } finally {
      clearInterval(trickle);
    }
  });

  it('is let go when nothing goes through its connection any more, though it has asked for something', async () => {
    const listener = await start({ silentMs: 300, fetch: () => new Promise(() => {}) });
    const begun = performance.now();
    expect(await answerTo(listener, 'GET / HTTP/1.1\r\nhost: x\r\n\r\n')).toBe('');
    expect(performance.now() - begun).toBeLessThan(9_000);
  });

  it('may have company up to a bound; further ones are closed at once, until somebody leaves', async () => {
    const listener = await start({ maxConnections: 2 });
    const [first, second] = [open(listener), open(listener)];
    await Promise.all([once(first, 'connect'), once(second, 'connect')]);
    expect(await text(open(listener)).catch(() => '')).toBe('');
    first.destroy();
    await expect
      .poll(
        () =>
          fetch(listener.url).then(
            ({ status }) => status,
            () => 'refused',
          ),
        { timeout: 10_000 },
      )
      .toBe(200);
  });
});

describe('a client that asks for much at once', () => {
  const LARGE = Buffer.alloc(16 * 1024 * 1024, 'x');

  it('has one answer made after the other, as it takes them, and a few wait', async () => {
    const asked: string[] = [];
    const listener = await start({
      fetch: ({ url }) => {
        asked.push(new URL(url).pathname);
        return new Response(LARGE);
      },
    });
    const client = open(listener);
    client.pause();
    client.write(Array.from({ length: 400 }, (_, index) => `GET /${index} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
    // Others are answered meanwhile, so the server has seen all that this one has asked for.
    for (let i = 0; i < 3; i += 1) expect((await (await fetch(`${listener.url}/other`)).arrayBuffer()).byteLength).toBe(LARGE.length);
    expect(asked.filter((path) => path !== '/other')).toEqual(['/0']);
    const statuses: string[] = [];
    let rest = '';
    for await (const chunk of client.setEncoding('latin1')) {
      const heads = [...(rest + chunk).matchAll(/HTTP\/1\.1 (\d{3}) /g)];
      statuses.push(...heads.map(([, status = '']) => status));
      // What is left may be the first part of another one.
      rest = (rest + chunk).slice(heads.length === 0 ? -12 : Math.max((heads.at(-1)?.index ?? 0) + 13, rest.length + chunk.length - 12));
      if (statuses.length >= 400) break;
    }
    const answered = asked.filter((path) => path !== '/other').map((path) => Number(path.slice(1)));
    expect(answered.slice(0, 9)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(answered).toEqual([...answered].sort((a, b) => a - b));
    expect(answered.length).toBeLessThan(50);
    expect(statuses.filter((status) => status === '200')).toHaveLength(answered.length);
    expect(statuses.filter((status) => status === '503')).toHaveLength(400 - answered.length);
  });

  it('gets its answers in order, the refused among them', async () => {
    const listener = await start();
    const client = open(listener);
    const last = 'GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
    client.write(`${Array.from({ length: 5 }, (_, index) => `GET /${index} HTTP/1.1\r\nhost: x\r\n\r\n`).join('')}${last}`);
    const paths = [...(await text(client)).matchAll(/"path":"\/(\w+)"/g)].map(([, path]) => path);
    expect(paths).toEqual(['0', '1', '2', '3', '4', 'last']);
  });

  it('does so on its own account: beyond what the server can bear in all, others get 503 until somebody has gone', async () => {
    let asked = 0;
    let hangs = true;
    const listener = await start({
      maxRequests: 2,
      fetch: () => {
        asked += 1;
        return hangs ? new Promise(() => {}) : new Response('done');
      },
    });
    const held = [open(listener), open(listener)];
    for (const socket of held) socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(3));
    await expect.poll(() => asked, { timeout: 10_000 }).toBe(2);
    const refused = await fetch(listener.url);
    expect({ status: refused.status, retry: refused.headers.get('retry-after'), body: await refused.json() }).toEqual({
      status: 503,
      retry: '1',
      body: { error: 'unavailable', message: expect.any(String) },
    });
    for (const socket of held) socket.destroy();
    hangs = false;
    await expect.poll(async () => (await fetch(listener.url)).status, { timeout: 10_000 }).toBe(200);
    expect(asked).toBe(3);
  });
});

describe('the end', () => {
  it('comes at once for connections that nobody uses', async () => {
    const listener = await start({ clock: NEVER });
    const agent = new Agent({ keepAlive: true });
    try {
      const [response] = await once(request(`${listener.url}/x`, { agent }).end(), 'response');
      response.resume();
      await once(response, 'end');
      await listener.close();
      await expect(fetch(listener.url)).rejects.toThrow();
    } finally {
      agent.destroy();
    }
  });

  it('lets a request that is under way have its answer, and comes then', async () => {
    let answer: (response: Response) => void = () => undefined;
    let asked: () => void = () => undefined;
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const listener = await start({
      clock: NEVER,
      fetch: () => {
        asked();
        return new Promise((resolve) => {
          answer = resolve;
        });
      },
    });
    const client = open(listener);
    client.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await isAsked;
    const begun = performance.now();
    const closed = listener.close();
    answer(new Response('late'));
    expect(await text(client)).toMatch(/^HTTP\/1\.1 200 .*\r\nlate$/s);
    await closed;
    // The client would have kept its connection, and the server for some seconds too.
    expect(performance.now() - begun).toBeLessThan(5_000);
  });

  it('does not wait for those that never end', async () => {
    let asked: () => void = () => undefined;
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const listener = await start({
      fetch: () => {
        asked();
        return new Promise(() => {});
      },
    });
    const slow = open(listener);
    await once(slow, 'connect');
    slow.write('GET / HTTP/1.1\r\nhost: x\r\n');
    const hanging = fetch(listener.url).catch(() => 'cut');
    await isAsked;
    const begun = performance.now();
    await Promise.all([listener.close(), listener.close()]);
    const took = performance.now() - begun;
    expect(took).toBeGreaterThan(900);
    expect(took).toBeLessThan(3_000);
    expect(await hanging).toBe('cut');
  });
});
