import { afterAll, describe, expect, it } from 'vitest';
import { TestAuthority } from '../../../test/support/certificates.js';
import { ConfigError } from '../../core/base/errors.js';
import { CLUSTER_DEFAULTS } from '../../core/lease/model/cluster-config.js';
import { formatSetting, upToOneDay } from '../../core/settings/setting.js';
import { isServiceLink } from '../../core/settings/sources.js';
import { readSettings } from './settings.js';
import { environmentName, ROWS, SETTINGS, type SettingName } from './settings-table.js';
import { announcingProblem } from './zookeeper-settings.js';

const read = (
  flags: Readonly<Record<string, string>> = {},
  env: Record<string, string> = {},
  hostname = 'host',
) => readSettings({ flags, env, hostname });

const authority = new TestAuthority();
const own = authority.issue({ name: 'orders' });

afterAll(() => authority.dispose());

describe('settings', () => {
  it('have defaults, and leave to the cluster what the cluster decides', () => {
    expect(read()).toEqual({
      store: 'file:.nodelease',
      logLevel: 'info',
      provider: 'store',
    });
  });

  it('have the defaults that the engine has where nothing is asked for', () => {
    const { nodes, duration } = {
      nodes: ROWS.nodes.default,
      duration: ROWS.duration.default,
    };
    expect(read({ nodes, duration })).toMatchObject({
      nodes: CLUSTER_DEFAULTS.nodes,
      durationMs: CLUSTER_DEFAULTS.durationMs,
    });
  });

  it('of time can be given as their defaults are written, and as answers show them', () => {
    const defaults = SETTINGS.flatMap(({ kind, default: usual = '' }) =>
      kind.argument === 'time' && /^[\d.]+[a-z]+$/.test(usual) ? [() => kind.parse(usual, usual)] : [],
    );
    expect(defaults.length).toBeGreaterThan(5);
    for (const parse of defaults) expect(parse).not.toThrow();
    for (const ms of [1, 999, 1_001, 1_200, 4_035, 90_000, 5_400_000])
      expect(upToOneDay.parse(formatSetting(ms), 'time')).toBe(ms);
    expect(upToOneDay.parse('1.5h', 'time')).toBe(5_400_000);
    for (const text of ['1.5ms', '1.0005s', '.5s', '1.s', '1,5s'])
      expect(() => upToOneDay.parse(text, 'time')).toThrow('expected a time such as');
  });

  it('of data directories are of use without discovery', () => {
    const of = { 'data-retention': '3', 'data-exclude': 'runtime,*.tmp', 'data-copy': 'true' };
    expect(read({ 'data-dir': '/data', ...of }).dataDir).toEqual({
      root: '/data',
      retention: 3,
      exclude: ['runtime', '*.tmp'],
      copy: true,
      local: false,
    });
  });

  it('of data directories on a disk of one host need a sticky key: without it no start would find its data', () => {
    const local = { 'data-dir': '/data', 'data-local': 'true' };
    expect(read({ ...local, sticky: 'file' }).dataDir).toMatchObject({ local: true });
    expect(() => read(local)).toThrow(/^--data-local: expected --sticky KEY with it, such as file \(/);
    // No task has a key there.
    const tree = { provider: 'zookeeper', zookeeper: 'zk' };
    expect(() => read({ ...local, ...tree }, { NODELEASE_STICKY: 'file' })).toThrow(
      /^--data-local: .*node ids from ZooKeeper/,
    );
    expect(() => read({ 'data-dir': '/data' }, { NODELEASE_DATA_LOCAL: 'true' })).toThrow(
      /^NODELEASE_DATA_LOCAL: expected --sticky KEY with it/,
    );
  });

  it('can all be given as a flag and as an environment variable alike', () => {
    const values: Record<SettingName, string> & Record<string, string> = {
      store: 's3://bucket/prefix',
      cluster: 'existing',
      'cluster-name': 'orders',
      nodes: '20',
      duration: '20s',
      grace: '500ms',
      'task-id': 'me',
      'acquire-timeout': '2m',
      'wait-poll': '5s',
      'settings-interval': '1m',
      sticky: 'volume-7',
      'prefer-id': '7',
      'sticky-wait': '30s',
      shards: '64',
      'shard-stop-timeout': '1m',
      'data-dir': '/data',
      'data-retention': '3',
      'data-exclude': 'runtime,*.tmp',
      'data-copy': 'true',
      'data-local': 'true',
      'on-retire': 'drain',
      'ecs-protect': 'held',
      'node-id': '3',
      endpoint: 'http://127.0.0.1:9000',
      region: 'eu-central-1',
      'etcd-auth': 'me:secret',
      'etcd-ca': authority.ca,
      'etcd-cert': own.cert,
      'etcd-key': own.key,
      'log-level': 'debug',
      provider: 'store',
      zookeeper: 'zk1:2181,zk2:2182/app',
      'zookeeper-auth': 'digest:me:secret',
      'zookeeper-tls': 'true',
      'zookeeper-ca': authority.ca,
      'zookeeper-cert': own.cert,
      'zookeeper-key': own.key,
      'zookeeper-servername': 'zk.example',
      'zookeeper-session-timeout': '6s',
      'console-locks': '/locks,/leader',
      'console-data': '/monastery/root',
      'config-root': '/settings',
      'zookeeper-required': 'true',
      service: 'orders',
      address: '10.0.0.7',
      port: '8080',
      payload: '{"weight":5}',
      'payload-type': 'spring',
      'uri-spec': '{scheme}://{address}:{port}/v1',
      announce: 'pay:visa',
      'service-base-path': '/apps/services',
      check: 'tcp:8080',
      'check-interval': '500ms',
      'check-threshold': '2',
      config: 'shop,prod',
      'on-config-change': 'restart',
      'config-spread': '5s',
      'config-one-by-one': 'true',
      'config-snapshot': '/var/lib/shop.json',
      'config-required': 'true',
      'ready-timeout': '30s',
      http: '127.0.0.1:7070',
      'bearer-token-file': '/run/token',
      dns: '127.0.0.1:8600',
      'dns-domain': 'nodelease.internal',
      'dns-ttl': '5s',
      'dns-negative-ttl': '3s',
      'dns-stale': '1m',
      'log-format': 'pretty',
    };
    const ofEtcd = ['etcd-auth', 'etcd-ca', 'etcd-cert', 'etcd-key'];
    const rounds = [
      { left: ['node-id', ...ofEtcd], store: 's3://bucket/prefix' },
      { left: ['node-id', 'endpoint'], store: 'etcds://etcd/prefix' },
      {
        left: [
          ...['store', 'endpoint', ...ofEtcd, 'data-dir', 'data-exclude', 'data-copy', 'data-local'],
          ...['shards', 'shard-stop-timeout'],
        ],
        store: 'file:x',
      },
    ];
    for (const { left, store } of rounds) {
      const given = Object.entries({ ...values, store }).filter(([name]) => !left.includes(name));
      const env = Object.fromEntries(
        given.map(([name, value]) => [environmentName(name as SettingName), value]),
      );
      expect(read({}, env)).toEqual(read(Object.fromEntries(given)));
    }
    expect(SETTINGS.map(({ name }) => name).sort()).toEqual(Object.keys(values).sort());
  });

  it('of shards have 30 s for a stop, and are of use beyond loopback with a token', () => {
    const given = { shards: '64', http: '0.0.0.0:7070', 'bearer-token-file': '/run/token' };
    expect(read(given).shards).toEqual({ count: 64, stopTimeoutMs: 30_000 });
    expect(() => read({}, { NODELEASE_SHARDS: '8', NODELEASE_NODE_ID: '3' })).toThrow(/^NODELEASE_SHARDS: /);
  });

  it('prefer the flag', () => {
    expect(read({ nodes: '7' }, { NODELEASE_NODES: '9' }).nodes).toBe(7);
  });

  it.each(SETTINGS.map(({ name }) => environmentName(name)))(
    'refuse an empty variable, as a slip: %s',
    (name) => {
      const expected = `${name}: expected a value (for the default, do not set the variable), got ""`;
      expect(() => read({}, { [name]: '' })).toThrow(expected);
    },
  );

  it.each([
    ['500ms', 500],
    ['15s', 15_000],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['0s', 0],
  ])('read the time %s', (text, ms) => {
    expect(read({ 'acquire-timeout': text }).acquireTimeoutMs).toBe(ms);
  });

  it.each([
    [{ 'dns-ttl': '1500ms' }, '--dns-ttl: expected whole seconds, such as 2s, got "1500ms"'],
    [{ nodes: '0' }, '--nodes: expected a whole number from 1 to 65528, got "0"'],
    [{ nodes: '65529' }, '--nodes: expected a whole number from 1 to 65528, got "65529"'],
    [{ nodes: '1e3' }, '--nodes: expected a whole number from 1 to 65528, got "1e3"'],
    [{ nodes: '' }, '--nodes: expected a whole number from 1 to 65528, got ""'],
    [
      { duration: '10ms' },
      '--duration: expected at least 1s (a shorter lease leaves no time to renew it over a network), got "10ms"',
    ],
    [
      { duration: '25h' },
      '--duration: expected at most 24h (that long a dead node keeps its id from the others), got "25h"',
    ],
    [{ duration: '15' }, '--duration: expected a time such as 500ms, 15s, 2m or 1h, got "15"'],
    [{ duration: '-1s' }, '--duration: expected a time such as 500ms, 15s, 2m or 1h, got "-1s"'],
    [{ grace: '2h' }, '--grace: expected at most 1h, got "2h"'],
    [{ 'wait-poll': '50ms' }, '--wait-poll: expected at least 100ms (each look is a request), got "50ms"'],
    [{ 'wait-poll': '25h' }, '--wait-poll: expected at most 24h, got "25h"'],
    [{ 'data-dir': '' }, '--data-dir: expected the path of a directory, got ""'],
    [
      { 'data-dir': '/data', 'data-retention': '0' },
      '--data-retention: expected a whole number from 1 to 1000, got "0"',
    ],
    [{ 'data-exclude': 'runtime' }, '--data-exclude: expected --data-dir ROOT with it, got "runtime"'],
    [{ 'data-copy': 'true' }, '--data-copy: expected --data-dir ROOT with it, got "true"'],
    [
      { 'data-dir': '/data', 'node-id': '3' },
      '--data-dir: expected no --node-id with it (a fixed id has no versions), got "/data"',
    ],
    [
      { 'data-dir': '/data', 'data-exclude': 'a,,b' },
      '--data-exclude: expected a name such as runtime or *.tmp, or a path from the top such as logs/old, got ""',
    ],
    [
      { 'settings-interval': '0s' },
      '--settings-interval: expected more than 0s (leave it out to look at each renewal), got "0s"',
    ],
    [
      { 'settings-interval': '61m' },
      '--settings-interval: expected at most 1h (for that long a holder would not learn that its node id is being retired), got "61m"',
    ],
    [{ shards: '0' }, '--shards: expected a whole number from 1 to 4096, got "0"'],
    [{ shards: '4097' }, '--shards: expected a whole number from 1 to 4096, got "4097"'],
    [{ 'shard-stop-timeout': '5s' }, '--shard-stop-timeout: expected --shards N with it, got "5s"'],
    [{ shards: '8', 'shard-stop-timeout': '25h' }, '--shard-stop-timeout: expected at most 24h, got "25h"'],
    [
      { shards: '8', 'node-id': '3' },
      '--shards: expected a node id from a store with it (a fixed one, and one from ZooKeeper, have no lease there), got "8"',
    ],
    [
      { shards: '8', provider: 'zookeeper', zookeeper: 'zk' },
      '--shards: expected a node id from a store with it (a fixed one, and one from ZooKeeper, have no lease there), got "8"',
    ],
    [
      { shards: '8', http: '0.0.0.0:7070' },
      '--http: expected a loopback address such as 127.0.0.1:7070, or a bearer token file, with --shards (any client that reaches it could say that the work on a shard has ended), got "0.0.0.0:7070"',
    ],
    [
      { 'ecs-protect': 'busy', http: '0.0.0.0:7070' },
      '--http: expected a loopback address such as 127.0.0.1:7070, or a bearer token file, with --ecs-protect busy (any client that reaches it could say that this task is busy), got "0.0.0.0:7070"',
    ],
    [{ 'on-retire': 'ignore' }, '--on-retire: expected drain or stop, got "ignore"'],
    [{ 'on-retire': 'Stop' }, '--on-retire: expected drain or stop, got "Stop"'],
    [
      { 'task-id': 'a b' },
      '--task-id: expected 1 to 128 printable ASCII characters without spaces, got "a b"',
    ],
    [
      { 'task-id': 'x'.repeat(129) },
      `--task-id: expected 1 to 128 printable ASCII characters without spaces, got "${'x'.repeat(129)}"`,
    ],
    [
      { store: 'ftp://x' },
      '--store: expected s3://bucket/prefix, azblob://account/container/prefix, gs://bucket/prefix, dynamodb://table/prefix, etcd://HOST:2379/prefix, postgres://USER@HOST:5432/DB/prefix, file:DIR or memory:, got "ftp://x"',
    ],
    [
      { 'log-level': 'loud' },
      '--log-level: expected one of trace, debug, info, warn, error, fatal, silent, got "loud"',
    ],
    [
      { region: 'eu central' },
      '--region: expected the name of a region such as eu-central-1, got "eu central"',
    ],
    [{ 'etcd-auth': 'me:secret' }, '--etcd-auth: expected a store of etcd:// or etcds:// with it, got "…"'],
    [
      { store: 'etcd://h/p', 'etcd-auth': 'secret' },
      '--etcd-auth: expected USER:PASSWORD of a user of the etcd cluster, got "…"',
    ],
    [
      { store: 'etcd://h/p', 'etcd-key': 'key.pem' },
      '--etcd-key: expected a store of etcds:// with it (nothing is encrypted without), got "key.pem"',
    ],
    [
      { store: 'etcds://h/p', 'etcd-ca': '/nowhere/ca.pem' },
      '--etcd-ca: expected a file that can be read (ENOENT), got "/nowhere/ca.pem"',
    ],
    [
      { store: 's3://bucket', endpoint: 'minio:9000' },
      '--endpoint: expected an http or https URL such as http://127.0.0.1:9000, got "minio:9000"',
    ],
    [
      { endpoint: 'http://x' },
      '--endpoint: expected no endpoint with the store file:.nodelease (only s3:, azblob:, gs: and dynamodb: have one), got "http://x"',
    ],
    [{ 'node-id': '-1' }, '--node-id: expected a whole number from 0 to 65527, or "hostname", got "-1"'],
    [{ 'node-id': '65528' }, '--node-id: expected a whole number from 0 to 65527, got "65528"'],
    [
      { 'node-id': '16', nodes: '16' },
      '--node-id: expected an id below 16 (--nodes 16 makes the ids 0 to 15), got "16"',
    ],
  ] satisfies [Record<string, string>, string][])(
    'refuse %j with the setting, the value and the bound',
    (flags, message) => {
      expect(() => read(flags)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', message }));
    },
  );

  it('name a variable when it was a variable that was wrong', () => {
    expect(() => read({}, { NODELEASE_NODES: 'many' })).toThrow(
      'NODELEASE_NODES: expected a whole number from 1 to 65528, got "many"',
    );
    expect(() => read({}, { NODELEASE_STORE: 'nowhere' })).toThrow(/^NODELEASE_STORE: expected /);
  });

  it('refuse a fixed node id with a store, for another task may hold it there', () => {
    expect(() => read({}, { NODELEASE_NODE_ID: '3', NODELEASE_STORE: 's3://bucket' })).toThrow(
      /^NODELEASE_NODE_ID: expected no NODELEASE_STORE with it/,
    );
    expect(read({ 'node-id': '3' }, { NODELEASE_STORE: 's3://bucket' }).nodeId).toBe(3);
  });

  it('take a fixed node id from the end of the host name', () => {
    expect(read({ 'node-id': 'hostname' }, {}, 'web-3').nodeId).toBe(3);
    expect(() => read({}, { NODELEASE_NODE_ID: 'hostname' }, 'web')).toThrow(
      'NODELEASE_NODE_ID hostname: expected a host name that ends in an ordinal from 0 to 65527, such as web-3, got "web"',
    );
    expect(() => read({ 'node-id': 'hostname' }, {}, 'web-70000')).toThrow(ConfigError);
  });

  it.each(['nodelease\r', 'nodelease ', '"nodelease"', '\ufeffnodelease', 'node\tlease', '\u200bnodelease'])(
    'are refused as %j, as an env file of another system may have them, whichever setting it is',
    (text) => {
      for (const { name, verbatim, secret } of SETTINGS.filter((each) => each.verbatim !== true)) {
        const label = environmentName(name);
        const refusal = (() => {
          try {
            return read(
              { zookeeper: 'zk', 'zookeeper-tls': 'true', store: 'etcds://h/p' },
              { [label]: text },
            );
          } catch (error) {
            return error;
          }
        })();
        // A flag wins over its variable.
        if (['zookeeper', 'zookeeper-tls', 'store'].includes(name)) continue;
        // These are of no use with the others, or without others, but are none in this form either.
        expect(refusal, `${name} ${verbatim}`).toMatchObject({
          code: 'CONFIG_INVALID',
          setting: label,
          value: secret ? '…' : text,
          expected: expect.stringMatching(/^no (carriage|blank|quotes|byte|control)/),
        });
      }
      expect(() => read({}, { NODELEASE_STORE: `file:${text}` })).toThrow(/^NODELEASE_STORE: expected no /);
      expect(() => read({ store: `file:${text}` })).toThrow(/^--store: expected no /);
      expect(read({ store: 'file:x' }, { NODELEASE_STORE: `file:${text}` }).store).toBe('file:x');
    },
  );

  it('may have blanks and line breaks where their text is JSON', () => {
    const payload = ' {\r\n "weight": 5 }\n';
    expect(read({ zookeeper: 'zk', service: 'a', payload }).zookeeper?.payload).toEqual({ weight: 5 });
  });

  it.each([
    [{ 'data-dir': '/d', 'data-exclude': 'runtime, *.tmp' }, '--data-exclude: expected no blank'],
    [{ 'data-dir': '/d', 'data-exclude': 'runtime;*.tmp' }, '--data-exclude: expected commas'],
    [{ zookeeper: 'zk', 'console-locks': '/a ,/b' }, '--console-locks: expected no blank'],
    [{ zookeeper: 'zk', 'console-data': '/a;/b' }, '--console-data: expected commas'],
    [{ zookeeper: 'zk', config: 'shop, prod' }, '--config: expected no blank'],
    [
      { zookeeper: 'zk', announce: 'http,admin' },
      '--announce: expected NAME[:KEY] of an endpoint to announce:',
    ],
    [
      { zookeeper: 'zk', announce: 'http;admin' },
      '--announce: expected NAME[:KEY] of an endpoint to announce:',
    ],
  ])('are no other list where commas are misspelt: %j', (flags, message) => {
    expect(() => read(flags)).toThrow(message);
  });

  it('are not the variables that Kubernetes sets for a service named nodelease', () => {
    const env = { NODELEASE_SERVICE_HOST: '10.96.0.10', NODELEASE_PORT_80_TCP: 'tcp://10.96.0.10:80' };
    for (const scheme of ['tcp', 'udp', 'sctp'])
      expect(
        read({ zookeeper: 'zk' }, { ...env, NODELEASE_PORT: `${scheme}://10.96.0.10:80` }).zookeeper?.port,
      ).toBeUndefined();
    expect(read({ zookeeper: 'zk' }, { ...env, NODELEASE_PORT: '8080' }).zookeeper?.port).toBe(8080);
    expect(() => read({ zookeeper: 'zk' }, { NODELEASE_PORT: 'http://x' })).toThrow(
      'NODELEASE_PORT: expected',
    );
    const names = SETTINGS.map(({ name }) => environmentName(name));
    expect(names.filter((name) => isServiceLink(name, 'x'))).toEqual([]);
  });

  it('do not inherit the task id of a run that this one was started by', () => {
    const env = { NODELEASE_TASK_ID: 'outer', NODE_ID: '3', NODE_ID_VERSION: '8' };
    expect(read({}, env).taskId).toBeUndefined();
    expect(read({}, { NODELEASE_TASK_ID: 'mine' }).taskId).toBe('mine');
    expect(read({ 'task-id': 'mine' }, env).taskId).toBe('mine');
  });
});

describe('the settings of discovery', () => {
  const zookeeper = '127.0.0.1:2181';

  it('are none without --zookeeper', () => {
    expect(read().zookeeper).toBeUndefined();
  });

  it('have defaults', () => {
    expect(read({ zookeeper: 'zk1,zk2:2182/app' }).zookeeper).toEqual({
      connect: {
        servers: [
          { host: 'zk1', port: 2181 },
          { host: 'zk2', port: 2182 },
        ],
        chroot: '/app',
        text: 'zk1,zk2:2182/app',
      },
      required: false,
      sessionTimeoutMs: 10_000,
      readyTimeoutMs: 60_000,
      basePath: '/services',
    });
  });

  it('are read', () => {
    const flags = {
      zookeeper: '[::1]:2181',
      'zookeeper-auth': 'digest:me:a:b',
      'zookeeper-session-timeout': '2500ms',
      'zookeeper-required': 'true',
      service: 'orders',
      address: 'fd00::1',
      port: '65535',
      'ready-timeout': '0s',
    };
    expect(read(flags).zookeeper).toEqual({
      connect: { servers: [{ host: '::1', port: 2181 }], chroot: '', text: '[::1]:2181' },
      auth: 'digest:me:a:b',
      required: true,
      sessionTimeoutMs: 2_500,
      service: 'orders',
      address: 'fd00::1',
      port: 65_535,
      readyTimeoutMs: 0,
      basePath: '/services',
    });
  });

  const form = '--zookeeper: expected HOST:PORT[,HOST:PORT]...[/CHROOT]';
  it.each([
    ['', `${form} (it is empty), got ""`],
    ['/app', `${form} (no server is named), got "/app"`],
    [',zk', `${form} (a server is empty), got ",zk"`],
    ['zk1:2181,', `${form} (a server is empty), got "zk1:2181,"`],
    ['zk:', `${form} ("" is no port, 1 to 65535), got "zk:"`],
    ['zk:0', `${form} ("0" is no port, 1 to 65535), got "zk:0"`],
    ['zk:65536', `${form} ("65536" is no port, 1 to 65535), got "zk:65536"`],
    ['zk:port', `${form} ("port" is no port, 1 to 65535), got "zk:port"`],
    [':2181', `${form} ("" is no host), got ":2181"`],
    ['a b:2181', `${form} ("a b" is no host), got "a b:2181"`],
    ['1.2.3:2181', `${form} ("1.2.3" is no host), got "1.2.3:2181"`],
    ['::1', `${form} (the server "::1": an IPv6 address stands in brackets, as in [::1]:2181), got "::1"`],
    ['[::g]:2181', `${form} ("::g" is no host), got "[::g]:2181"`],
    ['zk:2181/', `${form} (the chroot "/": a path does not end with "/"), got "zk:2181/"`],
    ['zk:2181/app/', `${form} (the chroot "/app/": a path does not end with "/"), got "zk:2181/app/"`],
    ['zk:2181//app', `${form} (the chroot "//app": a name is empty), got "zk:2181//app"`],
    ['zk:2181/app/..', `${form} (the chroot "/app/..": .. is no name), got "zk:2181/app/.."`],
    ['zk:2181/zookeeper', `${form} (the chroot /zookeeper belongs to the servers), got "zk:2181/zookeeper"`],
  ])('refuse the connect string %j', (text, message) => {
    expect(() => read({ zookeeper: text })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message }),
    );
  });

  const name = 'a name without "/" and control characters, other than "." and ".."';
  it.each([
    [{ service: '' }, `--service: expected ${name}, got ""`],
    [{ service: 'a/b' }, `--service: expected ${name}, got "a/b"`],
    [{ service: '..' }, `--service: expected ${name}, got ".."`],
    [
      { address: 'http://x' },
      '--address: expected a host name or an IP address, without a port, got "http://x"',
    ],
    [{ address: '' }, '--address: expected a host name or an IP address, without a port, got ""'],
    [
      { address: '10.0.0.7:80' },
      '--address: expected a host name or an IP address, without a port, got "10.0.0.7:80"',
    ],
    [{ port: '0' }, '--port: expected a whole number from 1 to 65535, got "0"'],
    [{ port: '65536' }, '--port: expected a whole number from 1 to 65535, got "65536"'],
    [
      { 'zookeeper-session-timeout': '900ms' },
      '--zookeeper-session-timeout: expected at least 1s (a session must outlive a short break of the connection), got "900ms"',
    ],
    [
      { 'zookeeper-session-timeout': '11m' },
      '--zookeeper-session-timeout: expected at most 10m (that long a dead node stays in the tree), got "11m"',
    ],
    [{ 'ready-timeout': '25h' }, '--ready-timeout: expected at most 24h, got "25h"'],
    [{ 'zookeeper-required': 'yes' }, '--zookeeper-required: expected true or false, got "yes"'],
    [{ provider: 'etcd' }, '--provider: expected store or zookeeper, got "etcd"'],
  ] satisfies [Partial<Record<SettingName, string>>, string][])('refuse %j', (flags, message) => {
    expect(() => read({ zookeeper, ...flags })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message }),
    );
  });

  it.each(['digest:', 'digest:me', 'digest:me:', 'digest::secret', 'plain:me:secret', 'me:secret'])(
    'refuse the credentials %j without showing a password',
    (text) => {
      const shown = text.startsWith('digest:') ? 'digest:…' : '…';
      const message = `--zookeeper-auth: expected digest:USER:PASSWORD, the digest scheme being the only one, got "${shown}"`;
      expect(() => read({ zookeeper, 'zookeeper-auth': text })).toThrow(expect.objectContaining({ message }));
    },
  );

  it.each(['zookeeper-session-timeout', 'service', 'address', 'port', 'ready-timeout'] as const)(
    'are of no use without --zookeeper: the flag --%s is refused, the variable ignored',
    (setting) => {
      const value = {
        'zookeeper-session-timeout': '5s',
        service: 'orders',
        address: 'host',
        port: '80',
        'ready-timeout': '5s',
      }[setting];
      expect(() => read({ [setting]: value })).toThrow(
        `--${setting}: expected --zookeeper with it (it is of use with discovery only), got "${value}"`,
      );
      expect(read({}, { [environmentName(setting)]: value }).zookeeper).toBeUndefined();
    },
  );

  it('are not needed for shards, nor for how long the stop of one may take', () => {
    const { shards } = read({ shards: '8', 'shard-stop-timeout': '1m' });
    expect(shards).toEqual({ count: 8, stopTimeoutMs: 60_000 });
  });

  it('are needed for the configuration of a command, also where that is a variable', () => {
    expect(() => read({ config: 'shop' })).toThrow('--config: expected --zookeeper with it');
    expect(() => read({}, { NODELEASE_CONFIG: 'shop' })).toThrow(
      'NODELEASE_CONFIG: expected --zookeeper with it',
    );
  });

  it('ignore a variable without --zookeeper also where its value is none', () => {
    expect(read({}, { NODELEASE_SERVICE: 'a/b', NODELEASE_PORT: 'http' }).zookeeper).toBeUndefined();
  });

  it('do not show credentials that are given for the servers', () => {
    expect(() => read({ zookeeper: 'digest:me:secret' })).toThrow(
      '--zookeeper: expected servers, HOST:PORT[,HOST:PORT]...[/CHROOT] (credentials go to --zookeeper-auth), got "digest:…"',
    );
  });

  it('do not show a password that is given without --zookeeper', () => {
    expect(() => read({ 'zookeeper-auth': 'digest:me:secret' })).toThrow(
      '--zookeeper-auth: expected --zookeeper with it (it is of use with discovery only), got "digest:…"',
    );
  });

  it('name the variable when it was a variable that was wrong', () => {
    expect(() => read({ zookeeper: 'zk', config: 'a' }, { NODELEASE_CONFIG_ONE_BY_ONE: 'true' })).toThrow(
      /^NODELEASE_CONFIG_ONE_BY_ONE: expected --on-config-change restart with it/,
    );
    expect(() => read({}, { NODELEASE_ZOOKEEPER: 'zk:x' })).toThrow(
      /^NODELEASE_ZOOKEEPER: expected HOST:PORT/,
    );
    expect(() => read({}, { NODELEASE_ZOOKEEPER: 'zk', NODELEASE_ZOOKEEPER_AUTH: 'secret' })).toThrow(
      /^NODELEASE_ZOOKEEPER_AUTH: expected digest:USER:PASSWORD.*, got "…"$/,
    );
  });

  it.each([{}, { provider: 'zookeeper' }])(
    'let no fixed node id of the surroundings pass for one that ZooKeeper gives out (flags: %j)',
    (flags) => {
      const env = { NODELEASE_NODE_ID: '3', NODELEASE_PROVIDER: 'zookeeper' };
      expect(() => read({ zookeeper, ...flags }, env)).toThrow(
        /^NODELEASE_NODE_ID: expected no .* zookeeper with it .*, got "3"$/,
      );
    },
  );

  it('let ZooKeeper give out the node ids, and nothing about leases in a store', () => {
    expect(read({ zookeeper, provider: 'zookeeper' })).toMatchObject({
      provider: 'zookeeper',
      zookeeper: { required: false },
    });
    expect(() => read({ provider: 'zookeeper' })).toThrow(
      '--provider: expected --zookeeper with it, with the servers that give out the node ids, got "zookeeper"',
    );
    // Where the surroundings name a store that has one.
    const env = { NODELEASE_STORE: 's3://bucket' };
    expect(() => read({ zookeeper, provider: 'zookeeper', endpoint: 'http://minio:9000' }, env)).toThrow(
      '--endpoint: expected no --provider zookeeper with it (it is about leases in a store), got "http://minio:9000"',
    );
    expect(
      read({ zookeeper, provider: 'zookeeper' }, { ...env, NODELEASE_ENDPOINT: 'http://minio:9000' })
        .provider,
    ).toBe('zookeeper');
    const etcd = { NODELEASE_STORE: 'etcd://h/p' };
    expect(() => read({ zookeeper, provider: 'zookeeper', 'etcd-auth': 'root:secret' }, etcd)).toThrow(
      '--etcd-auth: expected no --provider zookeeper with it (it is about leases in a store), got "…"',
    );
    const values = {
      ...{
        store: 'memory:',
        nodes: '3',
        duration: '5s',
        grace: '1s',
        'wait-poll': '2s',
        'settings-interval': '30s',
        'on-retire': 'stop',
      },
      ...{ 'node-id': '3', region: 'eu', 'ready-timeout': '5s' },
    };
    for (const [setting, value] of Object.entries(values)) {
      expect(() => read({ zookeeper, provider: 'zookeeper', [setting]: value })).toThrow(
        `--${setting}: expected no --provider zookeeper with it (it is about leases in a store), got "${value}"`,
      );
    }
    // Variables may be there for other programs of the same surroundings.
    expect(
      read({ zookeeper, provider: 'zookeeper' }, { NODELEASE_STORE: 'memory:', NODELEASE_NODES: '3' })
        .provider,
    ).toBe('zookeeper');
  });
});

