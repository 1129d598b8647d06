import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, connect as openSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { runInProcess } from '../../../support/in-process.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';

const ONE = {
  name: 'orders',
  id: 'one',
  address: '10.0.0.1',
  port: 8080,
  registrationTimeUTC: 1_795_000_000_000,
  serviceType: 'STATIC',
};
const LISTENS_WITHIN_MS = 20_000;

let connect: string;
let folder: string;
let token: string;

beforeEach(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('serve')}`;
  folder = await mkdtemp(join(tmpdir(), 'nodelease-serve-'));
  token = join(folder, 'token');
  await writeFile(token, 'a-token-for-the-tests\n');
});

afterEach(async () => {
  await killAll();
  await stopProxies();
  await closeClients();
  await rm(folder, { recursive: true });
});

const serve = (...args: string[]) =>
  runCli(['discovery', 'serve', '--http', '127.0.0.1:0', '--zookeeper', connect, ...args]);

async function urlOf(server: TestProcess): Promise<string> {
  const [, url = ''] = await server.waitForOutput(/^(http:\/\/\S+)$/m, LISTENS_WITHIN_MS);
  return url;
}

const put = (json: unknown): RequestInit => ({
  method: 'PUT',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(json),
});

/** What the page sends to disable an instance. */
const disable = {
  ...put(false),
  headers: { 'content-type': 'application/json', authorization: 'Bearer a-token-for-the-tests' },
};

/** A command line that ends at once. */
async function fail(...args: string[]) {
  const { code, answer, complaints } = await runInProcess(['discovery', 'serve', ...args]);
  return { code, answer, complaint: complaints };
}

describe('nodelease discovery serve', () => {
  it('says where it listens, answers there, and ends with 0 when it is asked to', async () => {
    const server = serve();
    const url = await urlOf(server);
    expect((await fetch(`${url}/v1/service/orders/one`, put(ONE))).status).toBe(201);
    expect(await (await fetch(`${url}/v1/service/orders`)).json()).toEqual([{ ...ONE, payload: null }]);
    expect(await (await fetch(`${url}/v1/anyservice/orders`)).json()).toEqual({ ...ONE, payload: null });
    expect(await (await fetch(`${url}/openapi.json`)).json()).toMatchObject({ openapi: '3.1.0' });
    expect((await fetch(`${url}/v1/service/%ff/one`, put({ ...ONE, name: '%ff' }))).status).toBe(400);
    const begun = performance.now();
    server.kill('SIGTERM');
    expect(await server.exit).toEqual({ code: 0, signal: null });
    expect(performance.now() - begun).toBeLessThan(10_000);
    expect(server.stdout()).toBe(`${url}\n`);
    expect(server.stderr()).toContain(`at ${url}, changes by any client on this machine`);
    expect(await client(connect).children('/services/orders')).toEqual(['one']);
  });

  it('takes its settings: base path, token, strategy', async () => {
    const own = ['--http', '127.0.0.1:0', '--service-base-path', '/curator', '--strategy', 'sticky'];
    const env = { NODELEASE_ZOOKEEPER: connect, NODELEASE_BEARER_TOKEN_FILE: token };
    const server = runCli(['discovery', 'serve', ...own], { env });
    const url = await urlOf(server);
    expect((await fetch(`${url}/v1/service/orders/one`, put(ONE))).status).toBe(401);
    for (const instance of [ONE, { ...ONE, id: 'lasting', serviceType: 'PERMANENT' }]) {
      const { headers, ...rest } = put(instance);
      const authorized = { ...rest, headers: { ...headers, authorization: 'Bearer a-token-for-the-tests' } };
      expect((await fetch(`${url}/v1/service/orders/${instance.id}`, authorized)).status).toBe(201);
    }
    // The page changes nothing without --allow-writes.
    expect((await fetch(`${url}/api/services/orders/lasting/enabled`, disable)).status).toBe(403);
    expect((await client(connect).children('/curator/orders'))?.toSorted()).toEqual(['lasting', 'one']);
    expect(server.stderr()).not.toContain('a-token-for-the-tests');
  });

  it('has a page of the services at /, which changes instances only with --allow-writes, and that only with a token', async () => {
    await client(connect).createWithParents('/services/orders/one', '{}', 'persistent');
    const url = await urlOf(serve('--bearer-token-file', token, '--allow-writes'));
    const page = await fetch(`${url}/`);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'");
    const loaded = [...(await page.text()).matchAll(/(?:href|src)="(console\/[^"]+)"/g)].map(
      ([, path]) => path,
    );
    expect(loaded).toEqual(['console/console.css', 'console/page/services.js']);
    for (const path of loaded) expect((await fetch(`${url}/${path}`)).status).toBe(200);
    expect((await fetch(`${url}/api/services/orders/one/enabled`, disable)).status).toBe(204);
    for (const wrong of [
      ['--allow-writes'],
      ['--allow-writes', '--read-only', '--bearer-token-file', token],
    ]) {
      const { code, complaint } = await fail('--http', '127.0.0.1:0', '--zookeeper', connect, ...wrong);
      expect([code, complaint]).toEqual([64, expect.stringMatching(/--allow-writes: expected /)]);
    }
  });

  it('ends on SIGINT too, while clients are slow; one that is read-only needs no token', async () => {
    const args = ['discovery', 'serve', '--http', '127.0.0.1:0', '--zookeeper', connect, '--read-only'];
    const server = runCli(args, { env: { NODELEASE_BEARER_TOKEN_FILE: '/nowhere/token' } });
    const url = new URL(await urlOf(server));
    const slow = openSocket(Number(url.port), url.hostname);
    slow.on('error', () => {});
    slow.write('GET / HTTP/1.1\r\nhost: localhost\r\n');
    expect((await fetch(`${url.origin}/v1/service/orders/one`, put(ONE))).status).toBe(403);
    server.kill('SIGINT');
    expect(await server.exit).toEqual({ code: 0, signal: null });
    expect(await text(slow).catch(() => '')).toBe('');
  });

  it('starts without ZooKeeper, says so once, and answers as soon as it is there', async () => {
    const { proxy, through } = await throughProxy(connect);
    proxy.cut();
    const server = runCli(['discovery', 'serve', '--http', '[::1]:0', '--zookeeper', through]);
    const url = await urlOf(server);
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    const answers = await Promise.all([1, 2, 3].map(() => fetch(`${url}/v1/service`)));
    for (const answer of answers)
      expect([answer.status, await answer.json()]).toMatchObject([503, { error: 'unavailable' }]);
    proxy.heal();
    await expect.poll(async () => (await fetch(`${url}/v1/service`)).status).toBe(200);
    await server.waitForOutput(/"connected to /);
    expect(server.stderr().match(/no connection to/g)).toHaveLength(1);
  });

  it('takes no larger heads than ever where Node itself would', async () => {
    const env = { NODE_OPTIONS: '--max-http-header-size=1000000' };
    const server = runCli(['discovery', 'serve', '--http', '127.0.0.1:0', '--zookeeper', connect], { env });
    const url = new URL(await urlOf(server));
    const socket = openSocket(Number(url.port), url.hostname);
    socket.on('error', () => {});
    socket.write(
      `GET /openapi.json HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`,
    );
    expect(await text(socket).catch(() => '')).toMatch(/^HTTP\/1\.1 431 /);
  });

  it('survives everything that a client may send', async () => {
    const server = serve();
    const url = new URL(await urlOf(server));
    const raw = async (bytes: string) => {
      const socket = openSocket(Number(url.port), url.hostname);
      socket.on('error', () => {});
      socket.write(bytes);
      const answer = await text(socket).catch(() => '');
      return answer.split('\r\n')[0];
    };
    expect(await raw('\x16\x03\x01 hello\r\n\r\n')).toBe('HTTP/1.1 400 Bad Request');
    expect(await raw('TRACE /v1/service HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')).toBe(
      'HTTP/1.1 405 Method Not Allowed',
    );
    expect(
      await raw(
        'GET http://evil.example/v1/service HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
      ),
    ).toBe('HTTP/1.1 403 Forbidden');
    const head =
      'PUT /v1/service/orders/one HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n';
    expect(await raw(`${head}content-length: 99999999999\r\n\r\n{`)).toBe('HTTP/1.1 413 Payload Too Large');
    const chunk = `${(65_536).toString(16)}\r\n${' '.repeat(65_536)}\r\n`;
    expect(await raw(`${head}transfer-encoding: chunked\r\n\r\n${chunk.repeat(32)}`)).toBe(
      'HTTP/1.1 413 Payload Too Large',
    );
    expect((await fetch(`${url.origin}/v1/service`, { method: 'POST', body: 'x' })).status).toBe(405);
    expect((await fetch(`${url.origin}/v1/service/orders`)).status).toBe(200);
    expect(server.stderr()).not.toMatch(/\n\s+at /);
  });
});

describe('mistakes', () => {
  it.each([
    [['--http', '8080'], '--http: expected HOST:PORT'],
    [['--http', '127.0.0.1:99999'], '--http: expected HOST:PORT'],
    [['--http', '0.0.0.0:0'], '--http: expected a loopback address'],
    [['--http', '192.0.2.1:0', '--read-only'], '--http: expected an address of this machine'],
    [['--bearer-token-file', '/nowhere/token'], '--bearer-token-file: expected a file that holds one token'],
    [['--strategy', 'best'], '--strategy: expected one of round-robin'],
    [['--service-base-path', 'services'], '--service-base-path: expected an absolute path'],
    [['--nodes', '3'], "unknown option '--nodes'"],
    [['orders'], 'too many arguments'],
  ])('%j is refused in one line, with 64', async (args, complaint) => {
    const failed = await fail('--zookeeper', connect, ...args);
    expect(failed).toEqual({ code: 64, answer: '', complaint: expect.stringContaining(complaint) });
    expect(failed.complaint.trimEnd().split('\n')).toHaveLength(1);
  });

  it('a missing --zookeeper is one', async () => {
    expect(await fail()).toMatchObject({
      code: 64,
      complaint: expect.stringContaining('no ZooKeeper given'),
    });
  });

  it('a port that is taken is one', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    const { code, complaint } = await fail('--zookeeper', connect, '--http', address);
    other.close();
    expect({ code, complaint }).toEqual({
      code: 64,
      complaint: `nodelease: --http: expected a port that no other program listens on (this one is taken), got "${address}" [CONFIG_INVALID]\n`,
    });
  });
});
