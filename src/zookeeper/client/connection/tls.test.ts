import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { TestAuthority } from '../../../../test/support/certificates.js';
import { freePort } from '../../../../test/support/servers/free-ports.js';
import { systemClock as clock, systemRandom as random } from '../../../core/base/system.js';
import { openZooKeeper, type ZooKeeperClient } from '../zookeeper-client.js';
import { prepareTls, type ZooKeeperTls } from './tls.js';

const authority = new TestAuthority();
const pem = (file: string) => readFileSync(file, 'utf8');
const ca = pem(authority.ca);
const own = authority.issue({ name: 'orders' });
const [cert, key] = [pem(own.cert), pem(own.key)];
const otherKey = pem(authority.issue({ name: 'other' }).key);
const encrypted = execFileSync('openssl', ['pkcs8', '-topk8', '-in', own.key, '-passout', 'pass:secret'], {
  encoding: 'utf8',
});

const servers: Server[] = [];
const clients: ZooKeeperClient[] = [];

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  for (const server of servers.splice(0)) server.close();
});
afterAll(() => authority.dispose());

describe('the settings of TLS', () => {
  it.each<[string, ZooKeeperTls]>([
    ['nothing', {}],
    ['a CA', { ca }],
    ['several CAs, with words in between', { ca: Buffer.from(`first\n${ca}\nsecond\n${ca}`) }],
    ['a certificate and its key', { cert, key }],
    ['both in one file', { cert: key + cert, key: key + cert }],
    ['a host name, an address', { servername: 'zk_1.example.' }],
  ])('may be %s', (_what, tls) => {
    expect(prepareTls(tls).secureContext).toBeDefined();
  });

  const aKey = 'tls.key: expected the private key of the certificate, in PEM and without a passphrase, got';
  it.each<[string, ZooKeeperTls, string]>([
    ['a CA that is none', { ca: 'x' }, 'tls.ca: expected certificates in PEM, got "…"'],
    ['no CA', { ca: '' }, 'tls.ca: expected certificates in PEM, got "…"'],
    [
      'a CA cut off after another, which OpenSSL would pass over',
      { ca: ca + ca.slice(0, 200) },
      'tls.ca: expected certificates in PEM, got "…"',
    ],
    ['a key for a CA', { ca: key }, 'tls.ca: expected certificates in PEM, got "…"'],
    [
      'a certificate that is none',
      { cert: 'x', key },
      'tls.cert: expected the certificate of the private key, in PEM, got "…"',
    ],
    ['no certificate', { key }, 'tls.cert: expected the certificate of the private key, in PEM, got "none"'],
    ['no key', { cert }, `${aKey} "none"`],
    ['an empty key', { cert, key: '' }, `${aKey} "…"`],
    ['a key that is none', { cert, key: cert }, `${aKey} "…"`],
    ['a key with a passphrase', { cert, key: encrypted }, `${aKey} "…"`],
    ['the key of another certificate', { cert, key: otherKey }, `${aKey} "…"`],
  ])('may not be %s', (_what, tls, message) => {
    expect(() => prepareTls(tls)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', message }));
  });
});

/** The problem that a client reports of a server that does this with each connection. */
async function problemWith(
  server: Server,
  tls: ZooKeeperTls | undefined,
  meet: (socket: Socket, raw: Socket) => void,
): Promise<string> {
  let raw: Socket | undefined;
  server.on('connection', (socket: Socket) => {
    raw = socket.on('error', () => {});
    if (!('setSecureContext' in server)) meet(socket, socket);
  });
  server.on('secureConnection', (socket: Socket) =>
    meet(
      socket.on('error', () => {}),
      raw ?? socket,
    ),
  );
  server.on('tlsClientError', () => {});
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  const connect = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = openZooKeeper({ connect, tls, clock, random });
  clients.push(client);
  const problem = () => (client.state.status === 'connecting' ? client.state.problem : undefined);
  let seen: string | undefined;
  // A busy machine may let an attempt run out of time first.
  const answered = () => {
    seen = problem();
    return seen !== undefined && !/within \d+ ms/.test(seen);
  };
  await expect.poll(answered).toBe(true);
  return seen?.replace(`${connect}: `, '') ?? '';
}

describe('a server', () => {
  const certificate = authority.issue({ name: 'server', hosts: 'IP:127.0.0.1' });
  const secure = () => createTlsServer({ cert: pem(certificate.cert), key: pem(certificate.key) });
  const NONE =
    'the server closed the connection without a session: it may have no quorum, be read-only, allow no more connections from this host (maxClientCnxns), or';

  it.each<[string, (socket: Socket, raw: Socket) => void]>([
    ['closes', (socket) => socket.end()],
    ['resets', (_socket, raw) => raw.resetAndDestroy()],
  ])(
    'that %s the connection after the handshake may miss a client certificate, or not like it',
    async (_what, meet) => {
      expect(await problemWith(secure(), { ca }, meet)).toBe(`${NONE} want a client certificate`);
      expect(await problemWith(secure(), { ca, cert, key }, meet)).toBe(
        `${NONE} refuse the client certificate`,
      );
    },
  );

  it('that wants TLS may be the reason, for a client without', async () => {
    expect(await problemWith(secure(), undefined, () => {})).toBe(`${NONE} want TLS`);
  });

  it('that answers with anything else is known not to speak TLS', async () => {
    const talk = (socket: Socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n');
    expect(await problemWith(createServer(), { ca }, talk)).toBe('the server does not speak TLS');
  });

  it('with its own certificate, or an expired one, is not trusted', async () => {
    const { cert: old, key: oldKey } = authority.issue({ name: 'expired', hosts: 'IP:127.0.0.1', days: -1 });
    const expired = createTlsServer({ cert: pem(old), key: pem(oldKey) });
    expect(await problemWith(expired, { ca }, () => {})).toBe(
      "the server's certificate has expired (certificate has expired)",
    );
    const self = createTlsServer({ cert: ca, key: pem(`${authority.folder}/ca.key`) });
    const untrusted =
      "the server's certificate is signed by no CA that is trusted here (self-signed certificate";
    expect(await problemWith(self, {}, () => {})).toContain(untrusted);
  });

  it('is not connected to in plain text because an option is misspelt', () => {
    const misspelt = { connect: 'zk1:2281', TLS: true };
    expect(() => openZooKeeper(misspelt)).toThrow('got "TLS"');
  });

  it('that cannot be reached is no matter of TLS', async () => {
    const port = await freePort();
    const client = openZooKeeper({ connect: `127.0.0.1:${port}`, tls: true, clock, random });
    clients.push(client);
    await expect
      .poll(() => client.state)
      .toMatchObject({ problem: `connect ECONNREFUSED 127.0.0.1:${port}` });
  });
});
