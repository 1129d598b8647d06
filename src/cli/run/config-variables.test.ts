import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../base/errors.js';
import { configVariables } from './config-variables.js';

const variables = (properties: Record<string, string>) =>
  configVariables('shop', new Map(Object.entries(properties).map(([key, value]) => [key, { value }])));

describe('the properties of a configuration', () => {
  it('are variables in capitals, with _ for what separates names', () => {
    expect(variables({ 'db.pool-size': '8', 'servers[0].host': 'a', 'servers[1].host': 'b', timeout: '', Mixed_case: 'ü\n=x' })).toEqual({
      DB_POOL_SIZE: '8',
      SERVERS_0_HOST: 'a',
      SERVERS_1_HOST: 'b',
      TIMEOUT: '',
      MIXED_CASE: 'ü\n=x',
    });
  });

  it.each([
    [['db.pool-size', 'db.pool.size'], 'db.pool.size is DB_POOL_SIZE'],
    [['a[0]', 'a.0'], 'a.0 is A_0'],
    [['url', 'URL'], 'URL is URL'],
  ])('are refused where two are the same variable: %s', (keys, named) => {
    const parse = () => variables(Object.fromEntries(keys.map((key) => [key, 'hunter2'])));
    expect(parse).toThrow(ConfigError);
    expect(parse).toThrow(`one key a variable, and ${keys[0]} is the same: ${named}`);
  });

  it.each([
    'node.id',
    'node-id-version',
    'nodelease.store',
    'path',
    'PATH',
    'ld.preload',
    'ld.library.path',
    'dyld.insert.libraries',
    'node.options',
  ])('are refused where they would change what nodelease sets, or how programs are loaded: %s', (key) =>
    expect(() => variables({ fine: '1', [key]: 'hunter2' })).toThrow(/no key for a variable that .*: [\w.-]+ is [A-Z_]+/i),
  );

  it.each(['java.tool.options', 'bash.env', 'pythonpath', 'perl5opt', 'rubyopt'])('the same for other languages: %s', (key) => {
    expect(() => variables({ [key]: 'x' })).toThrow(ConfigError);
  });

  it.each(['1st', 'größe', 'a b', 'a=b', 'a$b', ''])('are refused where their keys make no name of a variable: "%s"', (key) => {
    expect(() => variables({ [key]: 'hunter2' })).toThrow(/--config: expected keys of ASCII letters/);
  });

  it('are refused with what no variable can hold, without a word of it', () => {
    expect(() => variables({ a: 'hunter2\0' })).toThrow(/^(?!.*hunter2).*values without NUL characters: a is A/);
  });
});
