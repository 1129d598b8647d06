import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { type HttpListener, type ListenOptions, listen } from '../../../../src/app/http/server/listen.js';
import { systemClock } from '../../../../src/core/base/system.js';
import { formatListenAddress } from '../../../../src/core/settings/listen-address.js';
import { freePort } from '../../../support/servers/free-ports.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

/** What the program has before anything listens. */
const GLOBALS = [globalThis.Request, globalThis.Response];
/** For whom the time to wait is never over. */
const NEVER: ListenOptions['clock'] = {
  ...systemClock,
  sleep: (_, signal) =>
    new Promise((__, reject) =>
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true }),
    ),
};

const listeners: HttpListener[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(listeners.splice(0).map((each) => each.close()));
});

async function start(options: Partial<ListenOptions> = {}): Promise<HttpListener> {
  const fetch = ({ url }: Request) => Response.json({ path: new URL(url).pathname });
  const listener = await listen({
    fetch,
    at: { host: '127.0.0.1', port: 0 },
    label: '--http',
    clock: systemClock,
    ...options,
  });
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
  it('says where it listens, and answers there', async () => {
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
    [
      'a port that is taken',
      '127.0.0.1',
      undefined,
      'a port that no other program listens on (this one is taken)',
    ],
    ['an address of another machine', '192.0.2.1', 0, 'an address of this machine'],
    [
      'a link-local address alone',
      'fe80::1',
      0,
      'an address of this machine, a link-local one with its zone',
    ],
    ['a name that no host has', 'no-host.invalid', 0, 'a host name that'],
  ])('refuses %s, naming the setting and the value', async (_, host, port, expected) => {
    const { address } = await start();
    const at = { host, port: port ?? address.port };
    const error = await listen({
      fetch: () => new Response(),
      at,
      label: '--http',
      clock: systemClock,
    }).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining(`--http: expected ${expected}`),
    });
    expect(String(error)).toContain(`got "${formatListenAddress(at)}"`);
  });

  it('leaves the Request and Response of the program as they were', async () => {
    await start();
    expect(globalThis.Request).toBe(GLOBALS[0]);
    expect(globalThis.Response).toBe(GLOBALS[1]);
    // Files share their process, and Hono's own would extend those of the platform.
    expect(GLOBALS.every((type) => Object.getPrototypeOf(type) === Function.prototype)).toBe(true);
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

describe('a client that sends a megabyte of headers', () => {
  it('is refused and disconnected, and the others are answered', async () => {
    const listener = await start();
    const large = `GET / HTTP/1.1\r\nhost: x\r\n${`x: ${'a'.repeat(1_000)}\r\n`.repeat(1_000)}\r\n`;
    const answers = await Promise.all(Array.from({ length: 20 }, () => answerTo(listener, large)));
    // The reset of a connection that is still being written to may overtake the answer.
    for (const answer of answers) expect(answer).toMatch(/^(HTTP\/1\.1 431 |$)/);
    expect((await fetch(listener.url)).status).toBe(200);
  });

  it('is disconnected when it does not stop', async () => {
    const listener = await start();
    const socket = open(listener);
    socket.resume();
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n');
    const more = setInterval(() => socket.write(`x: ${'a'.repeat(10_000)}\r\n`), 10);
    const begun = performance.now();
    await new Promise((resolve) => socket.once('close', resolve));
    clearInterval(more);
    // Sooner than one whose headers just take too long.
    expect(performance.now() - begun).toBeLessThan(9_000);
  });
});

describe('a client that is slow', () => {
  it('holds up no other client', async () => {
    const listener = await start();
    const slow = Array.from({ length: 200 }, () => open(listener));
    for (const socket of slow) socket.write('GET / HTTP/1.1\r\nhost: x\r\nx-slow: ');
    const trickle = setInterval(() => slow.forEach((socket) => void socket.write('a')), 500);
    try {
      const begun = performance.now();
      for (let i = 0; i < 20; i += 1) expect((await fetch(listener.url)).status).toBe(200);
      // Before the slow ones are let go.
      expect(performance.now() - begun).toBeLessThan(9_000);
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

  it('may have company up to a bound, as long as each asks for something; further ones are closed at once, until a client leaves', async () => {
    let asked = 0;
    const hangs = ({ url }: Request) => {
      asked += 1;
      return url.endsWith('/hang') ? new Promise<Response>(() => {}) : new Response();
    };
    const listener = await start({ maxConnections: 2, fetch: hangs });
    const hanging: Socket[] = [];
    for (const count of [1, 2]) {
      const socket = open(listener);
      socket.write('GET /hang HTTP/1.1\r\nhost: x\r\n\r\n');
      await expect.poll(() => asked).toBe(count);
      hanging.push(socket);
    }
    expect(await text(open(listener)).catch(() => '')).toBe('');
    hanging[0]?.destroy();
    const status = () =>
      fetch(listener.url).then(
        (response) => response.status,
        () => 'refused',
      );
    await expect.poll(status).toBe(200);
  });

  it('is let go for others when connections run short, unless it has asked for something: the first one first', async () => {
    let release: () => void = () => undefined;
    let isAsked = false;
    const listener = await start({
      maxConnections: 8,
      fetch: ({ url }) => {
        if (!url.endsWith('/hang')) return new Response('at once');
        isAsked = true;
        return new Promise((resolve) => {
          release = () => resolve(new Response('late'));
        });
      },
    });
    const asking = open(listener);
    asking.write('GET /hang HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    await expect.poll(() => isAsked).toBe(true);
    const dribbling = open(listener);
    dribbling.write('GET / HTTP/1.1\r\nhost: ');
    // A reset may come before anything waits for it.
    const ends = Promise.all([text(dribbling), text(open(listener))]).catch(() => 'reset');
    for (let i = 0; i < 40; i += 1) {
      const socket = open(listener);
      socket.resume();
      await once(socket, 'connect');
      expect(await (await fetch(`${listener.url}/${i}`, { headers: { connection: 'close' } })).text()).toBe(
        'at once',
      );
    }
    expect(await ends).toBeDefined();
    release();
    expect(await text(asking)).toMatch(/^HTTP\/1\.1 200 .*\r\nlate$/s);
  });
});

describe('a connection that is kept', () => {
  const agent = new Agent({ keepAlive: true });
  afterEach(() => agent.destroy());

  async function ask({ url }: HttpListener) {
    const asked = request(url, { agent }).end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const { socket } = response;
    return {
      body: await text(response),
      announced: response.headers['keep-alive'],
      isReused: asked.reusedSocket,
      socket,
    };
  }

  it('stays, however long it is not used, so that no health check meets the closing of its connection', async () => {
    const fetch = ({ url }: Request) =>
      url.endsWith('/hang') ? new Promise<Response>(() => {}) : new Response('done');
    const listener = await start({ silentMs: 300, fetch });
    expect(await ask(listener)).toMatchObject({ body: 'done', announced: undefined, isReused: false });
    // One with a request under way is let go by then, though it came later.
    expect(await answerTo(listener, 'GET /hang HTTP/1.1\r\nhost: x\r\n\r\n')).toBe('');
    expect(await ask(listener)).toMatchObject({ body: 'done', isReused: true });
  });

  it('is probed by TCP, which finds out that the machine of a client has gone', async () => {
    const listener = await start();
    const { socket } = await ask(listener);
    const port = (of: number | undefined) => `:${of?.toString(16).toUpperCase().padStart(4, '0')}`;
    const sockets = () => readFileSync('/proc/net/tcp', 'utf8').split('\n');
    const timerOfServer = () => {
      const columns = sockets().map((line) => line.trim().split(/\s+/));
      const own = columns.find(
        ([, here, there]) =>
          here?.endsWith(port(listener.address.port)) && there?.endsWith(port(socket.localPort)),
      );
      return own?.[5]?.slice(0, 2);
    };
    // The kernel's number for the timer of keep-alive probes.
    await expect.poll(timerOfServer).toBe('02');
  });
});

describe('a stream', () => {
  const streaming = (pull: () => string | undefined, pauseMs: number, cancel?: () => void) => () =>
    new Response(
      new ReadableStream<Uint8Array>(
        {
          pull: async (controller) => {
            await systemClock.sleep(pauseMs);
            const next = pull();
            if (next === undefined) controller.close();
            else controller.enqueue(Buffer.from(next));
          },
          ...(cancel && { cancel }),
        },
        { highWaterMark: 0 },
      ),
    );

  it('goes on for longer than a connection may be silent, as long as something goes through it', async () => {
    let beats = 0;
    const beat = () => {
      beats += 1;
      return beats > 24 ? undefined : ': beat\n\n';
    };
    const listener = await start({ silentMs: 1_000, fetch: streaming(beat, 50) });
    expect((await (await fetch(listener.url)).text()).split('beat')).toHaveLength(25);
  });

  it('is not made any further when its client does not take it, and that client is let go', async () => {
    let made = 0;
    let isCancelled = false;
    const chunk = 'x'.repeat(65_536);
    const make = () => {
      made += 1;
      return chunk;
    };
    const listener = await start({
      silentMs: 500,
      fetch: streaming(make, 0, () => {
        isCancelled = true;
      }),
    });
    const client = open(listener);
    client.pause();
    client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    await expect.poll(() => made).toBeGreaterThan(0);
    await expect.poll(() => isCancelled).toBe(true);
    // What the operating systems of both ends keep is bounded, and so is what was made for them.
    expect(made).toBeLessThan(500);
    const before = made;
    client.resume();
    await text(client).catch(() => '');
    expect(made).toBe(before);
  });
});

describe('a client that sends requests ahead', () => {
  it.each([
    ['requests', () => false],
    ['health checks', () => true],
  ])(
    'is disconnected with more than 16 of them, and none of the rest is answered or kept: %s',
    async (_, isUrgent) => {
      const large = Buffer.alloc(16 * 1024 * 1024, 'x');
      const asked: string[] = [];
      const listener = await start({
        isUrgent,
        fetch: ({ url }) => {
          asked.push(new URL(url).pathname);
          return new Response(large);
        },
      });
      const client = open(listener);
      client.write(
        Array.from({ length: 1_500 }, (_, index) => `GET /${index} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''),
      );
      await text(client).catch(() => '');
      expect(asked.length).toBeLessThanOrEqual(16);
      expect((await (await fetch(`${listener.url}/other`)).arrayBuffer()).byteLength).toBe(large.length);
    },
  );

  it('gets its answers in order', async () => {
    const listener = await start();
    const client = open(listener);
    const last = 'GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
    client.write(
      `${Array.from({ length: 5 }, (_, index) => `GET /${index} HTTP/1.1\r\nhost: x\r\n\r\n`).join('')}${last}`,
    );
    const paths = [...(await text(client)).matchAll(/"path":"\/(\w+)"/g)].map(([, path]) => path);
    expect(paths).toEqual(['0', '1', '2', '3', '4', 'last']);
  });

  it('is refused with 503 like all others while too many requests are under way, health checks excepted', async () => {
    let asked = 0;
    let hangs = true;
    const listener = await start({
      maxRequests: 2,
      isUrgent: (path) => path === '/livez',
      fetch: ({ url }) => {
        if (url.endsWith('/livez?now')) return new Response('done');
        asked += 1;
        return hangs ? new Promise(() => {}) : new Response('done');
      },
    });
    const held = [open(listener), open(listener)];
    for (const socket of held) socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(3));
    await expect.poll(() => asked).toBe(2);
    const refused = await fetch(listener.url);
    expect({
      status: refused.status,
      retry: refused.headers.get('retry-after'),
      body: await refused.json(),
    }).toEqual({
      status: 503,
      retry: '1',
      body: { error: 'unavailable', message: expect.any(String) },
    });
    expect(asked).toBe(2);
    // Health checks are answered all the same.
    expect(await (await fetch(`${listener.url}/livez?now`)).text()).toBe('done');
    for (const socket of held) socket.destroy();
    hangs = false;
    await expect.poll(async () => (await fetch(listener.url)).status).toBe(200);
    expect(asked).toBe(3);
  });
});

describe('the end', () => {
  it('comes at once for idle connections', async () => {
    const listener = await start({ clock: NEVER, at: { host: '127.0.0.1', port: await freePort() } });
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

  it('does not wait for requests that never end', async () => {
    let asked: () => void = () => undefined;
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const clock = new VirtualClock();
    const listener = await start({
      clock,
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
    let isClosed = false;
    const closed = Promise.all([listener.close(), listener.close()]).then(() => {
      isClosed = true;
    });
    await clock.advance(999);
    expect(isClosed).toBe(false);
    await clock.advance(1);
    await closed;
    expect(await hanging).toBe('cut');
  });
});
