import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { decodeInstance, encodeInstance } from './instance-codec.js';
import { jsonPayload, type SpringInstance, springInstancePayload, springPayload } from './payload-codec.js';
import type { ServiceInstance } from './service-instance.js';
import { buildUri, parseUriSpec } from './uri-spec.js';

const bytes = readFileSync(new URL('../../../../test/fixtures/spring/registered.znode', import.meta.url));
const spring: SpringInstance = { id: 'orders-1', name: 'orders', metadata: { zone: 'a' } };

function read(payload: string) {
  const decoded = decodeInstance(
    { name: 'orders', id: 'i-1', data: Buffer.from(`{"payload":${payload}}`) },
    springPayload,
  );
  return decoded.status === 'readable' ? decoded.instance.payload : decoded.problem;
}

test('what Spring writes is read, and written again byte for byte', () => {
  const decoded = decodeInstance({ name: 'orders', id: 'i-1', data: bytes }, springPayload);
  if (decoded.status !== 'readable') throw new Error(decoded.problem);
  expect(decoded.instance.payload).toEqual(spring);
  expect(encodeInstance(decoded.instance, springPayload)).toBe(bytes.toString());
  expect(encodeInstance({ ...decoded.instance, payload: springInstancePayload(spring) }, jsonPayload)).toBe(
    bytes.toString(),
  );
});

test('an instance with Spring’s payload gets Spring’s uriSpec by default, and must have a port', () => {
  const decoded = decodeInstance({ name: 'orders', id: 'i-1', data: bytes }, springPayload);
  if (decoded.status !== 'readable') throw new Error(decoded.problem);
  const bare = { ...decoded.instance, uriSpec: undefined };
  const written = (change: Partial<ServiceInstance<SpringInstance>>) => {
    const text = encodeInstance({ ...bare, ...change }, springPayload);
    const again = decodeInstance({ name: 'orders', id: 'i-1', data: Buffer.from(text) }, springPayload);
    return (
      again.status === 'readable' &&
      again.instance.uriSpec &&
      buildUri(again.instance.uriSpec, again.instance)
    );
  };
  expect(encodeInstance(bare, springPayload)).toBe(bytes.toString());
  expect(encodeInstance({ ...bare, payload: springInstancePayload(spring) }, jsonPayload)).toBe(
    bytes.toString(),
  );
  expect(written({ sslPort: 8443 })).toBe('https://10.0.0.7:8443');
  expect(written({ port: undefined, sslPort: 8443 })).toBe('https://10.0.0.7:8443');
  expect(written({ address: '2001:db8::7' })).toBe('http://[2001:db8::7]:8080');
  expect(written({ uriSpec: parseUriSpec('x://{address}') })).toBe('x://10.0.0.7');
  expect(() => written({ port: undefined })).toThrow(
    'instance.port: expected a port or an sslPort (Spring cannot read a service',
  );
});

test('metadata are texts', () => {
  const wrong = { ...spring, metadata: { weight: 5 } } as unknown as SpringInstance;
  expect(() => springInstancePayload(wrong)).toThrow(
    'instance.payload.metadata.weight: expected a text, got 5',
  );
});

const CLASS = '"@class":"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance"';

test('others’ payloads of Spring’s kind are understood as far as they go', () => {
  expect(read(`{${CLASS}}`)).toEqual({ id: '', name: '', metadata: {} });
  expect(
    read(`{${CLASS},"id":5,"name":null,"metadata":{"a":1,"b":null,"c":[true],"__proto__":"x"}}`),
  ).toEqual({
    id: '5',
    name: '',
    metadata: Object.fromEntries([
      ['a', '1'],
      ['b', ''],
      ['c', '[true]'],
      ['__proto__', 'x'],
    ]),
  });
});

test.each(['{"zone":"a"}', '"text"', '5', '{"@class":"java.util.TreeMap"}', '[]'])(
  'a payload of another kind is unreadable, as for Spring: %s',
  (payload) => {
    expect(read(payload)).toBe(
      'has a payload of another kind: its class is not org.springframework.cloud.zookeeper.discovery.ZookeeperInstance',
    );
  },
);

test('an instance without a payload is readable', () => {
  expect(read('null')).toBeUndefined();
});
