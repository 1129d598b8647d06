import { expect, test } from 'vitest';
import { ConfigError } from '../../../core/base/errors.js';
import { systemRandom } from '../../../core/base/system.js';
import { checkServiceName, newInstance } from './new-instance.js';
import { buildUri } from './uri-spec.js';

const clock = { now: () => 1_795_219_197_534.5 };
const zeros = { hex: (bytes: number) => '00'.repeat(bytes) };

test('an instance needs a name and an address; the rest is filled in', () => {
  expect(newInstance({ name: 'orders', address: '10.0.0.7' }, { clock, random: zeros })).toEqual({
    name: 'orders',
    id: '00000000-0000-4000-8000-000000000000',
    address: '10.0.0.7',
    port: undefined,
    sslPort: undefined,
    payload: undefined,
    registrationTimeUTC: 1_795_219_197_534,
    serviceType: 'DYNAMIC',
    uriSpec: undefined,
    enabled: true,
  });
});

test.each([
  [{ port: 80 }, 'http://h:80'],
  [{ port: 80, sslPort: 443 }, 'https://h:443'],
  [{ port: 80, address: '::1' }, 'http://[::1]:80'],
  [{ port: 80, payload: {} }, undefined],
  [{}, undefined],
])('the uriSpec of an instance with %j gives Spring the URI %j', (more, expected) => {
  const instance = newInstance({ name: 'orders', address: 'h', ...more }, { clock, random: zeros });
  expect(instance.uriSpec && buildUri(instance.uriSpec, instance)).toBe(expected);
});

test('what is given is kept, and a URL given as a text is taken apart', () => {
  const given = {
    name: 'orders',
    id: 'i-1',
    address: 'h',
    port: 1,
    sslPort: 2,
    payload: { a: 1 },
    registrationTimeUTC: 3,
    enabled: false,
  } as const;
  expect(
    newInstance({ ...given, serviceType: 'STATIC', uriSpec: 'x:{port}' }, { clock, random: zeros }),
  ).toEqual({
    ...given,
    serviceType: 'STATIC',
    uriSpec: {
      parts: [
        { value: 'x:', variable: false },
        { value: 'port', variable: true },
      ],
    },
  });
});

test('ids are UUIDs of version 4, and differ', () => {
  const ids = Array.from(
    { length: 100 },
    () => newInstance({ name: 'orders', address: 'h' }, { clock, random: systemRandom }).id,
  );
  expect(new Set(ids).size).toBe(100);
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test('a bad field is refused at once, named as the instance’s', () => {
  expect(() => newInstance({ name: 'a/b', address: 'h' }, { clock, random: zeros })).toThrow('instance.name');
  expect(() => newInstance({ name: 'a', address: 'h', uriSpec: '{' }, { clock, random: zeros })).toThrow(
    'instance.uriSpec',
  );
  expect(() =>
    newInstance({ name: 'a' } as { name: string; address: string }, { clock, random: zeros }),
  ).toThrow('instance.address');
});

test('names from elsewhere are refused under the names that their users know', () => {
  expect(() => checkServiceName('a/b', '--service')).toThrow(
    new ConfigError('--service', 'a/b', 'a name without "/" and control characters, other than "." and ".."'),
  );
  expect(() => checkServiceName('')).toThrow('service name: expected a name, got ""');
  expect(() => checkServiceName('x'.repeat(256), 'instance id')).toThrow(
    'instance id: expected at most 255 bytes, not 256',
  );
});

test('an error stays short, whatever it is about', () => {
  const error = (name: unknown) => {
    try {
      checkServiceName(name as string);
    } catch (thrown) {
      return String(thrown);
    }
    return undefined;
  };
  expect(error('x'.repeat(1_000_000))?.length).toBeLessThan(200);
  expect(error(Object.create(null))).toBe('ConfigError: service name: expected a name, got an object');
});
