import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../servers/free-ports.js';
import { FaultProxy } from './fault-proxy.js';
import { breakOff } from './proxy-lane.js';

/** Long enough for what is not held back to arrive on the loopback interface, in milliseconds. */
const SETTLED_MS = 150;
const BROKEN = { code: 'ECONNRESET' };

let server: Server;
let seen: string[];
let proxy: FaultProxy;
let port: number;
let agent: Agent;

beforeEach(async () => {
  seen = [];
  server = createServer((incoming, outgoing) => {
    const body: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => body.push(chunk));
    incoming.on('end', () => {
      seen.push(`${incoming.method} ${incoming.url} ${Buffer.concat(body)}`.trim());
      outgoing.end(`answer to ${incoming.url}`);
    });
  });
  // No test waits for the end of an idle connection.
  server.keepAliveTimeout = 0;
  server.listen(await freePort(), '127.0.0.1');
  await once(server, 'listening');
  proxy = new FaultProxy();
  port = await proxy.start('127.0.0.1', (server.address() as AddressInfo).port);
  agent = new Agent({ keepAlive: true, maxSockets: 1 });
});

afterEach(async () => {
  agent.destroy();
  await proxy.stop();
  server.closeAllConnections();
  server.close();
});

/** One request on the kept-alive connection; rejects with the socket's error. */
async function ask(
  method: string,
  path: string,
  body = '',
  headers: Record<string, string> = {},
): Promise<string> {
  const outgoing = request({ port, host: '127.0.0.1', agent, method, path, headers });
  if (headers.expect) {
    outgoing.flushHeaders();
    await once(outgoing, 'continue');
  }
  outgoing.end(body);
  const [reply] = (await once(outgoing, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of reply) text += chunk;
  return text;
}

/** Whether a request is still without an answer or a failure once either would have come. */
async function isPending(request: Promise<unknown>): Promise<boolean> {
  const settled = () => false;
  return Promise.race([request.then(settled, settled), sleep(SETTLED_MS, true)]);
}

describe('without a fault', () => {
  test('requests and answers pass, and connections are counted', async () => {
    expect(proxy.connections).toBe(0);
    expect(await ask('PUT', '/a', 'x'.repeat(300_000))).toBe('answer to /a');
    expect(await ask('GET', '/b')).toBe('answer to /b');
    expect(seen[0]).toHaveLength('PUT /a '.length + 300_000);
    expect(proxy.connections).toBe(1);
    agent.destroy();
    await expect.poll(() => proxy.connections).toBe(0);
  });

  test('a server that is not there looks like a broken connection', async () => {
    await new Promise((resolve) => server.close(resolve));
    await expect(ask('GET', '/a')).rejects.toMatchObject({ code: 'ECONNRESET' });
  });
});

describe('cut', () => {
  test('breaks open connections and new ones until healed', async () => {
    await ask('GET', '/a');
    proxy.cut();
    await expect(ask('GET', '/b')).rejects.toMatchObject({ code: 'ECONNRESET' });
    await expect(ask('GET', '/c')).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(proxy.connections).toBe(0);
    proxy.heal();
    expect(await ask('GET', '/d')).toBe('answer to /d');
    expect(seen).toEqual(['GET /a', 'GET /d']);
  });
});

describe('reset', () => {
  test('breaks open connections only', async () => {
    await ask('GET', '/a');
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    await expect.poll(() => proxy.connections).toBe(2);
    proxy.reset();
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNRESET');
    expect(proxy.connections).toBe(0);
    await expect.poll(() => Object.keys(agent.freeSockets)).toEqual([]);
    expect(await ask('GET', '/b')).toBe('answer to /b');
  });
});

test('a connection that ends and breaks at once is closed', async () => {
  const broken = once(server, 'connection').then(([socket]) => {
    socket.end();
    breakOff(socket);
    return once(socket, 'close');
  });
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  await broken;
  socket.destroy();
});

describe('stall', () => {
  test('towards the server: the request does not arrive, and never does after healing', async () => {
    await ask('GET', '/a');
    proxy.stall('to-server');
    const stalled = ask('PUT', '/b', 'late');
    expect(await isPending(stalled)).toBe(true);
    proxy.heal();
    await expect(stalled).rejects.toMatchObject(BROKEN);
    expect(await ask('GET', '/c')).toBe('answer to /c');
    expect(seen).toEqual(['GET /a', 'GET /c']);
  });

  test('towards the client: the request is applied, the answer does not come', async () => {
    proxy.stall('to-client');
    const stalled = ask('PUT', '/b', 'applied');
    await expect.poll(() => seen).toEqual(['PUT /b applied']);
    expect(await isPending(stalled)).toBe(true);
    proxy.heal();
    await expect(stalled).rejects.toMatchObject(BROKEN);
  });

  test('a request whose client has gone away is delivered late when the test asks for it', async () => {
    proxy.stall('both');
    const stalled = ask('PUT', '/b', 'late');
    expect(await isPending(stalled)).toBe(true);
    agent.destroy();
    await expect(stalled).rejects.toMatchObject(BROKEN);
    expect(seen).toEqual([]);
    proxy.heal({ deliverHeld: true });
    await expect.poll(() => seen).toEqual(['PUT /b late']);
    await expect.poll(() => proxy.connections).toBe(0);
  });

  test('a connection that had nothing to say meanwhile outlives it', async () => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    await expect.poll(() => proxy.connections).toBe(1);
    proxy.stall('both');
    await sleep(SETTLED_MS);
    proxy.heal();
    socket.write('GET /a HTTP/1.1\r\nhost: x\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toContain('200 OK');
    socket.destroy();
  });
});

describe('delay', () => {
  test('an answer comes later by the delay of both ways, and in time again after healing', async () => {
    proxy.delay(200);
    let began = performance.now();
    expect(await ask('PUT', '/a', 'x')).toBe('answer to /a');
    expect(performance.now() - began).toBeGreaterThanOrEqual(395);
    // So long that an answer within less was not delayed at all, however busy the machine.
    proxy.delay(60_000);
    proxy.heal();
    began = performance.now();
    expect(await ask('GET', '/b')).toBe('answer to /b');
    expect(performance.now() - began).toBeLessThan(60_000);
  });

  test('a shorter delay does not let later bytes overtake earlier ones', async () => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    await expect.poll(() => proxy.connections).toBe(1);
    proxy.delay(300);
    socket.write('GET /early HTTP/1.1\r\nhost: x\r\n\r\n');
    await sleep(50);
    proxy.delay(1);
    socket.write('GET /late HTTP/1.1\r\nhost: x\r\n\r\n');
    await expect.poll(() => seen).toEqual(['GET /early', 'GET /late']);
    socket.destroy();
  });
});

