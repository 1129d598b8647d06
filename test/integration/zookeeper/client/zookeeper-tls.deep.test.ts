import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import {
  openZooKeeper,
  type ZooKeeperClient,
  type ZooKeeperOptions,
} from '../../../../src/zookeeper/client/zookeeper-client.js';
import { type Certificate, TestAuthority } from '../../../support/certificates.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll, runCli } from '../../../support/processes.js';
import {
  type SecureZooKeeperOptions,
  startSecureZooKeeper,
} from '../../../support/servers/secure-zookeeper.js';

type SecureZooKeeper = Awaited<ReturnType<typeof startSecureZooKeeper>>;

const authority = new TestAuthority();
const stranger = new TestAuthority('Other CA');
const good = authority.issue({ name: 'server', hosts: 'DNS:localhost,IP:127.0.0.1' });
const ca = readFileSync(authority.ca);
const pair = ({ cert, key }: Certificate) => ({ cert: readFileSync(cert), key: readFileSync(key) });
const own = authority.issue({ name: 'orders' });
const trusted = { ca, ...pair(own) };

const servers: SecureZooKeeper[] = [];
const clients: ZooKeeperClient[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await killAll();
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.dispose()));
  authority.dispose();
  stranger.dispose();
});

async function start(
  certificate: Certificate,
  clientAuth: SecureZooKeeperOptions['clientAuth'],
): Promise<SecureZooKeeper> {
  const server = await startSecureZooKeeper({ certificate, ca: authority.ca, clientAuth });
  servers.push(server);
  return server;
}

function open(connect: string, options: Partial<ZooKeeperOptions> = {}): ZooKeeperClient {
  const client = openZooKeeper({ connect, tls: trusted, clock, random, ...options });
  clients.push(client);
  return client;
}

async function problemOf(client: ZooKeeperClient): Promise<string> {
  let problem: string | undefined;
  const look = () => {
    problem = client.state.status === 'connecting' ? client.state.problem : undefined;
    return problem;
  };
  await expect.poll(look).toBeDefined();
  return problem ?? '';
}

describe('a server that wants client certificates', () => {
  let secure: string;
  beforeAll(async () => {
    secure = `127.0.0.1:${(await start(good, 'want')).securePort}`;
  });

  it('serves a client without one, and one with one', async () => {
    await open(secure, { tls: { ca } }).create('/open', 'a', 'persistent');
    expect((await open(secure).read('/open'))?.data.toString()).toBe('a');
  });

  it('refuses a certificate that it cannot trust', async () => {
    const tls = { ca, ...pair(stranger.issue({ name: 'orders' })) };
    expect(await problemOf(open(secure, { tls }))).toMatch(/: the server refuses the client certificate \(/);
  });

  it('accepts credentials in addition to the certificate', async () => {
    const auth = 'digest:me:secret';
    await open(secure, { auth }).create('/protected', 'a', 'persistent');
    await expect(open(secure).setData('/protected', 'b')).resolves.toMatchObject({ version: 1 });
    await expect(open(secure, { tls: { ca } }).setData('/protected', 'c')).rejects.toMatchObject({
      fault: 'no-auth',
    });
    await open(secure, { auth, tls: { ca } }).setData('/protected', 'd');
  });
});

describe('a server that asks for no client certificates', () => {
  it('serves a client that has one', async () => {
    const { securePort } = await start(good, 'none');
    await open(`127.0.0.1:${securePort}`).create('/a', '', 'persistent');
  });
});

describe('a server that needs client certificates', () => {
  let server: SecureZooKeeper;
  beforeAll(async () => {
    server = await start(good, 'need');
  });

  it('is found again after a crash, in the same session, though its first handshake takes its time', async () => {
    const client = open(`127.0.0.1:${server.securePort}`, { sessionTimeoutMs: 40_000 });
    const { sessionId } = await client.whenConnected();
    const problems = new Set<string>();
    client.onState(
      (state) => 'problem' in state && state.problem !== undefined && problems.add(state.problem),
    );
    await server.kill();
    await server.start();
    expect(await client.whenConnected({ timeoutMs: 30_000 })).toMatchObject({ sessionId });
    // A handshake has 5 s, and on a machine that has much else to do needs more: no attempt is given up
    // sooner.
    const waitedMs = [...problems]
      .flatMap((problem) => /no session within (\d+) ms/.exec(problem)?.[1] ?? [])
      .map(Number);
    expect(waitedMs.filter((ms) => ms < 5_000)).toEqual([]);
  });

  it('is given up where it freezes in a handshake', async () => {
    await new ProcessHandle(server.pid ?? 0).pause();
    const client = open(`127.0.0.1:${server.securePort}`);
    await expect
      .poll(() => client.state)
      .toMatchObject({ problem: expect.stringMatching(/no session within 4000 ms$/) });
    server.resume();
    await client.whenConnected();
  });

  it.each([
    [
      'no client certificate',
      'secure',
      ['--zookeeper-ca', authority.ca],
      /the server wants a client certificate/,
    ],
    ['an unknown CA', 'secure', [], /certificate is signed by no CA that is trusted here/],
    ['a port without TLS', 'plain', [], /: it may not speak TLS/],
  ])('has doctor name %s', async (_what, port, flags, expected) => {
    const zookeeper = port === 'plain' ? server.connect : `127.0.0.1:${server.securePort}`;
    const doctor = runCli([
      'doctor',
      '--store',
      'memory:',
      '--zookeeper',
      zookeeper,
      '--zookeeper-tls',
      ...flags,
    ]);
    expect((await doctor.exit).code).not.toBe(0);
    expect(doctor.stdout()).toMatch(/gives no session \(/);
    expect(doctor.stdout()).toMatch(expected);
  });
});

describe('a server whose certificate has expired', () => {
  it('is not trusted, and doctor says why', async () => {
    const expired = authority.issue({ name: 'expired', hosts: 'IP:127.0.0.1', days: -1 });
    const secure = `127.0.0.1:${(await start(expired, 'none')).securePort}`;
    expect(await problemOf(open(secure))).toBe(
      `${secure}: the server's certificate has expired (certificate has expired)`,
    );
    const doctor = runCli([
      'doctor',
      '--store',
      'memory:',
      '--zookeeper',
      secure,
      '--zookeeper-tls',
      '--zookeeper-ca',
      authority.ca,
    ]);
    expect((await doctor.exit).code).not.toBe(0);
    expect(doctor.stdout()).toMatch(
      /FAULT {2}server .*: takes connections, but gives no session \(.*certificate has expired/,
    );
  });
});
