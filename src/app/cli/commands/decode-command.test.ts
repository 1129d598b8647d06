import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { ConfigError } from '../../../core/base/errors.js';
import { decodeCommand } from './decode-command.js';

function output(text: string, options: Parameters<typeof decodeCommand>[0]['options']): string {
  const io = capturedIo();
  expect(decodeCommand({ options, io }, text)).toBe(0);
  return io.answer();
}

const ID = (1_795_219_197_534n << 16n) | (5n << 9n) | 0x143n;

describe('decode', () => {
  it('shows time, node id, group, index and sequence', () => {
    expect(output(String(ID), { width: 9 })).toBe(
      'time      2026-11-20T23:59:57.534Z (1795219197534 ms)\nnode id   315\ngroup     01\nindex     43\nsequence  5\n',
    );
  });

  it('shows them as JSON, of an id in any format', () => {
    const hex = ID.toString(16).padStart(16, '0');
    expect(JSON.parse(output(hex, { width: 9, json: true }))).toEqual({
      ...{ id: String(ID), time: '2026-11-20T23:59:57.534Z', timeMs: 1_795_219_197_534 },
      ...{ node: 0x143, group: 1, index: 0x43, nodeId: 315, sequence: 5 },
    });
  });

  it('takes an id whose hex or base-32 digits are those of a decimal number as its format says', () => {
    const decoded = (text: string, format: 'decimal' | 'base32' | 'hex') =>
      JSON.parse(output(text, { layout: 'snowflake', format, json: true })).id;
    expect(decoded('1541815603606036', 'decimal')).toBe('1541815603606036');
    expect(decoded('1541815603606036', 'hex')).toBe(String(0x1541815603606036n));
    expect(decoded('1541815603606', 'base32')).toBe('1337613109724026886');
  });

  it('shows as JSON that a number which is not leased is no node id', () => {
    const report = JSON.parse(output(String(((ID >> 9n) << 9n) | 5n), { width: 9, json: true }));
    expect(report).toMatchObject({ node: 5, group: 0, index: 5, nodeId: null, sequence: 5 });
    expect(JSON.parse(output(String(((ID >> 9n) << 9n) | 8n), { width: 9, json: true }))).toMatchObject({
      node: 8,
      nodeId: 0,
    });
  });

  it('knows ids of Twitter’s layout, with its epoch or another', () => {
    expect(output('1541815603606036480', { layout: 'snowflake' })).toContain(
      'time      2022-06-28T16:07:40.105Z',
    );
    expect(output('4194304', { layout: 'snowflake', epoch: 0 })).toContain(
      'time      1970-01-01T00:00:00.001Z (1 ms)\nnode id   none',
    );
  });

  it('knows the last time that there are ids for', () => {
    expect(output('18446744073709551615', { width: 8 })).toContain(
      'time      +010889-08-02T05:31:50.655Z (281474976710655 ms)',
    );
  });

  it.each<[string, Parameters<typeof output>[1], string]>([
    [
      '1',
      {},
      '--width: expected the bits that a node id had when the id was made, 8 to 16: nodelease status shows them (8 where the cluster never had more than 248 node ids)',
    ],
    ['1', { layout: 'snowflake', width: 8 }, '--width: expected no --layout snowflake with it'],
    ['1', { width: 8, epoch: 5 }, '--epoch: expected --layout snowflake with it'],
    [
      '12x',
      { width: 8 },
      'id: expected a 64-bit id: decimal, 13 base-32 digits, or 16 hex digits, got "12x"',
    ],
    ['18446744073709551615', { layout: 'snowflake' }, 'id: expected an id of at most 63 bits'],
  ])('of %s with %j is refused', (text, options, message) => {
    expect(() => output(text, options)).toThrow(ConfigError);
    expect(() => output(text, options)).toThrow(message);
  });
});
