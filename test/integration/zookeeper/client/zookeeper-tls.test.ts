import { readFileSync } from 'node:fs';
import tls from 'node:tls';
import { ACL, createClient, Id, Permission } from 'node-zookeeper-client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { acquire } from '../../../../src/node/runtime/acquire.js';
import {
  openZooKeeper,
  type ZooKeeperClient,
  type ZooKeeperOptions,
} from '../../../../src/zookeeper/client/zookeeper-client.js';
import { connectServices } from '../../../../src/zookeeper/services/connect-services.js';
import { type Certificate, TestAuthority } from '../../../support/certificates.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { killAll, runCli } from '../../../support/processes.js';
import { startSecureZooKeeper } from '../../../support/servers/secure-zookeeper.js';

const authority = new TestAuthority();
const stranger = new TestAuthority('Other CA');
const own = authority.issue({ name: 'orders' });
const pem = (file: string) => readFileSync(file);
const pair = ({ cert, key }: Certificate) => ({ cert: pem(cert), key: pem(key) });
const trusted = { ca: pem(authority.ca), ...pair(own) };
const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;

let server: Awaited<ReturnType<typeof startSecureZooKeeper>>;
let secure: string;
const clients: ZooKeeperClient[] = [];

beforeAll(async () => {
  const certificate = authority.issue({ name: 'server', hosts: 'DNS:localhost,IP:127.0.0.1' });
  server = await startSecureZooKeeper({ certificate, ca: authority.ca, clientAuth: 'need' });
  secure = `127.0.0.1:${server.securePort}`;
});
afterEach(async () => {
  tls.DEFAULT_MAX_VERSION = 'TLSv1.3';
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await Promise.all([killAll(), stopProxies()]);
});
afterAll(async () => {
  await server?.dispose();
  authority.dispose();
  stranger.dispose();
});

function open(options: Partial<ZooKeeperOptions> = {}): ZooKeeperClient {
  const client = openZooKeeper({ connect: secure, tls: trusted, clock, random, ...options });
  clients.push(client);
  return client;
}

/**
 * Waits until an attempt to connect learns that this goes wrong: not the first one on a busy machine, where
 * a server may take longer to answer than an attempt has. A caller gets the problem as a cause.
 */
async function fails(options: Partial<ZooKeeperOptions>, problem: RegExp): Promise<void> {
  const client = open(options);
  const problems: string[] = [];
  client.onState((state) => {
    if (state.status === 'connecting' && state.problem !== undefined) problems.push(state.problem);
  });
  await expect.poll(() => problems).toContainEqual(expect.stringMatching(problem));
  const error = await client.whenConnected({ timeoutMs: 100 }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ fault: 'timeout', cause: { message: expect.toBeOneOf(problems) } });
}

describe.each(VERSIONS)('a client with %s', (version) => {
  const limited = (options: Partial<ZooKeeperOptions>, problem: RegExp) => {
    tls.DEFAULT_MAX_VERSION = version;
    return fails(options, problem);
  };

  it('works as without: sessions, writes, watches, reconnects', async () => {
    tls.DEFAULT_MAX_VERSION = version;
    const { proxy, through } = await throughProxy(secure);
    const client = open({ connect: through });
    const { sessionId } = await client.whenConnected({ timeoutMs: 60_000 });
    const path = `/works-${version}`;
    const seen: (string | undefined)[] = [];
    await client.watchData(path, (znode) => seen.push(znode?.data.toString())).first;
    await client.create(path, 'x'.repeat(500_000), 'ephemeral');
    await expect.poll(() => seen.at(-1)?.length).toBe(500_000);
    const back = new Promise<void>((resolve) => {
      client.onState(({ status }) => status === 'connected' && resolve());
    });
    proxy.reset();
    await back;
    await client.setData(path, 'second');
    expect(await client.whenConnected()).toMatchObject({ sessionId });
    await expect.poll(() => seen.at(-1)).toBe('second');
  });

  it('says that no CA it trusts has signed the server certificate', async () => {
    await limited(
      { tls: { ...trusted, ca: pem(stranger.ca) } },
      /^127\.0\.0\.1:\d+: the server's certificate is signed by no CA that is trusted here \(unable to verify the first certificate/,
    );
  });

  it('says that the server certificate is for another host', async () => {
    await limited(
      { tls: { ...trusted, servername: 'zk.example' } },
      /: the server's certificate is for another host \(Host: zk\.example\. is not in the cert's altnames: DNS:localhost, IP Address:127\.0\.0\.1\)$/,
    );
  });

  it('says that the server wants a client certificate', async () => {
    await limited(
      { tls: { ca: trusted.ca } },
      /: the server wants a client certificate \(.* alert bad certificate\)$/,
    );
  });

  it('says that the server refuses the client certificate, of another CA or expired', async () => {
    const refused = /: the server refuses the client certificate \(.* alert certificate unknown\)$/;
    await limited({ tls: { ...trusted, ...pair(stranger.issue({ name: 'orders' })) } }, refused);
    await limited({ tls: { ...trusted, ...pair(authority.issue({ name: 'old', days: -1 })) } }, refused);
  });

  it('says that a port may not be one for TLS', async () => {
    await limited(
      { connect: server.connect },
      /^127\.0\.0\.1:\d+: the server closed the connection in the TLS handshake: it may not speak TLS$/,
    );
  });
});

