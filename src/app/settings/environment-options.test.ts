import { afterEach, expect, it, vi } from 'vitest';
import { acquire } from '../../node/runtime/acquire.js';
import { optionsFromEnvironment } from './environment-options.js';
import { SETTINGS } from './settings-table.js';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

function optionsOf(env: Readonly<Record<string, string>>) {
  // The test run has variables of its own.
  for (const name of Object.keys(process.env)) if (name.startsWith('NODELEASE_')) vi.stubEnv(name, undefined);
  for (const [name, text] of Object.entries(env)) vi.stubEnv(name, text);
  return optionsFromEnvironment().finally(vi.unstubAllEnvs);
}

/** A value of each variable that `acquire()` has an option for, and that option's value. */
const VALUES: Readonly<Record<string, readonly [text: string, value: unknown]>> = {
  cluster: ['existing', 'existing'],
  'cluster-name': ['orders', 'orders'],
  nodes: ['20', 20],
  duration: ['30s', 30_000],
  grace: ['2s', 2_000],
  'task-id': ['me', 'me'],
  'acquire-timeout': ['1m', 60_000],
  'wait-poll': ['500ms', 500],
  sticky: ['volume-1', 'volume-1'],
  'prefer-id': ['7', 7],
  'sticky-wait': ['40s', 40_000],
  'settings-interval': ['1h', 3_600_000],
  provider: ['store', 'store'],
  store: ['s3://bucket/orders', 's3://bucket/orders'],
  endpoint: ['http://127.0.0.1:9000', 'http://127.0.0.1:9000'],
  region: ['eu-central-1', 'eu-central-1'],
  'data-dir': ['/data', '/data'],
  'data-retention': ['3', 3],
  'data-exclude': ['runtime,*.tmp', ['runtime', '*.tmp']],
  'data-copy': ['true', true],
  'data-local': ['true', true],
  zookeeper: ['zk1:2181/app', 'zk1:2181/app'],
  'zookeeper-auth': ['digest:me:secret', 'digest:me:secret'],
  'zookeeper-session-timeout': ['20s', 20_000],
  'zookeeper-required': ['true', true],
  'ready-timeout': ['5s', 5_000],
  service: ['orders', 'orders'],
  address: ['10.0.0.7', '10.0.0.7'],
  port: ['8080', 8_080],
  payload: ['{"weight":5}', { weight: 5 }],
  'payload-type': ['map', 'map'],
  'uri-spec': ['http://{address}', 'http://{address}'],
  'service-base-path': ['/there', '/there'],
  announce: ['pay:visa', [{ endpoint: 'pay', key: 'visa' }]],
  'zookeeper-tls': ['true', expect.anything()],
  'zookeeper-servername': ['zk', 'zk'],
};
/** Read from files, or of another store. */
const ELSEWHERE = /^(zookeeper|etcd)-(ca|cert|key)$|^etcd-auth$/;

const variable = (name: string) => `NODELEASE_${name.toUpperCase().replaceAll('-', '_')}`;
const environment = Object.fromEntries(
  Object.entries(VALUES).map(([name, [text]]) => [variable(name), text]),
);

it('gives acquire() every setting of the command line that it has an option for', async () => {
  const options = await optionsOf({ ...environment, NODELEASE_HTTP: '127.0.0.1:0' });
  const at = (path: string) => path.split('.').reduce<unknown>((o, key) => Object(o)[key], options);
  const rows = SETTINGS.filter(({ name, option }) => option && !ELSEWHERE.test(name));
  expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(VALUES)));
  expect(rows.map(({ name, option = '' }) => [name, at(option)])).toEqual(
    rows.map(({ name }) => [name, VALUES[name]?.[1]]),
  );
  expect(options).not.toHaveProperty('http');
});

it('gives only what acquire() takes', async () => {
  // The wait is of no use without a key: the command line ignores the variable, too.
  const env = { NODELEASE_STORE: 'memory:', NODELEASE_DURATION: '5s', NODELEASE_STICKY_WAIT: '40s' };
  const options = await optionsOf(env);
  await using lease = await acquire({ ...options, onLost: 'signal' });
  expect(lease.isValid()).toBe(true);
  const etcd = { NODELEASE_STORE: 'etcd://h1/p', NODELEASE_ETCD_AUTH: 'me:secret' };
  expect(await optionsOf(etcd)).toMatchObject({ etcd: { auth: 'me:secret' } });
});

it.each<[Record<string, string>, string]>([
  [
    { NODELEASE_DURATION: '15' },
    'NODELEASE_DURATION: expected a time such as 500ms, 15s, 2m or 1h, got "15"',
  ],
  [{ NODELEASE_NODES: '' }, 'NODELEASE_NODES: expected a value'],
  [{ NODELEASE_DURATION: '1h', NODELEASE_GRACE: '1s' }, 'NODELEASE_GRACE: expected at least 3600ms'],
  [{ NODELEASE_PROVIDER: 'zookeeper' }, 'NODELEASE_PROVIDER: expected --zookeeper with it'],
  [{ NODELEASE_NODE_ID: '3' }, 'NODELEASE_NODE_ID: expected no fixed node id'],
])('has the checks of the command line: %j', async (env, message) => {
  await expect(optionsOf(env)).rejects.toThrow(message);
});

it('leaves the default of the store to acquire(), and the store of others with node ids of ZooKeeper', async () => {
  expect((await optionsOf({})).store).toBeUndefined();
  const zookeeper = {
    NODELEASE_PROVIDER: 'zookeeper',
    NODELEASE_ZOOKEEPER: 'zk1',
    NODELEASE_STORE: 'memory:',
  };
  expect((await optionsOf(zookeeper)).store).toBeUndefined();
  vi.stubEnv('KUBERNETES_SERVICE_HOST', '10.0.0.1');
  await expect(acquire(await optionsFromEnvironment())).rejects.toMatchObject({ setting: 'store' });
});

it('warns of a variable that is no setting, as the command line does', async () => {
  const emitted = vi.spyOn(process, 'emitWarning').mockReturnValue();
  await optionsOf({ NODELEASE_DURATON: '5s' });
  expect(emitted.mock.calls).toEqual([
    [expect.stringContaining('the nearest is NODELEASE_DURATION'), { code: 'NODELEASE_VARIABLE' }],
  ]);
});
