import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../core/base/errors.js';
import type { ServiceInstance } from '../../../zookeeper/services/instance/service-instance.js';
import { instanceJson, instanceOf } from './instance-json.js';

const PLACE = { name: 'test', id: 'ca2fff8e', now: 1_795_000_000_000 };
/** As Curator's own documentation shows it. */
const CURATOR = {
  name: 'test',
  id: 'ca2fff8e',
  address: '10.20.30.40',
  port: 1234,
  payload: 'From Test',
  registrationTimeUTC: 1325129459728,
  serviceType: 'STATIC',
};

/** What a client gets. */
const asJson = (instance: ServiceInstance) => JSON.parse(JSON.stringify(instanceJson(instance)));

describe('an instance over HTTP', () => {
  it('has the fields of Curator’s discovery server, and comes back the same', () => {
    expect(asJson(instanceOf(CURATOR, PLACE))).toEqual(CURATOR);
    const { port, payload, ...rest } = CURATOR;
    const secure = { ...rest, sslPort: 1235 };
    expect(asJson(instanceOf(secure, PLACE))).toStrictEqual({ ...secure, payload: null });
    // As Curator's server takes it.
    expect(asJson(instanceOf(rest, PLACE))).toStrictEqual({ ...rest, payload: null });
  });

  it('keeps what Curator’s server would lose, only where there is any', () => {
    const uriSpec = {
      parts: [
        { value: 'scheme', variable: true },
        { value: '://x', variable: false },
      ],
    };
    const full = { ...CURATOR, uriSpec, enabled: false };
    expect(asJson(instanceOf(full, PLACE))).toEqual(full);
    expect(asJson(instanceOf({ ...CURATOR, enabled: true }, PLACE))).toEqual(CURATOR);
  });

  it('needs no time of registration, takes null as absent, and ignores what it does not know', () => {
    const { registrationTimeUTC, payload, ...rest } = CURATOR;
    const json = {
      ...rest,
      sslPort: null,
      payload: null,
      uriSpec: null,
      enabled: null,
      registrationTimeUTC: null,
      weather: 'fine',
    };
    expect(instanceOf(json, PLACE)).toEqual<ServiceInstance>({
      ...rest,
      serviceType: 'STATIC',
      sslPort: undefined,
      payload: undefined,
      uriSpec: undefined,
      registrationTimeUTC: PLACE.now,
      enabled: true,
    });
  });

  it('has a null address where an instance was registered without one', () => {
    const bare = {
      name: 'a',
      id: 'b',
      registrationTimeUTC: 0,
      serviceType: 'DYNAMIC',
      enabled: true,
    } as ServiceInstance;
    const json = {
      name: 'a',
      id: 'b',
      address: null,
      payload: null,
      registrationTimeUTC: 0,
      serviceType: 'DYNAMIC',
    };
    expect(asJson(bare)).toStrictEqual(json);
  });

  it.each([
    [{ name: 'other' }, 'instance.name: expected "test", as in the path, got "other"'],
    [{ id: undefined }, 'instance.id: expected "ca2fff8e", as in the path, got undefined'],
    [{ id: 7 }, 'instance.id: expected "ca2fff8e", as in the path, got 7'],
    [{ serviceType: 'DYNAMIC' }, 'instance.serviceType: expected "STATIC" or "PERMANENT"'],
    [{ serviceType: 'DYNAMIC_SEQUENTIAL' }, 'instance.serviceType: expected "STATIC" or "PERMANENT"'],
    [{ serviceType: 'static' }, 'got "static"'],
    [{ serviceType: undefined }, 'got undefined'],
    [{ address: undefined }, 'instance.address: expected a host name'],
    [{ address: 'http://x' }, 'instance.address: expected a host name'],
    [{ address: {} }, 'got an object'],
    [{ port: 65_536 }, 'instance.port: expected a whole number from 1 to 65535'],
    [{ port: '80' }, 'instance.port: expected a whole number from 1 to 65535'],
    [{ sslPort: 0 }, 'instance.sslPort: expected a whole number from 1 to 65535'],
    [{ registrationTimeUTC: 'now' }, 'instance.registrationTimeUTC: expected whole milliseconds'],
    [{ enabled: 'no' }, 'instance.enabled: expected true or false, got "no"'],
    [{ uriSpec: 'http://x' }, 'instance.uriSpec: expected'],
    [{ uriSpec: { parts: [null] } }, 'instance.uriSpec: expected'],
  ])('is refused with %j, and the field, the value and the expectation are named', (change, message) => {
    const instance = () => instanceOf({ ...CURATOR, ...change }, PLACE);
    expect(instance).toThrow(ConfigError);
    expect(instance).toThrow(message);
  });

  const spring = {
    '@class': 'org.springframework.cloud.zookeeper.discovery.ZookeeperInstance',
    id: 'orders-1',
    name: 'orders',
    metadata: { zone: 'a' },
  };

  it.each([
    { '@class': 'java.util.TreeMap', a: 1 },
    { '@class': 'java.util.HashMap' },
    ['java.util.ArrayList', ['a', 1]],
    ['java.lang.Long', 7],
    { a: { '@class': 'com.example.Order' } },
    spring,
  ])('may have a payload of a class that every Java reader has: %j', (payload) => {
    expect(instanceOf({ ...CURATOR, payload }, PLACE).payload).toEqual(payload);
  });

  it.each([
    [
      { '@class': 'com.example.Order', a: 1 },
      'instance.payload.@class: expected java.util.TreeMap or another map',
    ],
    [{ '@class': 'java.util.Properties' }, 'instance.payload.@class: expected'],
    [['com.example.Order', {}], 'instance.payload[0]: expected java.util.ArrayList'],
    [{ ...spring, name: 7 }, 'instance.payload.name: expected a text, got 7'],
    [{ ...spring, metadata: { zone: 7 } }, 'metadata.zone: expected a text, got 7'],
    [
      { ...spring, metadata: undefined },
      'instance.payload.metadata: expected an object of texts, got undefined',
    ],
  ])('is refused with a payload of a class that Java readers could not load: %j', (payload, message) => {
    const instance = () => instanceOf({ ...CURATOR, payload }, PLACE);
    expect(instance).toThrow(ConfigError);
    expect(instance).toThrow(message);
  });

  it.each([null, [], 'x', 7, true])('is refused when it is %j', (json) => {
    expect(() => instanceOf(json, PLACE)).toThrow('the body: expected a JSON object');
  });

  it('is not fooled by the built-in names of objects', () => {
    const json = JSON.parse(
      '{"__proto__":{"name":"test","id":"ca2fff8e","address":"10.0.0.1","port":1,"serviceType":"STATIC"}}',
    );
    expect(() => instanceOf(json, PLACE)).toThrow(
      'instance.name: expected "test", as in the path, got undefined',
    );
  });
});
