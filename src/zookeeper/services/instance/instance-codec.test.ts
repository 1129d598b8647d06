import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../core/base/errors.js';
import { type DecodedInstance, decodeInstance, encodeInstance, withEnabled } from './instance-codec.js';
import { jsonPayload, type PayloadCodec } from './payload-codec.js';
import type { ServiceInstance } from './service-instance.js';

const FIXTURES = new URL('../../../../test/fixtures/curator/', import.meta.url);

const instance: ServiceInstance = {
  name: 'orders',
  id: 'i-1',
  address: '10.0.0.7',
  port: 8080,
  sslPort: undefined,
  payload: undefined,
  registrationTimeUTC: 1795219197534,
  serviceType: 'DYNAMIC',
  uriSpec: undefined,
  enabled: true,
};

function encode(change: Partial<Record<keyof ServiceInstance, unknown>>): string {
  return encodeInstance({ ...instance, ...change } as ServiceInstance, jsonPayload);
}

function decode(data: string | Buffer): DecodedInstance<unknown> {
  return decodeInstance({ name: 'from-path', id: 'id-of-path', data: Buffer.from(data) }, jsonPayload);
}

/** The one that is readable, or what is wrong. */
function read(data: string | Buffer): ServiceInstance | string {
  const decoded = decode(data);
  return decoded.status === 'readable' ? decoded.instance : decoded.problem;
}

describe('a znode that Curator has written', () => {
  const names = readdirSync(FIXTURES).map((file) => file.replace('.znode', ''));

  test.each(names)('is read, and written again byte for byte: %s', (name) => {
    const bytes = readFileSync(new URL(`${name}.znode`, FIXTURES));
    const decoded = decode(bytes);
    if (decoded.status !== 'readable') throw new Error(decoded.problem);
    // The only thing that is not written as Curator may: its older versions cannot read the field.
    const expected = name === 'enabled' ? bytes.toString().replace(',"enabled":true', '') : bytes.toString();
    expect(encodeInstance(decoded.instance, jsonPayload)).toBe(expected);
  });

  test.each<[string, Partial<ServiceInstance>]>([
    ['bare', { port: undefined }],
    ['ssl', { sslPort: 8443 }],
    ['static', { serviceType: 'STATIC' }],
    ['permanent', { serviceType: 'PERMANENT' }],
    ['sequential', { serviceType: 'DYNAMIC_SEQUENTIAL' }],
    ['enabled', {}],
    ['disabled', { enabled: false }],
    ['payload-text', { port: undefined, payload: 'a text' }],
    ['payload-empty-text', { port: undefined, payload: '' }],
    ['payload-boolean', { port: undefined, payload: false }],
    ['payload-escapes', { port: undefined, payload: '\u0000\u001f\u007fé\u2028😀\ud800"\\/<>\b\t\n\f\r' }],
    ['uri-spec-empty', { port: undefined, uriSpec: { parts: [] } }],
  ])('says what it says: %s', (name, change) => {
    expect(read(readFileSync(new URL(`${name}.znode`, FIXTURES)))).toEqual({ ...instance, ...change });
  });
});

