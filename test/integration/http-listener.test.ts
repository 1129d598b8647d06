import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
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

describe('a client that sends a megabyte of headers', () => {
  it('is told why it is refused, though it goes on sending, and is let go', async () => {
    const listener = await start();
    const large = `GET / HTTP/1.1\r\nhost: x\r\n${`x: ${'a'.repeat(1_000)}\r\n`.repeat(1_000)}\r\n`;
    const answers = await Promise.all(Array.from({ length: 20 }, () => answerTo(listener, large)));
    for (const answer of answers) {
      expect(answer).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
      const message = 'the head of the request: expected at most 16384 bytes';
      expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toEqual({ error: 'too-large', message });
    }
    expect((await fetch(listener.url)).status).toBe(200);
  });

  it('is let go when it does not stop', async () => {
    const listener = await start();
    const socket = open(listener);
    socket.resume();
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n');
    const more = setInterval(() => socket.write(`x: ${'a'.repeat(10_000)}\r\n`), 10);
    const begun = performance.now();
    await new Promise((resolve) => socket.once('close', resolve));
    clearInterval(more);
    expect(performance.now() - begun).toBeLessThan(3_000);
  });

  it('gets no answer into the middle of another one', async () => {
    const listener = await start({ fetch: () => new Promise(() => {}) });
    const answer = await answerTo(listener, 'GET / HTTP/1.1\r\nhost: x\r\n\r\nno request at all\r\n\r\n');
    expect(answer).toBe('');
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

  it('may have company up to a bound, as long as each asks for something; further ones are closed at once, until somebody leaves', async () => {
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
      await expect.poll(() => asked, { timeout: 10_000 }).toBe(count);
      hanging.push(socket);
    }
    expect(await text(open(listener)).catch(() => '')).toBe('');
    hanging[0]?.destroy();
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

  it('is let go for others when connections run short, unless it has asked for something: whoever came first', async () => {
    let release: () => void = () => undefined;
    const listener = await start({
      maxConnections: 8,
      fetch: ({ url }) => {
        if (!url.endsWith('/hang')) return new Response('at once');
        return new Promise((resolve) => {
          release = () => resolve(new Response('late'));
        });
      },
    });
    const asking = open(listener);
    asking.write('GET /hang HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    const dribbling = open(listener);
    dribbling.write('GET / HTTP/1.1\r\nhost: ');
    const ends = Promise.all([text(dribbling), text(open(listener))]);
    for (let i = 0; i < 40; i += 1) {
      const socket = open(listener);
      socket.resume();
      await once(socket, 'connect');
      expect(await (await fetch(`${listener.url}/${i}`, { headers: { connection: 'close' } })).text()).toBe('at once');
    }
    expect(await ends.catch(() => 'reset')).toBeDefined();
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
    return { body: await text(response), announced: response.headers['keep-alive'], isReused: asked.reusedSocket, socket };
  }

  it('stays, however long nobody uses it, so that no health check meets the closing of its connection', async () => {
    const fetch = ({ url }: Request) => (url.endsWith('/hang') ? new Promise<Response>(() => {}) : new Response('done'));
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
      const own = columns.find(([, here, there]) => here?.endsWith(port(listener.address.port)) && there?.endsWith(port(socket.localPort)));
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
      return beats > 12 ? undefined : ': beat\n\n';
    };
    const listener = await start({ silentMs: 500, fetch: streaming(beat, 100) });
    expect((await (await fetch(listener.url)).text()).split('beat')).toHaveLength(13);
  });

  it('is not made any further when its client does not take it, who is let go', async () => {
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
    await expect.poll(() => made, { timeout: 10_000 }).toBeGreaterThan(0);
    await expect.poll(() => isCancelled, { timeout: 10_000 }).toBe(true);
    // What the operating systems of both ends keep is bounded, and so is what was made for them.
    expect(made).toBeLessThan(500);
    const before = made;
    client.resume();
    await text(client).catch(() => '');
    expect(made).toBe(before);
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
    client.write(Array.from({ length: 17 }, (_, index) => `GET /${index} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
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
      if (statuses.length >= 17) break;
    }
    expect(asked.filter((path) => path !== '/other')).toEqual(Array.from({ length: 9 }, (_, index) => `/${index}`));
    expect(statuses).toEqual([...Array<string>(9).fill('200'), ...Array<string>(8).fill('503')]);
  });

  it('is let go when it asks for far too much, and nothing more of that is answered', async () => {
    const asked: string[] = [];
    const listener = await start({
      fetch: ({ url }) => {
        asked.push(new URL(url).pathname);
        return new Response(LARGE);
      },
    });
    const client = open(listener);
    client.write(Array.from({ length: 1_500 }, (_, index) => `GET /${index} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
    expect(await text(client).catch(() => '')).not.toContain('503');
    expect(asked.length).toBeLessThanOrEqual(1);
    expect((await (await fetch(`${listener.url}/other`)).arrayBuffer()).byteLength).toBe(LARGE.length);
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
      isUrgent: (path) => path === '/livez',
      fetch: ({ url }) => {
        if (url.endsWith('/livez?now')) return new Response('done');
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
    expect(asked).toBe(2);
    // Health checks are answered all the same.
    expect(await (await fetch(`${listener.url}/livez?now`)).text()).toBe('done');
    for (const socket of held) socket.destroy();
    hangs = false;
    await expect.poll(async () => (await fetch(listener.url)).status, { timeout: 10_000 }).toBe(200);
    expect(asked).toBe(3);
  });
});

describe('many clients that ask at the same moment', () => {
  it('let everything else in the process go on between them', async () => {
    let answers = 0;
    const listener = await start({
      fetch: () => {
        answers += 1;
        const until = performance.now() + 2;
        while (performance.now() < until);
        return new Response();
      },
    });
    const clients = Array.from({ length: 240 }, () => open(listener));
    // Connections are taken one after the other: only when each has had an answer can all ask at once.
    for (const client of clients) {
      client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      await once(client, 'data');
    }
    answers = 0;
    let most = 0;
    let isOver = false;
    // A renewal takes several turns of the event loop, and each may take as long as the answers that are made in it.
    const turns = (async () => {
      for (let before = 0; !isOver; before = answers) {
        await setImmediate();
        most = Math.max(most, answers - before);
      }
    })();
    for (const client of clients) client.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    await expect.poll(() => answers, { timeout: 30_000 }).toBe(240);
    isOver = true;
    await turns;
    expect(most).toBeLessThan(40);
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
