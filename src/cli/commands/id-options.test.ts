import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../base/errors.js';
import { snowflake } from '../../id/id-layout.js';
import { readIdOptions } from './id-options.js';

describe('the options of nodelease id', () => {
  it('ask for one decimal id of the default layout, without a log, unless they say otherwise', () => {
    expect(readIdOptions({}, {})).toEqual({ count: 1, format: 'decimal', layout: undefined, quiet: true });
    expect(readIdOptions({ count: '1000000000', format: 'hex', layout: 'snowflake', epoch: '1000', logLevel: 'info' }, {})).toEqual({
      ...{ count: 1_000_000_000, format: 'hex', layout: snowflake(1_000), quiet: false },
    });
    expect(readIdOptions({}, { NODELEASE_LOG_LEVEL: 'info' }).quiet).toBe(false);
  });

  it.each([
    ['-n 0', { count: '0' }],
    ['-n x', { count: 'x' }],
    ['-n 1e3', { count: '1e3' }],
    ['-n -1', { count: '-1' }],
    ['-n 1.5', { count: '1.5' }],
    ['-n 1000000001', { count: '1000000001' }],
    ['--format base64', { format: 'base64' }],
    ['--layout ulid', { layout: 'ulid' }],
    ['--epoch 5', { epoch: '5' }],
    ['--epoch x', { layout: 'snowflake', epoch: 'x' }],
  ])('are refused by the name of the option: %s', (line, options) => {
    const name = line.split(' ')[0];
    expect(() => readIdOptions(options, {})).toThrow(ConfigError);
    expect(() => readIdOptions(options, {})).toThrow(new RegExp(`^${name}: expected`));
  });

  it('do not go with a fixed node id, which two calls at the same time would share', () => {
    expect(() => readIdOptions({}, { NODELEASE_NODE_ID: '3' })).toThrow(/^NODELEASE_NODE_ID: expected none .* got "3"$/);
  });
});