describe('an instance to be written', () => {
  test('has Curator’s keys in Curator’s order, with null for missing values', () => {
    expect(encode({})).toBe(
      '{"name":"orders","id":"i-1","address":"10.0.0.7","port":8080,"sslPort":null,"payload":null,"registrationTimeUTC":1795219197534,"serviceType":"DYNAMIC","uriSpec":null}',
    );
  });

  test('says that it is disabled, and never that it is enabled', () => {
    expect(encode({ enabled: false })).toMatch(/,"uriSpec":null,"enabled":false\}$/);
    expect(encode({ enabled: true })).not.toContain('enabled');
  });

  test.each<[string, Partial<Record<keyof ServiceInstance, unknown>>, string]>([
    [
      'a name with a slash',
      { name: 'a/b' },
      'instance.name: expected a name without "/" and control characters, other than "." and "..", got "a/b"',
    ],
    ['an empty name', { name: '' }, 'instance.name: expected a name, got ""'],
    ['no name', { name: undefined }, 'instance.name: expected a name, got undefined'],
    ['a name that is a number', { name: 7 }, 'instance.name: expected a name, got 7'],
    [
      'a name of too many bytes',
      { name: 'é'.repeat(128) },
      `instance.name: expected at most 255 bytes, not 256, got "${'é'.repeat(80)}…"`,
    ],
    ['a name that is a step of a path', { name: '..' }, 'instance.name: expected a name without "/" and'],
    [
      'a name with a control character',
      { name: 'a\u0000' },
      'instance.name: expected a name without "/" and',
    ],
    ['a name that ZooKeeper refuses', { name: '😀' }, 'instance.name: expected a name without "/" and'],
    ['an id with a slash', { id: 'a/b' }, 'instance.id: expected a name without "/" and'],
    ['an empty id', { id: '' }, 'instance.id: expected a name, got ""'],
    [
      'no address',
      { address: undefined },
      'instance.address: expected a host name or an IP address, without scheme, port and brackets, got undefined',
    ],
    ['an empty address', { address: '' }, 'instance.address: expected a host name or an IP address'],
    ['an address with spaces', { address: 'a b' }, 'instance.address: expected a host name or an IP address'],
    [
      'an address with a port',
      { address: 'host:80' },
      'instance.address: expected a host name or an IP address',
    ],
    [
      'an address with a scheme',
      { address: 'http://host' },
      'instance.address: expected a host name or an IP address',
    ],
    [
      'an address in brackets',
      { address: '[::1]' },
      'instance.address: expected a host name or an IP address',
    ],
    [
      'an address with a zone',
      { address: 'fe80::1%eth0' },
      'instance.address: expected a host name or an IP address',
    ],
    [
      'an address with an empty label',
      { address: 'a..b' },
      'instance.address: expected a host name or an IP address',
    ],
    [
      'an address that is nearly IPv4',
      { address: '10.0.0.300' },
      'instance.address: expected a host name or an IP address',
    ],
    [
      'an address that no client reaches',
      { address: '0.0.0.0' },
      'instance.address: expected an address that others can connect to',
    ],
    ['a port of 0', { port: 0 }, 'instance.port: expected a whole number from 1 to 65535, or none, got 0'],
    [
      'a port out of range',
      { port: 65_536 },
      'instance.port: expected a whole number from 1 to 65535, or none, got 65536',
    ],
    ['a port that is not whole', { port: 80.5 }, 'instance.port: expected a whole number'],
    ['a port that is a text', { port: '8080' }, 'instance.port: expected a whole number'],
    [
      'a TLS port out of range',
      { sslPort: -1 },
      'instance.sslPort: expected a whole number from 1 to 65535, or none, got -1',
    ],
    [
      'a time before 1970',
      { registrationTimeUTC: -1 },
      'instance.registrationTimeUTC: expected whole milliseconds since the Unix epoch, got -1',
    ],
    [
      'a time that is not whole',
      { registrationTimeUTC: 1.5 },
      'instance.registrationTimeUTC: expected whole milliseconds',
    ],
    [
      'a time that is no number',
      { registrationTimeUTC: Number.NaN },
      'instance.registrationTimeUTC: expected whole milliseconds',
    ],
    [
      'a type in lower case',
      { serviceType: 'dynamic' },
      'instance.serviceType: expected one of DYNAMIC, STATIC, PERMANENT, DYNAMIC_SEQUENTIAL, got "dynamic"',
    ],
    [
      'a uriSpec that is a text',
      { uriSpec: '{scheme}' },
      'instance.uriSpec: expected its parts, each with a value and whether it is a variable',
    ],
    [
      'a uriSpec with half a part',
      { uriSpec: { parts: [{ value: 'a' }] } },
      'instance.uriSpec: expected its parts',
    ],
    [
      'a uriSpec that is null',
      { uriSpec: null },
      'instance.uriSpec: expected its parts, each with a value and whether it is a variable, got null',
    ],
    [
      'a payload that JSON cannot hold',
      { payload: { a: 1n } },
      'instance.payload.a: expected something that JSON can hold, got a bigint',
    ],
    [
      'a payload that Java cannot read',
      { payload: [1] },
      'instance.payload: expected an object, a text, a number or a boolean',
    ],
    [
      'an enabled that is neither',
      { enabled: 'false' },
      'instance.enabled: expected true or false, got "false"',
    ],
    [
      'a payload too large for a znode',
      { payload: 'x'.repeat(900_000) },
      'instance: expected at most 900000 bytes of JSON: a znode holds no more than 1 MB, got 900164 bytes',
    ],
  ])('is refused with a clear error: %s', (_, change, message) => {
    expect(() => encode(change)).toThrow(ConfigError);
    expect(() => encode(change)).toThrow(message);
  });

  test.each(['orders', 'é', 'a b', '_', '%2F', 'a'.repeat(255), '{x}'])('may be called %s', (name) => {
    const text = encode({ name, id: name });
    expect(read(text)).toMatchObject({ name, id: name });
  });

  test.each([
    'localhost',
    '10.0.0.7',
    '::1',
    '2001:db8::7',
    'orders.internal',
    'orders.internal.',
    'a_b-c',
    'häuser.example',
    'x1',
  ])('may be at %s', (address) => {
    expect(read(encode({ address }))).toMatchObject({ address });
  });
});

