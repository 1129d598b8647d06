import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import * as undici6 from 'undici';
import * as undici7 from 'undici-7';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { newInstance } from '../../../../src/zookeeper/services/instance/new-instance.js';
import {
  type RoutingOptions,
  serviceDispatcher,
  serviceInterceptor,
} from '../../../../src/zookeeper/services/routing/index.js';
import { codeOf } from './routing-suite.js';
import { type Backend, Backends, instanceAt, RecordingProvider } from './routing-support.js';

let backends: Backends;
let tls: { readonly key: string; readonly cert: string };
let directory: string;
const dispatchers: { destroy(): Promise<void> }[] = [];

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'routing-'));
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const names = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  execFileSync('openssl', ['req', ...kind, '-keyout', key, '-out', cert, ...names], { stdio: 'pipe' });
  tls = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

beforeEach(() => {
  backends = new Backends();
});

afterEach(async () => {
  for (const dispatcher of dispatchers.splice(0)) await dispatcher.destroy();
  await backends.close();
});

// Their types differ in what is not used here.
const versions = [
  { name: 'undici 6', undici: undici6 },
  { name: 'undici 7', undici: undici7 as unknown as typeof undici6 },
];

describe.each(versions)('a dispatcher of $name', ({ name, undici }) => {
  let provider: RecordingProvider;

  function over(
    instances: readonly Pick<Backend, 'instance'>[],
    options: RoutingOptions = {},
    agent: undici6.Agent.Options = {},
  ) {
    provider = new RecordingProvider(instances);
    const dispatcher = serviceDispatcher(provider, { ...options, dispatcher: new undici.Agent(agent) });
    dispatchers.push(dispatcher);
    return dispatcher;
  }

  it('is a dispatcher in its own right, for which no origin is needed', async () => {
    const dispatcher = over([await backends.http('a')]) as undici6.Dispatcher;
    const options = { path: '/', method: 'GET' } as undici6.Dispatcher.RequestOptions;
    expect(await (await dispatcher.request(options)).body.text()).toBe('a');
    const piped = dispatcher.pipeline(options as undici6.Dispatcher.PipelineOptions, ({ body }) => body);
    expect(await new Response(Readable.toWeb(piped.end()) as ReadableStream).text()).toBe('a');
  });

  it('sends a stream once only, but hands an unread one to another instance', async () => {
    const [bad, dead] = [await backends.resetting('bad'), await backends.refusing('dead')];
    const good = await backends.http('good', (request, response) => request.pipe(response));
    const put = (dispatcher: undici6.Dispatcher, body: Readable) =>
      undici.request('http://orders/', { method: 'PUT', body, dispatcher });
    await expect(put(over([bad, good]), Readable.from(['some ', 'text']))).rejects.toThrow();
    expect([provider.noted, good.served]).toEqual([['bad'], 0]);
    const replied = await put(over([dead, good]), Readable.from(['some ', 'text']));
    expect([await replied.body.text(), provider.noted]).toEqual(['some text', ['dead']]);
  });

  it('does not blame an instance for an error of the body that the caller gave', async () => {
    const broken = new Readable({ read: () => undefined });
    broken.push('some');
    const problem = Object.assign(new Error('no more'), { code: 'ECONNRESET' });
    const good = await backends.http('good', (request) =>
      request.once('data', () => broken.destroy(problem)),
    );
    const sent = undici.request('http://orders/', { method: 'PUT', body: broken, dispatcher: over([good]) });
    await expect(sent).rejects.toThrow('no more');
    expect(provider.noted).toEqual([]);
  });

  it('does not blame an instance for a request that is none, nor for a dispatcher that is closed', async () => {
    const good = await backends.http('good');
    const dispatcher = over([good]);
    await expect(
      undici.request('http://orders/', { dispatcher, headers: { 'x-a': 'line\nfeed' } }),
    ).rejects.toThrow();
    await dispatcher.close();
    await expect(undici.request('http://orders/', { dispatcher })).rejects.toThrow();
    expect([provider.noted, good.served]).toEqual([[], 0]);
  });

  it('repeats a POST that its caller calls idempotent, and no GET that is not', async () => {
    const [bad, good] = [await backends.resetting('bad'), await backends.http('good')];
    const post = { method: 'POST', body: 'text', idempotent: true } as const;
    expect(
      await (await undici.request('http://orders/', { ...post, dispatcher: over([bad, good]) })).body.text(),
    ).toBe('good');
    await expect(
      undici.request('http://orders/', { idempotent: false, dispatcher: over([bad, good]) }),
    ).rejects.toThrow();
    expect(good.served).toBe(1);
  });

  it('passes on informational responses and trailers', async () => {
    const a = await backends.http('a', (_request, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      response.writeHead(200, { trailer: 'x-sum' });
      response.write('text');
      response.addTrailers({ 'x-sum': '42' });
      response.end();
    });
    const infos: number[] = [];
    const dispatcher = over([await backends.resetting('bad'), a]);
    const onInfo = ({ statusCode }: { statusCode: number }) => infos.push(statusCode);
    const { body, trailers } = await undici.request('http://orders/', { dispatcher, onInfo });
    expect([await body.text(), infos, trailers]).toEqual(['text', [103], { 'x-sum': '42' }]);
  });

  it('lets a slow reader slow the instance down', async () => {
    const big = randomBytes(16 * 1024 * 1024);
    let finished = false;
    const a = await backends.http('a', (_request, response) => {
      response.on('finish', () => {
        finished = true;
      });
      response.end(big);
    });
    const { body } = await undici.request('http://orders/', { dispatcher: over([a]) });
    const hash = createHash('sha256');
    let first = true;
    for await (const chunk of body) {
      // Nothing to await says that nothing happens: long enough for the rest to have come, were it not held
      // back.
      if (first) await new Promise((resolve) => setTimeout(resolve, 200));
      if (first) expect(finished).toBe(false);
      first = false;
      hash.update(chunk);
    }
    expect(hash.digest('hex')).toBe(createHash('sha256').update(big).digest('hex'));
  });

  it('passes an upgrade and a CONNECT through, once', async () => {
    const server = createServer();
    const answer = (protocol: string) => `HTTP/1.1 ${protocol}\r\n\r\n`;
    server.on('upgrade', (_request, socket) =>
      socket.end(`${answer('101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo')}up`),
    );
    server.on('connect', (_request, socket) => socket.end(`${answer('200 Connected')}through`));
    const a = await backends.tcp('a', (socket) => server.emit('connection', socket));
    const text = async (socket: Readable) => (await socket.toArray()).join('');
    const dispatcher = over([a]);
    const upgraded = await undici.upgrade('http://orders/', { dispatcher, protocol: 'echo' });
    expect(await text(upgraded.socket)).toBe('up');
    const connected = await dispatcher.connect({ origin: 'http://orders', path: 'there:80' });
    expect(await text(connected.socket)).toBe('through');
    expect(provider.noted).toEqual([]);

    const bad = over([await backends.resetting('bad'), a]);
    await expect(undici.upgrade('http://orders/', { dispatcher: bad, protocol: 'echo' })).rejects.toThrow();
    expect(provider.noted).toEqual(['bad']);
  });

  it('speaks TLS with an instance that has a TLS port, and notes one whose certificate is not trusted', async () => {
    const [secure, plain] = [await backends.http('secure', undefined, tls), await backends.http('plain')];
    const trusting = over([secure], {}, { connect: { ca: tls.cert } });
    for (const scheme of ['http', 'https']) {
      expect(await (await undici.request(`${scheme}://orders/`, { dispatcher: trusting })).body.text()).toBe(
        'secure',
      );
    }
    expect(
      await (await undici.request('http://orders/', { dispatcher: over([secure, plain]) })).body.text(),
    ).toBe('plain');
    expect(provider.noted).toEqual(['secure']);
  });

  it('sends nothing without TLS that its caller wants to be sent by TLS', async () => {
    const [plain, secure] = [await backends.http('plain'), await backends.http('secure', undefined, tls)];
    const dispatcher = over([plain, secure], {}, { connect: { ca: tls.cert } });
    for (let i = 0; i < 4; i += 1)
      expect(await (await undici.request('https://orders/', { dispatcher })).body.text()).toBe('secure');
    const sent = undici.request('https://orders/', { dispatcher: over([plain]) });
    await expect(sent).rejects.toSatisfy((error) => codeOf(error) === 'NO_INSTANCE');
    expect(plain.served).toBe(0);
  });

  it('puts the path of a uriSpec before that of the request', async () => {
    const a = await backends.http('a', (request, response) => response.end(request.url));
    const { port = 0 } = a.instance;
    const init = { name: 'orders', address: '127.0.0.1', port, uriSpec: '{scheme}://{address}:{port}/api/' };
    const instance = newInstance(init, { clock: systemClock, random: systemRandom });
    const { body } = await undici.request('http://orders/items?q=1', { dispatcher: over([{ instance }]) });
    expect(await body.text()).toBe('/api/items?q=1');
  });

  it('keeps the Host header that a request has', async () => {
    const a = await backends.http('a', (request, response) => response.end(request.headers.host));
    const { body } = await undici.request('http://orders/', {
      dispatcher: over([a]),
      headers: { host: 'shop.example' },
    });
    expect(await body.text()).toBe('shop.example');
  });

  it('leaves requests to other hosts alone, or takes those of the configured hosts', async () => {
    const [a, other] = [await backends.http('a'), await backends.http('other')];
    const there = `http://127.0.0.1:${other.instance.port}/`;
    expect(await (await undici.request(there, { dispatcher: over([a]) })).body.text()).toBe('other');
    expect(await (await undici.request(there, { dispatcher: over([a], { hosts: 'any' }) })).body.text()).toBe(
      'a',
    );
    const { body } = await undici.request('http://Shop.Example:1234/', {
      dispatcher: over([a], { hosts: ['shop.example'] }),
    });
    expect(await body.text()).toBe('a');
  });

  it('works together with other interceptors', async () => {
    const [bad, good] = [
      await backends.http('bad', (_request, response) => response.writeHead(503).end()),
      await backends.http('good'),
    ];
    provider = new RecordingProvider([bad, good]);
    const composed = new undici.Agent().compose(
      serviceInterceptor(provider),
      undici.interceptors.retry({ maxRetries: 1 }),
    );
    dispatchers.push(composed);
    const { statusCode, body } = await undici.request('http://orders/', { dispatcher: composed });
    expect([statusCode, await body.text(), provider.noted]).toEqual([200, 'good', ['bad']]);
  });

  it('serves the functions of the other version as well', async () => {
    const [bad, good] = [await backends.resetting('bad'), await backends.http('good')];
    const other = name === 'undici 6' ? (undici7 as unknown as typeof undici6) : undici6;
    for (const options of [{}, { method: 'PUT', body: 'text' } as const]) {
      expect(
        await (
          await other.request('http://orders/', { ...options, dispatcher: over([bad, good]) })
        ).body.text(),
      ).toBe('good');
      expect(provider.noted).toEqual(['bad']);
    }
    expect(await (await other.fetch('http://orders/', { dispatcher: over([bad, good]) })).text()).toBe(
      'good',
    );
  });

  it('gives the answer of the instance that was asked last, also with a dispatcher that goes on with what was given up', async () => {
    const agent = new undici.MockAgent();
    agent.disableNetConnect();
    const instances = [8001, 8002].map((port) => ({ instance: instanceAt(String(port), port) }));
    for (const [index, { instance }] of instances.entries()) {
      const intercepted = agent.get(`http://127.0.0.1:${instance.port}`).intercept({ path: '/' });
      intercepted.reply(index === 0 ? 503 : 200, `answer ${index}`).persist();
    }
    for (const send of ['request', 'fetch'] as const) {
      provider = new RecordingProvider(instances);
      const dispatcher = serviceDispatcher(provider, { dispatcher: agent });
      const answer =
        send === 'fetch'
          ? await (await undici.fetch('http://orders/', { dispatcher })).text()
          : await (await undici.request('http://orders/', { dispatcher })).body.text();
      expect([answer, provider.noted]).toEqual(['answer 1', ['8001']]);
    }
    await agent.close();
  });

  it('asks another instance where the answer is no HTTP', async () => {
    const [bad, good] = [
      await backends.tcp('bad', (socket) => socket.once('data', () => socket.end('GARBAGE\r\n\r\n'))),
      await backends.http('good'),
    ];
    expect(
      await (await undici.request('http://orders/', { dispatcher: over([bad, good]) })).body.text(),
    ).toBe('good');
    expect(provider.noted).toEqual(['bad']);
  });

  if (name === 'undici 7')
    it('reports one request to a handler of undici 7, however many attempts it took', async () => {
      const [bad, good] = [await backends.resetting('bad'), await backends.http('good')];
      const dispatcher = over([bad, good]) as unknown as undici7.Dispatcher;
      const calls: string[] = [];
      const controllers = new Set<unknown>();
      await new Promise<void>((resolve, reject) => {
        const note = (call: string) => (controller: unknown) => {
          calls.push(call);
          controllers.add(controller);
        };
        dispatcher.dispatch(
          { origin: 'http://orders', path: '/', method: 'GET' },
          {
            onRequestStart: note('start'),
            onResponseStart: note('response'),
            onResponseData: note('data'),
            onResponseEnd: (controller) => {
              note('end')(controller);
              resolve();
            },
            onResponseError: (_controller, error) => reject(error),
          },
        );
      });
      expect([calls, controllers.size]).toEqual([['start', 'response', 'data', 'end'], 1]);
    });
});
