import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import { hostAddress } from './host-address.js';

describe('the address of a host', () => {
  const address = (text: string, internal = false): NetworkInterfaceInfo =>
    ({ address: text, internal, family: text.includes(':') ? 'IPv6' : 'IPv4' }) as NetworkInterfaceInfo;

  it.each([
    [['127.0.0.1!', '10.0.0.7', '10.0.0.8'], '10.0.0.7'],
    [['fd00::2', '10.0.0.7'], '10.0.0.7'],
    [['fe80::1', '169.254.0.3', 'fd00::2'], 'fd00::2'],
    [['127.0.0.1!', '::1!', 'fe80::1'], '127.0.0.1'],
    [[], '127.0.0.1'],
  ])('is the first that others can reach: of %j it is %s', (texts, expected) => {
    const all = texts.map((text) => address(text.replace('!', ''), text.endsWith('!')));
    expect(hostAddress(() => ({ lo: all.slice(0, 1), eth0: all.slice(1) }))).toBe(expected);
  });
});