describe('dropNextReply', () => {
  test('the matching request is applied, its answer lost, and only that one', async () => {
    await ask('GET', '/before');
    const dropped = proxy.dropNextReply((head) => head.startsWith('PUT /b') && /^x-mark: 1$/im.test(head));
    expect(await ask('PUT', '/b', 'other')).toBe('answer to /b');
    await expect(ask('PUT', '/b', 'lost', { 'x-mark': '1' })).rejects.toMatchObject({ code: 'ECONNRESET' });
    const { requestHead, status } = await dropped;
    expect(requestHead).toMatch(/^PUT \/b HTTP\/1\.1\r\n/);
    expect(status).toBe(200);
    expect(await ask('PUT', '/b', 'again', { 'x-mark': '1' })).toBe('answer to /b');
    expect(seen).toEqual(['GET /before', 'PUT /b other', 'PUT /b lost', 'PUT /b again']);
  });

  test('a body that looks like a request is not taken for one, whether sized or chunked', async () => {
    const dropped = proxy.dropNextReply((head) => head.startsWith('PUT /x'));
    const body = 'PUT /x HTTP/1.1\r\nhost: x\r\n\r\n';
    expect(await ask('PUT', '/a', body, { 'content-length': String(body.length) })).toBe('answer to /a');
    expect(await ask('PUT', '/b', body, { 'transfer-encoding': 'chunked' })).toBe('answer to /b');
    await expect(ask('PUT', '/x')).rejects.toMatchObject({ code: 'ECONNRESET' });
    await expect(dropped).resolves.toMatchObject({ status: 200 });
  });

  test('a client that waits for "100 Continue" gets it; the final answer is what is lost', async () => {
    const dropped = proxy.dropNextReply((head) => head.startsWith('PUT /big'));
    await expect(ask('PUT', '/big', 'data', { expect: '100-continue' })).rejects.toMatchObject({
      code: 'ECONNRESET',
    });
    await expect(dropped).resolves.toMatchObject({ status: 200 });
    expect(seen).toEqual(['PUT /big data']);
  });

  test('healing gives up a drop that found no request', async () => {
    const dropped = proxy.dropNextReply(() => true);
    proxy.heal();
    await expect(dropped).rejects.toThrow('healed before a matching request came');
    expect(await ask('GET', '/a')).toBe('answer to /a');
  });
});

test('after stop() nothing listens and no connection is left', async () => {
  await ask('GET', '/a');
  await proxy.stop();
  await proxy.stop();
  expect(proxy.connections).toBe(0);
  await expect(ask('GET', '/b')).rejects.toMatchObject({
    code: expect.stringMatching(/ECONNREFUSED|ECONNRESET/),
  });
});
