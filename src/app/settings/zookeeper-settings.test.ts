import { execFileSync } from 'node:child_process';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { TestAuthority } from '../../../test/support/certificates.js';
import { COMMANDS } from '../cli/commands/commands.js';
import { readSettings } from './settings.js';
import { environmentName, type SettingName } from './settings-table.js';

const authority = new TestAuthority();
const { ca } = authority;
const { cert, key } = authority.issue({ name: 'orders' });
const { key: otherKey } = authority.issue({ name: 'other' });
const none = join(authority.folder, 'none.pem');
const words = join(authority.folder, 'words.txt');
writeFileSync(words, 'PRIVATE WORDS');
const pipe = join(authority.folder, 'pipe');
execFileSync('mkfifo', [pipe]);
const sparse = join(authority.folder, 'sparse');
writeFileSync(sparse, '');
truncateSync(sparse, 2 ** 31);

afterAll(() => authority.dispose());

type Values = Partial<Record<SettingName, string>>;

const read = (flags: Values, env: Record<string, string> = {}) =>
  readSettings({ flags, env, hostname: 'host' }).zookeeper?.tls;
const on = { zookeeper: 'zk', 'zookeeper-tls': 'true' };

describe('the settings of TLS to ZooKeeper', () => {
  it('are none without --zookeeper-tls, and suffice without a file: then the CAs are those that Node trusts', () => {
    expect(read({ zookeeper: 'zk' })).toBeUndefined();
    expect(read({ zookeeper: 'zk' }, { NODELEASE_ZOOKEEPER_TLS: 'false' })).toBeUndefined();
    expect(read(on)).toEqual({});
  });

  it('are the contents of files, read at the start', () => {
    const files = {
      'zookeeper-ca': ca,
      'zookeeper-cert': cert,
      'zookeeper-key': key,
      'zookeeper-servername': 'zk.example',
    };
    const [anchor, certificate, secret] = [ca, cert, key].map((file) => readFileSync(file));
    expect(read({ ...on, ...files })).toEqual({
      ca: anchor,
      cert: certificate,
      key: secret,
      servername: 'zk.example',
    });
  });

  it.each<[string, Values, string]>([
    [
      'a file that is not there',
      { 'zookeeper-ca': none },
      `--zookeeper-ca: expected a file that can be read (ENOENT), got "${none}"`,
    ],
    [
      'a pipe',
      { 'zookeeper-ca': pipe },
      `--zookeeper-ca: expected a file that can be read (FIFO), got "${pipe}"`,
    ],
    [
      'a file without an end in sight',
      { 'zookeeper-ca': sparse },
      `--zookeeper-ca: expected a file that can be read (more than 1048576 bytes), got "${sparse}"`,
    ],
    [
      'a folder',
      { 'zookeeper-ca': authority.folder },
      `--zookeeper-ca: expected a file that can be read (directory), got "${authority.folder}"`,
    ],
    [
      'no certificates',
      { 'zookeeper-ca': words },
      `--zookeeper-ca: expected certificates in PEM, got "${words}"`,
    ],
    [
      'no certificate',
      { 'zookeeper-cert': words, 'zookeeper-key': key },
      `--zookeeper-cert: expected the certificate of the private key, in PEM, got "${words}"`,
    ],
    [
      'a key alone',
      { 'zookeeper-key': key },
      '--zookeeper-cert: expected the certificate of the private key, in PEM, got "none"',
    ],
    [
      'a certificate alone',
      { 'zookeeper-cert': cert },
      '--zookeeper-key: expected the private key of the certificate, in PEM and without a passphrase, got "none"',
    ],
    [
      'the key of another certificate',
      { 'zookeeper-cert': cert, 'zookeeper-key': otherKey },
      `--zookeeper-key: expected the private key of the certificate, in PEM and without a passphrase, got "${otherKey}"`,
    ],
    [
      'no host',
      { 'zookeeper-servername': 'a b' },
      '--zookeeper-servername: expected a host name or an IP address, got "a b"',
    ],
  ])('name the setting and its file, and show no contents: %s', (_what, flags, message) => {
    expect(() => read({ ...on, ...flags })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message }),
    );
    const env = Object.fromEntries(
      Object.entries(flags).map(([name, value]) => [environmentName(name as SettingName), value]),
    );
    const named = message.replace(/^--[a-z-]+/, (flag) =>
      flag.slice(2) in flags ? environmentName(flag.slice(2) as SettingName) : flag,
    );
    expect(() => read(on, env)).toThrow(named);
  });

  const without = '--zookeeper-tls with it (nothing is encrypted without)';
  it.each<[SettingName, string]>([
    ['zookeeper-ca', ca],
    ['zookeeper-cert', cert],
    ['zookeeper-key', key],
    ['zookeeper-servername', 'zk.example'],
  ])(
    'need --zookeeper-tls, also a variable, or what is meant to be encrypted would not be: --%s',
    (name, value) => {
      expect(() => read({ zookeeper: 'zk', [name]: value })).toThrow(
        `--${name}: expected ${without}, got "${value}"`,
      );
      const env = { [environmentName(name)]: value };
      expect(() => read({ zookeeper: 'zk' }, env)).toThrow(
        `${environmentName(name)}: expected ${without}, got "${value}"`,
      );
      expect(() => read({ [name]: value })).toThrow(`--${name}: expected --zookeeper with it`);
      expect(read({}, env)).toBeUndefined();
    },
  );
});

describe('the time-out of a session', () => {
  const timeoutMs = (command: string, env: Record<string, string> = {}) => {
    const defaults = COMMANDS.find(({ name }) => name === command)?.defaults;
    return readSettings({ flags: { zookeeper: 'zk' }, env, hostname: 'host', defaults }).zookeeper
      ?.sessionTimeoutMs;
  };

  it('is 20 s for what holds locks, which lose half of it to certainty, and 10 s for discovery', () => {
    const commands = [
      'zk lock',
      'zk elect',
      'zk rwlock',
      'zk semaphore',
      'run',
      'discovery ls',
      'config watch',
    ];
    expect(commands.map((command) => timeoutMs(command))).toEqual([
      20_000, 20_000, 20_000, 20_000, 10_000, 10_000, 10_000,
    ]);
    expect(timeoutMs('zk lock', { NODELEASE_ZOOKEEPER_SESSION_TIMEOUT: '12s' })).toBe(12_000);
  });
});