describe('a client', () => {
  it('without TLS says that a port may be one for TLS', async () => {
    await fails(
      { tls: undefined },
      /^127\.0\.0\.1:\d+: the server closed the connection without a session: it may have no quorum, be read-only, allow .* \(maxClientCnxns\), or want TLS$/,
    );
  });

  it('trusts the CAs of Node where none is given, whatever NODE_TLS_REJECT_UNAUTHORIZED says', async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      await fails({ tls: true }, /: the server's certificate is signed by no CA that is trusted here \(/);
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
  });

  it('takes a server by a host of its certificate, or by the name that is said to be in there', async () => {
    await open({ connect: `localhost:${server.securePort}` }).whenConnected();
    await open({
      connect: `localhost:${server.securePort}`,
      tls: { ...trusted, servername: '127.0.0.1' },
    }).whenConnected();
    // Absolute, as resolvers of clusters like names; Java does not take it as the name of a server.
    await open({ tls: { ...trusted, servername: 'localhost.' } }).whenConnected();
  });

  it('is for the server whom its certificate names: access control lists can say so', async () => {
    const library = createClient(server.connect, { sessionTimeout: 10_000, spinDelay: 50, retries: 0 });
    library.connect();
    const list = [new ACL(Permission.ALL, new Id('x509', 'CN=orders'))];
    await new Promise<void>((resolve, reject) =>
      library.create('/mine', Buffer.from('secret'), list, (error) => (error ? reject(error) : resolve())),
    );
    library.close();
    expect((await open().read('/mine'))?.data.toString()).toBe('secret');
    const other = open({ tls: { ...trusted, ...pair(authority.issue({ name: 'payments' })) } });
    await expect(other.read('/mine')).rejects.toMatchObject({ fault: 'no-auth' });
    await expect(open({ connect: server.connect, tls: undefined }).read('/mine')).rejects.toMatchObject({
      fault: 'no-auth',
    });
  });

  it('waits for a handshake that takes its time, as the first one of a server may', async () => {
    const { proxy, through } = await throughProxy(secure);
    proxy.delay(250);
    const attempts = new Set<string>();
    const client = open({ connect: through });
    client.onState((state) => attempts.add(`${state.status} ${'problem' in state ? state.problem : ''}`));
    await client.whenConnected();
    expect([...attempts]).toEqual(['connected ']);
  });
});

describe('the library', () => {
  it('holds a node id that ZooKeeper gives out, and shows it in the tree', async () => {
    await using lease = await acquire({
      provider: 'zookeeper',
      zookeeper: { connect: `${secure}/held`, tls: trusted, required: true },
    });
    expect(await open().children('/held/discovery/nodes/00')).toHaveLength(1);
    expect(lease.isValid()).toBe(true);
  });

  it('registers services', async () => {
    await using services = connectServices({ connect: `${secure}/services`, tls: trusted });
    await services.zookeeper.whenConnected();
  });

  it('names what is wrong with a part, before anything is done, and never shows it', async () => {
    const wrong = { ...trusted, key: pem(authority.issue({ name: 'another' }).key) };
    const zookeeper = { connect: secure, tls: wrong };
    const error = await acquire({ provider: 'zookeeper', zookeeper }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: 'CONFIG_INVALID',
      message:
        'tls.key: expected the private key of the certificate, in PEM and without a passphrase, got "…"',
    });
  });
});

describe('nodelease', () => {
  const FLAGS = [
    '--zookeeper-tls',
    '--zookeeper-ca',
    authority.ca,
    '--zookeeper-cert',
    own.cert,
    '--zookeeper-key',
    own.key,
  ];

  async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const command = runCli(args, { env });
    const { code } = await command.exit;
    return { code, out: command.stdout(), err: command.stderr() };
  }

  it('run announces a node, and discovery ls shows it, by flags as by variables', async () => {
    const connect = `${secure}/run`;
    const work = runCli([
      'run',
      '--store',
      'memory:',
      '--zookeeper',
      connect,
      ...FLAGS,
      '--zookeeper-required',
      '--',
      'sleep',
      '60',
    ]);
    await work.waitForOutput(/discovery: ok, this node is in the tree/);
    const env = {
      NODELEASE_ZOOKEEPER: connect,
      NODELEASE_ZOOKEEPER_TLS: 'true',
      NODELEASE_ZOOKEEPER_CA: authority.ca,
      NODELEASE_ZOOKEEPER_CERT: own.cert,
      NODELEASE_ZOOKEEPER_KEY: own.key,
      NODELEASE_ZOOKEEPER_SERVERNAME: 'localhost',
    };
    const shown = await run(['discovery', 'ls', '--json'], env);
    expect(shown).toMatchObject({ code: 0, err: '' });
    expect(shown.out).toContain('"nodeId"');
  });

  it('zk lock runs a command while it holds a lock', async () => {
    const held = await run(['zk', 'lock', '/locks/a', '--zookeeper', secure, ...FLAGS, '--', 'echo', 'held']);
    expect(held).toMatchObject({ code: 0, out: 'held\n' });
  });

  it('doctor finds a server sound', async () => {
    const { code, out } = await run(['doctor', '--provider', 'zookeeper', '--zookeeper', secure, ...FLAGS]);
    expect(out).toMatch(/ok {5}server [\d.:]+: a session within/);
    expect(code).toBe(0);
  });

  it('doctor names what a client without TLS lacks', async () => {
    const { code, out } = await run(['doctor', '--provider', 'zookeeper', '--zookeeper', secure]);
    expect(out).toMatch(
      /takes connections, but gives no session: no quorum, .*it may have no quorum, be read-only, allow .* \(maxClientCnxns\), or want TLS/,
    );
    expect(code).not.toBe(0);
  });
});