describe('the settings of what is announced', () => {
  const announced = { zookeeper: 'zk', service: 'orders' };

  it('are read', () => {
    const flags = {
      ...announced,
      port: '8080',
      endpoint: 'http://127.0.0.1:9000',
      announce: ['pay:visa', 'pay', 'pay:visa'],
      store: 's3://bucket',
      payload: '{"weight":5,"__proto__":{"a":1}}',
      'payload-type': 'spring',
      'uri-spec': '{scheme}://{address}:{port}/v1',
      'service-base-path': '/apps/services',
      check: 'http://127.0.0.1:8080/health?deep=1',
      'check-interval': '500ms',
      'check-threshold': '1',
    };
    const settings = readSettings({ flags, env: {}, hostname: 'host' });
    expect(settings.endpoint).toBe('http://127.0.0.1:9000');
    expect(settings.zookeeper).toMatchObject({
      endpoints: [{ endpoint: 'pay', key: 'visa' }, { endpoint: 'pay' }],
      payloadType: 'spring',
      uriSpec: '{scheme}://{address}:{port}/v1',
      basePath: '/apps/services',
      check: {
        target: { kind: 'http', url: 'http://127.0.0.1:8080/health?deep=1' },
        intervalMs: 500,
        threshold: 1,
      },
    });
    expect(JSON.stringify(settings.zookeeper?.payload)).toBe('{"weight":5,"__proto__":{"a":1}}');
  });

  it.each([
    ['tcp:8080', { kind: 'tcp', host: 'localhost', port: 8080 }],
    ['tcp:10.0.0.1:8080', { kind: 'tcp', host: '10.0.0.1', port: 8080 }],
    ['tcp:[::1]:8080', { kind: 'tcp', host: '::1', port: 8080 }],
    ['https://localhost/up', { kind: 'http', url: 'https://localhost/up' }],
  ])('check the target %s, every 2 s and three times over by default', (check, target) => {
    expect(read({ ...announced, check }).zookeeper?.check).toEqual({
      target,
      intervalMs: 2_000,
      threshold: 3,
    });
  });

  it('take an empty payload for what null says, too', () => {
    expect(read({ ...announced, payload: 'null' }).zookeeper?.payload).toEqual({});
  });

  const url = 'an http or https URL such as http://127.0.0.1:9000';
  const target = 'http://HOST:PORT/PATH, https://HOST:PORT/PATH, tcp:PORT or tcp:HOST:PORT';
  it.each([
    [{ payload: '{"a":1' }, '--payload: expected a JSON object such as {"weight":5}, got "{\\"a\\":1"'],
    [{ payload: '' }, '--payload: expected a JSON object such as {"weight":5}, got ""'],
    [{ payload: '5' }, '--payload: expected a JSON object such as {"weight":5}, got "5"'],
    [
      { payload: '[1]' },
      '--payload: expected a JSON object such as {"weight":5} (Java services cannot read an array), got an array',
    ],
    [{ payload: '{"a":9007199254740993}' }, /^--payload\.a: expected a whole number from /],
    [
      { payload: '{"a":9007199254740993}', 'payload-type': 'spring', port: '80' },
      /^--payload\.a: expected a whole number from /,
    ],
    [
      { payload: '{"a":{"b":1e999}}' },
      '--payload.a.b: expected a finite number: JSON has no other, got Infinity',
    ],
    [
      { payload: '{"nodeId":3}' },
      '--payload: expected a JSON object such as {"weight":5} without nodeId, which is added to it, got "{\\"nodeId\\":3}"',
    ],
    [
      { payload: '{"@class":"com.acme.Order"}' },
      '--payload: expected a JSON object such as {"weight":5} whose @class, if there is one, is java.util.TreeMap or another map, got "{\\"@class\\":\\"com.acme.Order\\"}"',
    ],
    [
      { payload: '{"@class":"java.util.TreeMap"}', 'payload-type': 'spring', port: '80' },
      '--payload: expected a JSON object such as {"weight":5} without @class, which is added to it, got "{\\"@class\\":\\"java.util.TreeMap\\"}"',
    ],
    [{ payload: '{"version":3}' }, /^--payload: expected .* without version, which is added to it/],
    [
      { 'payload-type': 'spring' },
      /^--payload-type: expected --port with it \(Spring cannot read a service .*, got "spring"$/,
    ],
    [{ 'uri-spec': 'http://{address' }, /^--uri-spec: expected each "{" to be closed by a "}"/],
    [{ 'payload-type': 'xml' }, '--payload-type: expected map or spring, got "xml"'],
    [
      { 'service-base-path': 'services' },
      /^--service-base-path: expected an absolute path .*, got "services"$/,
    ],
    [{ 'service-base-path': '/a//b' }, /^--service-base-path: expected an absolute path .*, got "\/a\/\/b"$/],
    [
      { 'service-base-path': '/discovery' },
      '--service-base-path: expected an absolute path such as /services (/discovery is the tree of the nodes and endpoints), got "/discovery"',
    ],
    [
      { 'service-base-path': '/discovery/nodes' },
      /^--service-base-path: expected .* \(\/discovery is the tree of .*\), got /,
    ],
    [
      { 'service-base-path': '/zookeeper' },
      /^--service-base-path: expected .* \(\/zookeeper belongs to the servers\), got "\/zookeeper"$/,
    ],
    [
      { 'service-base-path': '/zookeeper/quota' },
      /^--service-base-path: expected .* \(\/zookeeper belongs to the servers\), got /,
    ],
    [{ service: 'x'.repeat(256) }, /^--service: expected at most 255 bytes, not 256, got /],
    [{ 'task-id': 'a/b' }, /^--task-id: expected a name without "\/" .*, got "a\/b"$/],
    [
      { address: 'fe80::1%eth0' },
      /^--address: expected a host name or an IP address, .*, got "fe80::1%eth0"$/,
    ],
    [{ address: '0.0.0.0' }, /^--address: expected an address that others can connect to .*, got "0.0.0.0"$/],
    [{ check: '8080' }, `--check: expected ${target}, got "8080"`],
    [{ check: 'tcp:host' }, `--check: expected ${target}, got "tcp:host"`],
    [{ check: 'tcp:0' }, '--check: expected a whole number from 1 to 65535, got "0"'],
    [{ check: 'tcp:host:0' }, /^--check: expected HOST:PORT .* from 1 to 65535, got "host:0"$/],
    [{ check: 'tcp:host:70000' }, /^--check: expected HOST:PORT .* from 1 to 65535, got "host:70000"$/],
    [{ check: 'ftp://host' }, `--check: expected ${target}, got "ftp://host"`],
    [
      { check: 'tcp:80', 'check-interval': '10ms' },
      '--check-interval: expected at least 100ms (the command has work to do), got "10ms"',
    ],
    [
      { check: 'tcp:80', 'check-interval': '1h' },
      '--check-interval: expected at most 10m (a failure would be noticed too late), got "1h"',
    ],
    [
      { check: 'tcp:80', 'check-threshold': '0' },
      '--check-threshold: expected a whole number from 1 to 1000, got "0"',
    ],
    [{ 'check-interval': '2s' }, '--check-interval: expected --check with it, got "2s"'],
    [{ config: 'a,b,c' }, '--config: expected APP or APP,PROFILE, got "a,b,c"'],
    [{ config: 'shop,' }, '--config: expected APP or APP,PROFILE, got "shop,"'],
    [
      { config: 'shop', 'config-root': 'settings' },
      /^--config-root: expected an absolute path .*, got "settings"$/,
    ],
    [
      { config: 'shop', 'on-config-change': 'signal:SIGKILL' },
      /^--on-config-change: expected one of restart.*, got "signal:SIGKILL"$/,
    ],
    [
      { 'on-config-change': 'restart' },
      '--on-config-change: expected --config APP with it (it is about the configuration of the command), got "restart"',
    ],
    [
      { config: 'shop', 'config-one-by-one': 'true' },
      '--config-one-by-one: expected --on-config-change restart with it, got "true"',
    ],
    [{ 'check-threshold': '2' }, '--check-threshold: expected --check with it, got "2"'],
    [{ announce: ['a/b'] }, /^--announce: expected NAME\[:KEY\] .* a name without "\/" .*, got "a\/b"$/],
    [{ announce: ['pay:a/b'] }, /^--announce: expected NAME\[:KEY\] .*, got "pay:a\/b"$/],
    [{ announce: ['pay:'] }, /^--announce: expected NAME\[:KEY\] .*, got "pay:"$/],
    [{ announce: [':visa'] }, /^--announce: expected NAME\[:KEY\] .*, got ":visa"$/],
    [{ announce: [''] }, /^--announce: expected NAME\[:KEY\] .*, got ""$/],
    [{ announce: ['pay:_'] }, '--announce: expected a key other than _, which stands for none, got "pay:_"'],
    [{ endpoint: 'ftp://x' }, `--endpoint: expected ${url}, got "ftp://x"`],
    [{ endpoint: 'http://a,http://b' }, `--endpoint: expected ${url}, got "http://a,http://b"`],
    [{ http: '7070' }, /^--http: expected HOST:PORT .*, got "7070"$/],
  ] satisfies [Partial<Record<SettingName, string | string[]>>, string | RegExp][])(
    'refuse %j',
    (flags, message) => {
      const refused = () => readSettings({ flags: { ...announced, ...flags }, env: {}, hostname: 'host' });
      expect(refused).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
      expect(refused).toThrow(typeof message === 'string' ? expect.objectContaining({ message }) : message);
    },
  );

  it('bound what others have to read of it', () => {
    const payload = JSON.stringify({ text: 'x'.repeat(70_000) });
    expect(() => read({ ...announced, payload })).toThrow(
      /^--payload: expected .* of at most 65536 bytes, got ".{80,90}"$/,
    );
    expect(() => read({ ...announced, payload: `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}` })).toThrow(
      '--payload: expected fewer than 1000 levels of objects and arrays, got more',
    );
  });

  it.each([
    [
      { payload: '{}' },
      '--payload: expected --service with it (it is about an instance of a service), got "{}"',
    ],
    [
      { 'payload-type': 'map' },
      '--payload-type: expected --service with it (it is about an instance of a service), got "map"',
    ],
    [
      { 'service-base-path': '/x' },
      '--service-base-path: expected --service with it (it is about an instance of a service), got "/x"',
    ],
    [
      { check: 'tcp:80' },
      '--check: expected --service or --announce NAME with it (it decides when these are announced), got "tcp:80"',
    ],
  ] satisfies [Partial<Record<SettingName, string>>, string][])(
    'are of no use without --service: %j',
    (flags, message) => {
      expect(() => read({ zookeeper: 'zk', ...flags })).toThrow(expect.objectContaining({ message }));
      const [[setting, value]] = Object.entries(flags) as [[SettingName, string]];
      expect(
        read({ zookeeper: 'zk' }, { [environmentName(setting)]: value }).zookeeper?.service,
      ).toBeUndefined();
      // Of a command that announces nothing it is not asked.
      expect(
        readSettings({ flags: { zookeeper: 'zk', ...flags }, env: {}, hostname: 'host', announces: false }),
      ).toHaveProperty('zookeeper');
    },
  );

  it('have names for the endpoints to announce that are not those of the server of the store', () => {
    const env = {
      NODELEASE_ENDPOINT: 'http://127.0.0.1:9000',
      NODELEASE_ANNOUNCE: 'pay:visa, log,v1.users:10',
    };
    const read = (flags: Record<string, string | string[]>, variables = env) => {
      const sources = { flags: { zookeeper: 'zk', store: 's3://bucket', ...flags }, env: variables };
      const { endpoint, zookeeper } = readSettings({ ...sources, hostname: 'host' });
      return [endpoint, zookeeper?.endpoints];
    };
    const named = [
      { endpoint: 'pay', key: 'visa' },
      { endpoint: 'log' },
      { endpoint: 'v1.users', key: '10' },
    ];
    expect(read({})).toEqual(['http://127.0.0.1:9000', named]);
    // A flag takes the place of its own variable only.
    expect(read({ announce: ['mine', 'minio:9000'] })).toEqual([
      'http://127.0.0.1:9000',
      [{ endpoint: 'mine' }, { endpoint: 'minio', key: '9000' }],
    ]);
    expect(read({ endpoint: 'http://other:9000' })).toEqual(['http://other:9000', named]);
    // A variable is not even looked at then.
    expect(read({ endpoint: 'https://other' }, { ...env, NODELEASE_ENDPOINT: 'minio' })).toEqual([
      'https://other',
      named,
    ]);
  });

  it.each([
    'minio',
    'minio:9000',
    'minio.internal',
    'localhost',
    '10.0.0.7',
    '[::1]:9000',
    'http:minio:9000',
    'pay',
    'http://a,http://b',
    'http://a,pay',
    'http://a:1,pay',
    'ftp://x',
    'pay,log',
  ])('take nothing but a URL for the store’s server: %s', (value) => {
    for (const announces of [true, false]) {
      const refused = (flags: Record<string, string>, env: Record<string, string>) => {
        const given = { flags: { store: 's3://bucket', zookeeper: 'zk', ...flags }, env };
        return () => readSettings({ ...given, hostname: 'host', announces });
      };
      const expected = `expected ${url}, got "${value}"`;
      expect(refused({ endpoint: value }, {})).toThrow(`--endpoint: ${expected}`);
      expect(refused({}, { NODELEASE_ENDPOINT: value })).toThrow(`NODELEASE_ENDPOINT: ${expected}`);
    }
  });

  it('need ZooKeeper for an endpoint to announce, and a command that announces', () => {
    expect(() => read({ announce: 'pay' })).toThrow(
      '--announce: expected --zookeeper with it (it is of use with discovery only), got "pay"',
    );
    expect(read({}, { NODELEASE_ANNOUNCE: 'pay,' }).zookeeper).toBeUndefined();
    const sources = { flags: { zookeeper: 'zk' }, env: { NODELEASE_ANNOUNCE: 'pay,' }, hostname: 'host' };
    expect(readSettings({ ...sources, announces: false }).zookeeper?.endpoints).toBeUndefined();
  });

  it('name the variable of endpoints where it is wrong', () => {
    const endpoints = (text: string) =>
      read({ zookeeper: 'zk' }, { NODELEASE_ANNOUNCE: text }).zookeeper?.endpoints;
    expect(() => endpoints('pay,:visa')).toThrow(
      /^NODELEASE_ANNOUNCE: expected NAME\[:KEY\] .*, got ":visa"$/,
    );
    expect(() => endpoints('pay,')).toThrow(/^NODELEASE_ANNOUNCE: expected NAME\[:KEY\] .*, got ""$/);
    expect(() => endpoints('http://minio:9000')).toThrow(
      /^NODELEASE_ANNOUNCE: expected NAME\[:KEY\] .*: the URL of a store's server has a setting of its own, got "http:\/\/minio:9000"$/,
    );
    expect(endpoints(Array.from({ length: 100 }, (_, i) => `e${i}`).join())).toHaveLength(100);
    expect(() => endpoints(Array.from({ length: 101 }, (_, i) => `e${i}`).join())).toThrow(
      'NODELEASE_ANNOUNCE: expected at most 100 endpoints, got "e100"',
    );
  });

  it('report a service whose URL is unknown', () => {
    expect(announcingProblem({ service: 'orders' })).toBe(
      'the service orders is announced without a port, so its URL is unknown: give --port',
    );
    expect([
      announcingProblem({ service: 'orders', port: 80 }),
      announcingProblem({ endpoints: [{ endpoint: 'pay' }] }),
    ]).toEqual([undefined, undefined]);
  });
});
