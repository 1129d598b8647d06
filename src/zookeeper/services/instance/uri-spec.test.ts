import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../core/base/errors.js';
import type { ServiceInstance } from './service-instance.js';
import { buildUri, instanceUrl, parseUriSpec, type UriVariables } from './uri-spec.js';

const instance: ServiceInstance = {
  name: 'orders',
  id: 'i-1',
  address: '10.0.0.7',
  port: 8080,
  sslPort: undefined,
  payload: undefined,
  registrationTimeUTC: 5,
  serviceType: 'DYNAMIC_SEQUENTIAL',
  uriSpec: undefined,
  enabled: true,
};

describe('a URL with variables', () => {
  test('is taken apart', () => {
    expect(parseUriSpec('{scheme}://{address}:{port}').parts).toEqual([
      { value: 'scheme', variable: true },
      { value: '://', variable: false },
      { value: 'address', variable: true },
      { value: ':', variable: false },
      { value: 'port', variable: true },
    ]);
  });

  test.each(['{', '}', 'a{b', 'a}b', '{a{b}}', '{a}}', '{a}{'])('needs its braces in pairs: %s', (text) => {
    expect(() => parseUriSpec(text, '--uri')).toThrow(ConfigError);
    expect(() => parseUriSpec(text, '--uri')).toThrow(
      '--uri: expected each "{" to be closed by a "}" before the next one',
    );
  });

  // The texts are Curator's own, and the tests with the real one repeat them.
  test.each<[string, string, UriVariables?]>([
    ['{scheme}://{address}:{port}', 'http://10.0.0.7:8080'],
    ['{ssl-port}/{name}/{id}/{registration-time-utc}/{service-type}', '/orders/i-1/5/dynamic_sequential'],
    ['{unknown}|{ }|{}|{constructor}|{__proto__}', '||||'],
    ['{ scheme }', 'http'],
    ['{[}x{]}', '{x}'],
    ['', ''],
    ['plain', 'plain'],
    ['{x}{port}{z}', 'y9true', { x: 'y', port: 9, z: true }],
    ['{scheme}{[}', 'ftp(', { scheme: 'ftp', '[': '(' }],
    ['{scheme}', 'http', { scheme: undefined }],
  ])('is built as Curator builds it: %s', (text, expected, variables) => {
    expect(buildUri(parseUriSpec(text), instance, variables)).toBe(expected);
  });

  test('has the scheme https as soon as there is a port for TLS, though {port} stays the plain one', () => {
    expect(buildUri(parseUriSpec('{scheme}:{port}'), { ...instance, sslPort: 8443 })).toBe('https:8080');
  });
});

describe('the URL of an instance', () => {
  test.each<[string, Partial<ServiceInstance>, string | undefined]>([
    ['its plain port', {}, 'http://10.0.0.7:8080'],
    ['its port for TLS first', { sslPort: 8443 }, 'https://10.0.0.7:8443'],
    [
      'its uriSpec before both',
      { sslPort: 8443, uriSpec: parseUriSpec('{scheme}://{address}:{ssl-port}/v1') },
      'https://10.0.0.7:8443/v1',
    ],
    ['its port where the uriSpec is empty', { uriSpec: parseUriSpec('') }, 'http://10.0.0.7:8080'],
    [
      'a uriSpec that needs no address',
      { address: undefined, uriSpec: parseUriSpec('http://gateway/{id}') },
      'http://gateway/i-1',
    ],
    ['an IPv6 address in brackets', { address: '::1' }, 'http://[::1]:8080'],
    [
      'an IPv6 address in the uriSpec',
      { address: '::1', uriSpec: parseUriSpec('{scheme}://{address}:{port}') },
      'http://[::1]:8080',
    ],
    [
      'brackets that are there already',
      { address: '::1', uriSpec: parseUriSpec('http://[{address}]:{port}') },
      'http://[::1]:8080',
    ],
    [
      'its port for TLS where the uriSpec names a port that it does not have',
      { port: undefined, sslPort: 8443, uriSpec: parseUriSpec('{scheme}://{address}:{port}/v1') },
      'https://10.0.0.7:8443/v1',
    ],
    ['nothing without an address', { address: undefined }, undefined],
    ['nothing without a port', { port: undefined }, undefined],
  ])('comes of %s', (_, change, expected) => {
    expect(instanceUrl({ ...instance, ...change })).toBe(expected);
  });

  test('takes variables that are given before its own', () => {
    expect(
      instanceUrl(
        { ...instance, uriSpec: parseUriSpec('{scheme}://{address}/{path}') },
        { scheme: 'ws', path: 'a' },
      ),
    ).toBe('ws://10.0.0.7/a');
  });
});
