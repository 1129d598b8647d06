import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { decodeInstance, encodeInstance } from './instance-codec.js';
import { jsonPayload } from './payload-codec.js';
import { type SpringInstance, springInstancePayload, springPayload } from './spring-payload.js';

const bytes = readFileSync(new URL('../../../test/fixtures/curator/payload-spring.znode', import.meta.url));
const spring: SpringInstance = { id: 'orders-1', name: 'orders', metadata: { zone: 'a' } };

function read(payload: string) {
  const decoded = decodeInstance({ name: 'orders', id: 'i-1', data: Buffer.from(`{"payload":${payload}}`) }, springPayload);
  return decoded.status === 'readable' ? decoded.instance.payload : decoded.problem;
}

test('what Spring writes is read, and written again byte for byte', () => {
  const decoded = decodeInstance({ name: 'orders', id: 'i-1', data: bytes }, springPayload);
  if (decoded.status !== 'readable') throw new Error(decoded.problem);
  expect(decoded.instance.payload).toEqual(spring);
  expect(encodeInstance(decoded.instance, springPayload)).toBe(bytes.toString());
  expect(encodeInstance({ ...decoded.instance, payload: springInstancePayload(spring) }, jsonPayload)).toBe(bytes.toString());
});

test('metadata are texts', () => {
  const wrong = { ...spring, metadata: { weight: 5 } } as unknown as SpringInstance;
  expect(() => springInstancePayload(wrong)).toThrow('instance.payload.metadata.weight: expected a text, got 5');
});

const CLASS = '"@class":"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance"';

test('others’ payloads of Spring’s kind are understood as far as they go', () => {
  expect(read(`{${CLASS}}`)).toEqual({ id: '', name: '', metadata: {} });
  expect(read(`{${CLASS},"id":5,"name":null,"metadata":{"a":1,"b":null,"c":[true],"__proto__":"x"}}`)).toEqual({
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
