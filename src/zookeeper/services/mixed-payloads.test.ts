import { describe, expect, it } from 'vitest';
import { payloadConflict } from './mixed-payloads.js';

const of = (type: string) => ({ port: 80, payload: { '@class': type } });
const SPRING = of('org.springframework.cloud.zookeeper.discovery.ZookeeperInstance');
const DUBBO = of('org.apache.dubbo.registry.zookeeper.ZookeeperInstance');
const MAP = { port: 80, payload: { nodeId: 1 } };
const TYPED_MAP = of('java.util.TreeMap');
const NONE = { port: 80 };

describe('a new instance', () => {
  it.each([
    ['no payload next to Spring’s', SPRING, NONE],
    ['no payload, and a port for TLS only, next to Spring’s', SPRING, { sslPort: 443, payload: null }],
    ['no payload next to a class of another program', of('com.example.Order'), NONE],
    ['Spring’s payload next to Spring’s', SPRING, SPRING],
    ['Dubbo’s payload next to Dubbo’s', DUBBO, DUBBO],
    ['a map next to no payload', NONE, MAP],
    // So that a service can be changed to another payload task by task.
    ['Spring’s payload next to a map', MAP, SPRING],
    ['no port next to a map', MAP, {}],
    ['a map next to another class of maps', TYPED_MAP, MAP],
    ['anything next to what is no instance', {}, MAP],
  ])('may have %s', (_, present, own) => {
    expect(payloadConflict(present, own)).toBeUndefined();
  });

  it.each([
    ['a map next to Spring’s payload', SPRING, MAP, /Spring\w*.*plain JSON.*: use --payload-type spring/i],
    ['a text next to Spring’s payload', SPRING, { port: 80, payload: 'x' }, /use --payload-type spring/],
    ['a typed map next to Spring’s payload', SPRING, TYPED_MAP, /use --payload-type spring/],
    ['no port next to Spring’s payload', SPRING, {}, /no port: use --port, or another service name$/],
    ['Spring’s payload without a port', SPRING, { ...SPRING, port: null }, /no port: use --port/],
    ['no payload next to Dubbo’s', DUBBO, NONE, /dubbo.*no payload.*: use another service name$/],
    ['Spring’s payload next to Dubbo’s', DUBBO, SPRING, /dubbo.*: use another service name$/],
    [
      'a map next to a class of another program',
      of('com.example.Order'),
      MAP,
      /com\.example\.Order.*plain JSON.*: leave out the payload, or use another service name$/,
    ],
  ])('is refused with %s', (_, present, own, problem) => {
    expect(payloadConflict(present, own)).toMatch(problem);
  });
});