describe('a foreign znode', () => {
  test('without anything in it takes name and id from its path', () => {
    expect(read('{}')).toEqual({
      ...instance,
      name: 'from-path',
      id: 'id-of-path',
      address: undefined,
      port: undefined,
      registrationTimeUTC: 0,
    });
  });

  test.each([
    // What Curator chooses on a host with IPv6, unless it is given an address.
    ['fd00:0:0:0:0:0:0:2%eth0', 'fd00:0:0:0:0:0:0:2'],
    ['fe80:0:0:0:0:0:0:2%eth0', 'fe80:0:0:0:0:0:0:2%eth0'],
    ['a%b:c%d', 'a%b:c%d'],
  ])('at %s is at %s: a zone counts in a link-local address only', (written, address) => {
    expect(read(JSON.stringify({ address: written }))).toMatchObject({ address });
  });

  test('is reported with the content of its JSON if that differs from its path', () => {
    expect(read('{"name":"other","id":"i-1"}')).toMatchObject({ name: 'other', id: 'i-1' });
  });

  test.each<[string, Partial<ServiceInstance>]>([
    ['{"enabled":null}', { enabled: false }],
    ['{"enabled":" False "}', { enabled: false }],
    ['{"enabled":""}', { enabled: false }],
    ['{"enabled":0}', { enabled: false }],
    ['{"enabled":"TRUE"}', { enabled: true }],
    ['{"enabled":2}', { enabled: true }],
    ['{"port":" 8080 "}', { port: 8080 }],
    ['{"port":8080.7}', { port: 8080 }],
    ['{"port":""}', { port: undefined }],
    ['{"port":"null"}', { port: undefined }],
    ['{"port":0}', { port: undefined }],
    ['{"port":-1}', { port: undefined }],
    ['{"sslPort":70000}', { sslPort: undefined }],
    ['{"registrationTimeUTC":"5"}', { registrationTimeUTC: 5 }],
    ['{"registrationTimeUTC":null}', { registrationTimeUTC: 0 }],
    ['{"registrationTimeUTC":5.9}', { registrationTimeUTC: 5 }],
    ['{"serviceType":" STATIC "}', { serviceType: 'STATIC' }],
    ['{"serviceType":3}', { serviceType: 'DYNAMIC_SEQUENTIAL' }],
    ['{"serviceType":"2"}', { serviceType: 'PERMANENT' }],
    ['{"serviceType":null}', { serviceType: 'DYNAMIC' }],
    ['{"name":5,"id":true,"address":7.5}', { name: '5', id: 'true', address: '7.5' }],
    ['{"name":null,"id":null}', { name: 'from-path', id: 'id-of-path' }],
    ['{"name":"","id":""}', { name: 'from-path', id: 'id-of-path' }],
    ['{"address":""}', { address: undefined }],
    ['{"payload":null}', { payload: undefined }],
    ['{"payload":[1]}', { payload: [1] }],
    ['{"payload":9223372036854775807}', { payload: '9223372036854775807' }],
    [
      '{"payload":{"a":[-9007199254740993, 9007199254740991],"9007199254740993":"\\"9007199254740993,","b":9007199254740993.5}}',
      {
        payload: {
          a: ['-9007199254740993', 9_007_199_254_740_991],
          '9007199254740993': '"9007199254740993,',
          b: 9_007_199_254_740_994,
        },
      },
    ],
    ['{"payload":{"@class":"some.Unknown","a":1}}', { payload: { '@class': 'some.Unknown', a: 1 } }],
    [
      '{"uriSpec":"{scheme}:x"}',
      {
        uriSpec: {
          parts: [
            { value: 'scheme', variable: true },
            { value: ':x', variable: false },
          ],
        },
      },
    ],
    ['{"uriSpec":{}}', { uriSpec: { parts: [] } }],
    [
      '{"uriSpec":{"parts":[{"value":5,"variable":"true","x":1},{}]}}',
      {
        uriSpec: {
          parts: [
            { value: '5', variable: true },
            { value: '', variable: false },
          ],
        },
      },
    ],
    ['{"unknown":{"a":[]},"port":1}', { port: 1 }],
    ['\ufeff{"port":1}', { port: 1 }],
    ['\r\n\t {"port":1}\n', { port: 1 }],
    ['{"port":1,"port":2}', { port: 2 }],
    [
      '{"__proto__":{"port":1},"constructor":{"name":"x"},"toString":1}',
      { port: undefined, name: 'from-path' },
    ],
  ])('is read as Curator reads it: %s', (text, expected) => {
    expect(read(text)).toMatchObject(expected);
  });

  test.each<[string, string | Buffer]>([
    ['is empty', ''],
    ['is not a JSON object', 'null'],
    ['is not a JSON object', '[]'],
    ['is not a JSON object', '"text"'],
    ['is not JSON', '127.0.0.1'],
    ['is not JSON', '{"name":"a",}'],
    ['is not JSON', '{} and more'],
    ['is not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['is not JSON', Buffer.from('{"name":"a"}', 'utf16le')],
    ['holds more than 1048576 bytes', `{"x":"${'y'.repeat(1_048_576)}"}`],
    ['has more than 1000 levels of JSON', `{"payload":${'['.repeat(1_000)}${']'.repeat(1_000)}}`],
    ['has more than 1000 levels of JSON', `${'{"x":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['is not JSON', '{"x":'.repeat(100_000)],
    ['has no usable "registrationTimeUTC": "soon"', '{"registrationTimeUTC":"soon"}'],
    ['has no usable "registrationTimeUTC": 1e+30', '{"registrationTimeUTC":1e30}'],
    ['has no usable "registrationTimeUTC": an object', '{"registrationTimeUTC":{}}'],
    ['has no usable "serviceType": "dynamic"', '{"serviceType":"dynamic"}'],
    ['has no usable "serviceType": ""', '{"serviceType":""}'],
    ['has no usable "serviceType": 4', '{"serviceType":4}'],
    ['has no usable "port": true', '{"port":true}'],
    ['has no usable "port": "8080.5"', '{"port":"8080.5"}'],
    ['has no usable "port": 99999999999', '{"port":99999999999}'],
    ['has no usable "sslPort": an array', '{"sslPort":[80]}'],
    ['has no usable "enabled": "yes"', '{"enabled":"yes"}'],
    ['has no usable "enabled": 1.5', '{"enabled":1.5}'],
    ['has no usable "name": an object', '{"name":{}}'],
    [`has no usable "enabled": "${'y'.repeat(59)}…`, `{"enabled":"${'y'.repeat(1_000)}"}`],
    ['has no usable "uriSpec": 5', '{"uriSpec":5}'],
    ['has no usable "uriSpec": "{a"', '{"uriSpec":"{a"}'],
    ['has no usable "uriSpec.parts": "x"', '{"uriSpec":{"parts":"x"}}'],
    ['has no usable "uriSpec.parts": null', '{"uriSpec":{"parts":[null]}}'],
  ])('that no client can use is unreadable, with the reason: it %s', (problem, data) => {
    expect(read(data)).toBe(problem);
  });

  test('with brackets in its texts is not taken for a deep one', () => {
    expect(read(`{"payload":"${'[{'.repeat(2_000)}\\"${'['.repeat(2_000)}"}`)).toHaveProperty('payload');
  });

  test('with as many levels as Java reads is read', () => {
    expect(read(`{"payload":${'['.repeat(999)}${']'.repeat(999)}}`)).toHaveProperty('payload');
  });
});

describe('a payload of one’s own kind', () => {
  const weights: PayloadCodec<number> = {
    encode: (weight) => ({ weight }),
    decode: (json) => {
      const { weight } = json as { weight?: unknown };
      if (typeof weight !== 'number') throw new Error(`it has no weight\n${'x'.repeat(1_000)}`);
      return weight;
    },
  };

  test('goes to JSON and back', () => {
    const text = encodeInstance({ ...instance, payload: 7 }, weights);
    expect(text).toContain('"payload":{"weight":7}');
    expect(decodeInstance({ name: 'orders', id: 'i-1', data: Buffer.from(text) }, weights)).toEqual({
      status: 'readable',
      instance: { ...instance, payload: 7 },
    });
  });

  test('makes the instance unreadable if it is another one', () => {
    const decoded = decodeInstance(
      { name: 'orders', id: 'i-1', data: Buffer.from('{"payload":{}}') },
      weights,
    );
    expect(decoded).toEqual({
      status: 'unreadable',
      problem: expect.stringMatching(/^has a payload of another kind: it has no weight x{50,80}…$/),
    });
  });

  test('is not called without one', () => {
    expect(
      decodeInstance({ name: 'orders', id: 'i-1', data: Buffer.from('{"payload":null}') }, weights),
    ).toMatchObject({
      instance: { payload: undefined },
    });
  });
});

describe('an instance that is enabled or disabled in place', () => {
  const enabledOf = (json: string) => {
    const decoded = decode(json);
    return decoded.status === 'readable' ? decoded.instance.enabled : decoded.problem;
  };

  test.each([
    ['{}'],
    [' { "x" : 1 } \n'],
    ['{"enabled":false}'],
    ['{"enabled":true,"name":"a"}'],
    ['{"name":"a,","enabled":null}'],
    ['{"name":"\\",\\"enabled\\":false"}'],
    ['{"payload":{"a":1,"enabled":true}}'],
    ['{"payload":{"a":1,"enabled":true} , "enabled" : "false" }'],
    ['\ufeff{"name":"a"}'],
    [encode({ payload: { zone: 'a' } })],
    [encode({ enabled: false })],
  ])('%j keeps its content, and has the new state', (json) => {
    const rest = (text: string) => ({ ...JSON.parse(text.replace('\ufeff', '')), enabled: undefined });
    for (const enabled of [true, false]) {
      const changed = withEnabled(json, enabled);
      expect([enabledOf(changed), rest(changed)]).toEqual([enabled, rest(json)]);
      // It does not grow with each change.
      const again = withEnabled(withEnabled(changed, !enabled), enabled);
      expect(withEnabled(withEnabled(again, !enabled), enabled)).toBe(again);
    }
  });

  test('has byte for byte the form that its registrant would have written', () => {
    const [on, off] = [encode({ payload: { big: 1 } }), encode({ payload: { big: 1 }, enabled: false })];
    expect([withEnabled(on, false), withEnabled(off, true), withEnabled(on, true)]).toEqual([off, on, on]);
    expect(withEnabled('{"big":9007199254740993}', false)).toBe('{"big":9007199254740993,"enabled":false}');
  });
});
