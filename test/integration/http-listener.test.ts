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
