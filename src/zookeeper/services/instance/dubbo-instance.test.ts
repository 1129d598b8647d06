import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { mixedPayloads } from '../mixed-payloads.js';
import { DUBBO_CLASS, dubboFacts, dubboText } from './dubbo-instance.js';
import { decodeInstance } from './instance-codec.js';
import { jsonPayload } from './payload-codec.js';
import type { ServiceInstance } from './service-instance.js';
import { instanceUrl, parseUriSpec } from './uri-spec.js';

/** As Dubbo 3.3.2 wrote it. */
const bytes = readFileSync(new URL('../../../../test/fixtures/dubbo/registered.znode', import.meta.url));

function read(data: Buffer): ServiceInstance {
  const decoded = decodeInstance({ name: 'demo-provider', id: '192.0.2.2:20880', data }, jsonPayload);
  if (decoded.status === 'unreadable') throw new Error(decoded.problem);
  return decoded.instance;
}

/** The same with other metadata. */
const withMetadata = (metadata: unknown): ServiceInstance => ({
  ...read(bytes),
  payload: { '@class': DUBBO_CLASS, metadata },
});

describe('an instance that Dubbo 3.3 has registered', () => {
  test('is shown by its protocols, ports and revision', () => {
    expect(dubboText(read(bytes))).toBe('dubbo:20880, tri:50051 · revision b049');
    expect(dubboFacts(read(bytes))).toEqual({
      endpoints: [
        { protocol: 'dubbo', port: 20880 },
        { protocol: 'tri', port: 50051 },
      ],
      revision: 'b0490fb4071ab9eb4494f7509c25743c',
    });
  });

  test('has the URL of its first endpoint, unless a uriSpec says otherwise', () => {
    const instance = read(bytes);
    expect(instanceUrl(instance)).toBe('dubbo://192.0.2.2:20880');
    expect(instanceUrl({ ...instance, address: 'fd00::1' })).toBe('dubbo://[fd00::1]:20880');
    const uriSpec = parseUriSpec('tri://{address}:50051');
    expect(instanceUrl({ ...instance, uriSpec })).toBe('tri://192.0.2.2:50051');
    const tri = withMetadata({ 'dubbo.endpoints': '[{"port":50051,"protocol":"tri"}]' });
    expect(instanceUrl(tri)).toBe('tri://192.0.2.2:50051');
  });

  test.each<[string, unknown]>([
    ['no metadata', undefined],
    ['metadata that are no object', 'text'],
    ['endpoints that are no text', { 'dubbo.endpoints': [{ port: 1, protocol: 'tri' }] }],
    ['endpoints that are no JSON', { 'dubbo.endpoints': '[{"port":' }],
    ['endpoints that are no list', { 'dubbo.endpoints': '{"port":1,"protocol":"tri"}' }],
    ['an endpoint that is none', { 'dubbo.endpoints': '[null]' }],
    ['a port that is none', { 'dubbo.endpoints': '[{"port":70000,"protocol":"tri"}]' }],
    ['a protocol that is no scheme', { 'dubbo.endpoints': '[{"port":1,"protocol":"a/b@c"}]' }],
    ['a revision that is no text', { 'dubbo.metadata.revision': 7 }],
  ])('with %s is taken for the port of the instance', (_, metadata) => {
    const instance = withMetadata(metadata);
    expect(dubboFacts(instance)).toEqual({
      endpoints: [{ protocol: 'dubbo', port: 20880 }],
      revision: null,
    });
    expect(dubboText(instance)).toBe('dubbo:20880 · revision unknown');
    expect(dubboText({ ...instance, port: undefined })).toBe(' · revision unknown');
    expect(instanceUrl({ ...instance, port: undefined })).toBeUndefined();
  });

  test.each([undefined, null, 'text', 7, [1], {}, { '@class': 'java.util.TreeMap', metadata: {} }])(
    'is not one with the payload %j',
    (payload) => {
      const instance = { ...read(bytes), payload };
      expect([dubboFacts(instance), dubboText(instance)]).toEqual([undefined, undefined]);
      expect(instanceUrl(instance)).toBe('http://192.0.2.2:20880');
    },
  );
});

describe('a znode below an application', () => {
  test.each(['providers', 'consumers', 'routers', 'configurators'])(
    'named %s is a folder of a Dubbo interface, unless it is an instance',
    (id) => {
      for (const data of ['', '10.0.0.7'])
        expect(decodeInstance({ name: 'a', id, data: Buffer.from(data) }, jsonPayload)).toEqual({
          status: 'unreadable',
          problem: 'is a folder of a Dubbo interface',
        });
      expect(decodeInstance({ name: 'a', id, data: Buffer.from('{}') }, jsonPayload)).toMatchObject({
        status: 'readable',
        instance: { id },
      });
    },
  );

  test('of another name without JSON is none', () => {
    const decoded = decodeInstance({ name: 'a', id: 'provider', data: Buffer.from('10.0.0.7') }, jsonPayload);
    expect(decoded).toEqual({ status: 'unreadable', problem: 'is not JSON' });
  });
});

describe('Java programs', () => {
  const dubbo = { '@class': DUBBO_CLASS, metadata: {} };
  const spring = {
    '@class': 'org.springframework.cloud.zookeeper.discovery.ZookeeperInstance',
    metadata: {},
  };
  const map = { '@class': 'java.util.TreeMap' };

  test.each<[string, unknown[], string]>([
    ['Dubbo’s and Spring’s', [dubbo, spring], `${DUBBO_CLASS}, ${spring['@class']}`],
    ['Dubbo’s and maps', [{}, dubbo], `plain JSON, ${DUBBO_CLASS}`],
    ['Dubbo’s and none', [dubbo, undefined, dubbo], `${DUBBO_CLASS}, no payload`],
    ['Spring’s and maps', [spring, map], `${spring['@class']}, plain JSON`],
    ['two classes', [{ '@class': 'a.B' }, { '@class': 'a.C' }], 'a.B, a.C'],
  ])('cannot read a service with payloads of %s', (_, payloads, kinds) => {
    expect(mixedPayloads(payloads.map((payload) => ({ payload })))).toBe(
      `has instances of different payload classes, so Java programs cannot read it: ${kinds}`,
    );
  });

  test.each<[string, unknown[]]>([
    ['nothing', []],
    ['one class', [dubbo, dubbo]],
    ['Spring’s and none', [null, spring, undefined]],
    ['maps of several classes, texts and none', [map, {}, { '@class': 'java.util.HashMap' }, 'text', null]],
  ])('can read a service with payloads of %s', (_, payloads) => {
    expect(mixedPayloads(payloads.map((payload) => ({ payload })))).toBeUndefined();
  });
});
