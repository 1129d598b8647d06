import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../core/base/errors.js';
import { configVariables } from './config-variables.js';

const variables = (properties: Record<string, string>) =>
  Object.fromEntries(
    configVariables(new Map(Object.entries(properties).map(([key, value]) => [key, { value }]))),
  );

describe('the properties of a configuration', () => {
  it('are variables in capitals, with _ for what separates names', () => {
    expect(
      variables({
        'db.pool-size': '8',
        'servers[0].host': 'a',
        'servers[1].host': 'b',
        '1st': 'c',
        timeout: '',
        Mixed_case: 'ü\n=x',
      }),
    ).toEqual({
      DB_POOL_SIZE: '8',
      SERVERS_0_HOST: 'a',
      SERVERS_1_HOST: 'b',
      _1ST: 'c',
      TIMEOUT: '',
      MIXED_CASE: 'ü\n=x',
    });
  });

  it.each([
    [
      ['db.pool-size', 'db.pool.size'],
      'db.pool.size: expected another variable than db.pool-size has, got "DB_POOL_SIZE"',
    ],
    [['a[0]', 'a.0'], 'a.0: expected another variable than a[0] has, got "A_0"'],
    [['url', 'URL'], 'URL: expected another variable than url has, got "URL"'],
  ])('are refused where two are the same variable: %s', (keys, message) => {
    const parse = () => variables(Object.fromEntries(keys.map((key) => [key, 'hunter2'])));
    expect(parse).toThrow(ConfigError);
    expect(parse).toThrow(message);
  });

  it.each([
    ...[
      'node.id',
      'node-id-version',
      'node.previous',
      'node.data-restored',
      'nodelease.store',
      'path',
      'PATH',
      'ld.preload',
      'ld.library.path',
      'dyld.insert.libraries',
      'node.options',
    ],
    ...['java.tool.options', 'bash.env', 'pythonpath', 'perl5opt', 'rubyopt'],
    ...[
      'node.data-dir',
      'openssl.conf',
      'pythonbreakpoint',
      'lua.init',
      'lua.init.5.4',
      'php.ini.scan.dir',
      'erl.aflags',
      'erl.flags',
    ],
    ...['git.ssh.command', 'node.extra.ca.certs', 'node.tls.reject.unauthorized', 'aws.profile', 'browser'],
  ])('are refused where they would change what nodelease sets, or how programs are loaded: %s', (key) => {
    const parse = () => variables({ before: '1', [key]: 'hunter2', zone: 'a' });
    expect(parse).toThrow(ConfigError);
    expect(parse).toThrow(
      `${key}: expected another key, for nodelease sets this variable itself, or programs are found or loaded by it`,
    );
  });

  it('are refused where a value is longer than the system takes, with the key, and taken up to that', () => {
    const longest = 'ü'.repeat((128 * 1024 - 'BIG=\0'.length - 1) / 2);
    expect(variables({ big: longest })).toEqual({ BIG: longest });
    const tooLong = () => variables({ a: '', big: `${longest}xx` });
    expect(tooLong).toThrow(
      /^big: expected a value of at most 131067 bytes, as the value of a variable, got "131068 bytes"$/,
    );
    const { status } = spawnSync('true', { env: variables({ big: `${longest}x` }) });
    expect(status).toBe(0);
  });

  it('are refused with what no variable can hold, without a word of it', () => {
    expect(() => variables({ a: 'hunter2\0' })).toThrow(/^(?!.*hunter2)a: expected a value without NUL/);
  });
});
