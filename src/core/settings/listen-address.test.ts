import { describe, expect, it } from 'vitest';
import { ConfigError } from '../base/errors.js';
import { formatListenAddress, isLoopback, parseListenAddress, reachableUrl } from './listen-address.js';

describe('where to listen', () => {
  it.each([
    ['127.0.0.1:8080', '127.0.0.1', 8080],
    ['[::1]:0', '::1', 0],
    ['[::ffff:10.0.0.1]:65535', '::ffff:10.0.0.1', 65_535],
    ['[fe80::1%eth0]:8080', 'fe80::1%eth0', 8080],
    ['localhost:80', 'localhost', 80],
    ['0.0.0.0:1', '0.0.0.0', 1],
    ['my-host.example:7070', 'my-host.example', 7070],
  ])('understands %s, and writes it the same', (text, host, port) => {
    expect(parseListenAddress(text, '--http')).toEqual({ host, port });
    expect(formatListenAddress({ host, port })).toBe(text);
  });

  it.each([
    '',
    '8080',
    ':8080',
    'host',
    'host:',
    'host:x',
    'host:65536',
    '127.0.0.1:-1',
    '::1:80',
    '[::1]',
    '[::1:80',
    '[1.2.3.4]:80',
    '[:::]:1',
  ])('refuses %j, naming it', (text) => {
    expect(() => parseListenAddress(text, '--http')).toThrow(ConfigError);
    expect(() => parseListenAddress(text, '--http')).toThrow(`--http: expected HOST:PORT`);
    expect(() => parseListenAddress(text, '--http')).toThrow(`got ${JSON.stringify(text)}`);
  });

  it.each(['256.0.0.1:80', '1.2.3:80', '1:80', 'http://127.0.0.1:80', '127.0.0.1:80/', 'a b:80', '*:80'])(
    'refuses %j',
    (text) => {
      expect(() => parseListenAddress(text, '--http')).toThrow(ConfigError);
    },
  );

  it('knows what only this machine can reach, and takes no name for it but localhost', () => {
    expect(['127.0.0.1', '127.9.9.9', '::1', 'localhost', 'LOCALHOST'].map(isLoopback)).toEqual(
      Array(5).fill(true),
    );
    expect(
      ['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example', 'localhost.example', '127.1', ''].map(isLoopback),
    ).toEqual(Array(7).fill(false));
  });
});

it.each([
  ['0.0.0.0', 'http://127.0.0.1:7070'],
  ['::', 'http://[::1]:7070'],
  ['127.0.0.1', 'http://127.0.0.1:7070'],
  ['10.0.0.7', 'http://10.0.0.7:7070'],
  ['fd00::7', 'http://[fd00::7]:7070'],
  ['constructor', 'http://constructor:7070'],
])('a server that listens at %s is reached from the same host by %s', (host, url) => {
  expect(reachableUrl({ host, port: 7070 })).toBe(url);
});
