import { describe, expect, it } from 'vitest';
import { environmentName, readSettings, SETTINGS, type SettingName } from './config.js';
import { ConfigError } from './errors.js';

const read = (flags: Partial<Record<SettingName, string>> = {}, env: Record<string, string> = {}, hostname = 'host') =>
  readSettings({ flags, env, hostname });

describe('settings', () => {
  it('have defaults, and leave to the cluster what the cluster decides', () => {
    expect(read()).toEqual({ store: { kind: 'file', url: 'file:.nodelease', directory: '.nodelease' }, logLevel: 'info' });
  });

  it('can all be given as a flag and as an environment variable alike', () => {
    const values: Record<SettingName, string> = {
      store: 's3://bucket/prefix',
      nodes: '20',
      duration: '20s',
      grace: '500ms',
      'task-id': 'me',
      'acquire-timeout': '2m',
      'node-id': '3',
      endpoint: 'http://127.0.0.1:9000',
      region: 'eu-central-1',
      'log-level': 'debug',
    };
    for (const left of ['node-id', 'store'] as const) {
      const given = Object.entries(values).filter(([name]) => name !== left && (left === 'node-id' || name !== 'endpoint'));
      const env = Object.fromEntries(given.map(([name, value]) => [environmentName(name as SettingName), value]));
      expect(read({}, env)).toEqual(read(Object.fromEntries(given)));
    }
    expect(SETTINGS.map(({ name }) => name).sort()).toEqual(Object.keys(values).sort());
  });

  it('prefer the flag, and take an empty variable for one that is not set', () => {
    expect(read({ nodes: '7' }, { NODELEASE_NODES: '9' }).nodes).toBe(7);
    expect(read({}, { NODELEASE_NODES: '' }).nodes).toBeUndefined();
  });

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
    [{ nodes: '0' }, '--nodes: expected a whole number from 1 to 65528, got "0"'],
    [{ nodes: '65529' }, '--nodes: expected a whole number from 1 to 65528, got "65529"'],
    [{ nodes: '1e3' }, '--nodes: expected a whole number from 1 to 65528, got "1e3"'],
    [{ nodes: '' }, '--nodes: expected a whole number from 1 to 65528, got ""'],
    [{ duration: '10ms' }, '--duration: expected at least 1s (a shorter lease leaves no time to renew it over a network), got "10ms"'],
    [{ duration: '25h' }, '--duration: expected at most 24h (that long a dead node keeps its id from the others), got "25h"'],
    [{ duration: '15' }, '--duration: expected a time such as 500ms, 15s, 2m or 1h, got "15"'],
    [{ duration: '-1s' }, '--duration: expected a time such as 500ms, 15s, 2m or 1h, got "-1s"'],
    [{ grace: '2h' }, '--grace: expected at most 1h, got "2h"'],
    [{ 'task-id': 'a b' }, '--task-id: expected 1 to 128 printable ASCII characters without spaces, got "a b"'],
    [{ 'task-id': 'x'.repeat(129) }, `--task-id: expected 1 to 128 printable ASCII characters without spaces, got "${'x'.repeat(129)}"`],
    [{ store: 'ftp://x' }, '--store: expected s3://bucket/prefix, file:DIR or memory:, got "ftp://x"'],
    [{ 'log-level': 'loud' }, '--log-level: expected one of trace, debug, info, warn, error, fatal, silent, got "loud"'],
    [{ region: 'eu central' }, '--region: expected the name of a region such as eu-central-1, got "eu central"'],
    [
      { store: 's3://bucket', endpoint: 'minio:9000' },
      '--endpoint: expected an http or https URL such as http://127.0.0.1:9000, got "minio:9000"',
    ],
    [{ endpoint: 'http://x' }, '--endpoint: expected no endpoint with the store file:.nodelease (only s3: has one), got "http://x"'],
    [{ 'node-id': '-1' }, '--node-id: expected a whole number from 0 to 65527, or "hostname", got "-1"'],
    [{ 'node-id': '65528' }, '--node-id: expected a whole number from 0 to 65527, got "65528"'],
    [{ 'node-id': '16', nodes: '16' }, '--node-id: expected an id below 16 (--nodes 16 makes the ids 0 to 15), got "16"'],
  ] satisfies [Partial<Record<SettingName, string>>, string][])('refuse %j with the setting, the value and the bound', (flags, message) => {
    expect(() => read(flags)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', message }));
  });

  it('name a variable when it was a variable that was wrong', () => {
    expect(() => read({}, { NODELEASE_NODES: 'many' })).toThrow('NODELEASE_NODES: expected a whole number from 1 to 65528, got "many"');
    expect(() => read({}, { NODELEASE_STORE: 'nowhere' })).toThrow(/^NODELEASE_STORE: expected /);
  });

  it('refuse a fixed node id beside a store, for another task may hold it there', () => {
    expect(() => read({}, { NODELEASE_NODE_ID: '3', NODELEASE_STORE: 's3://bucket' })).toThrow(
      /^NODELEASE_NODE_ID: expected no NODELEASE_STORE beside it/,
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

  it('do not inherit the task id of a run that this one was started by', () => {
    const env = { NODELEASE_TASK_ID: 'outer', NODE_ID: '3', NODE_ID_VERSION: '8' };
    expect(read({}, env).taskId).toBeUndefined();
    expect(read({}, { NODELEASE_TASK_ID: 'mine' }).taskId).toBe('mine');
    expect(read({ 'task-id': 'mine' }, env).taskId).toBe('mine');
  });
});
