import { describe, expect, it } from 'vitest';
import { AnySession, SESSION_MS } from '../../../test/support/scripted-zookeeper.js';
import { instanceOf } from '../../../test/support/service-instances.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { jsonPayload } from './instance/payload-codec.js';
import { payloadConflict } from './mixed-payloads.js';
import { ServiceDirectory } from './service-directory.js';
import { ServiceDiscovery } from './service-discovery.js';

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

describe('an instance that is registered already', () => {
  const SERVICE = '/services/orders';

  function registered() {
    const clock = new VirtualClock();
    const zookeeper = new AnySession(clock);
    zookeeper.put(SERVICE, '', undefined);
    zookeeper.put(`${SERVICE}/java`, JSON.stringify(SPRING), undefined);
    const wait = <T>(work: Promise<T>) => inVirtualTime(clock, work);
    const dataAt = (id: string) => JSON.parse(`${zookeeper.znodes.get(`${SERVICE}/${id}`)?.data ?? null}`);
    return { clock, zookeeper, wait, dataAt };
  }
  const refusal = { fault: 'mixed-payloads', message: expect.stringMatching(/use --payload-type spring/) };

  it('keeps what it has where a change would make the service unreadable for Java', async () => {
    const { clock, zookeeper, wait, dataAt } = registered();
    const services = new ServiceDiscovery({ zookeeper, clock, random: seededRandom(1) });
    const one = { ...instanceOf('one'), payload: undefined };
    await wait(services.register(one));
    for (const change of ['update', 'register'] as const)
      await expect(wait(services[change]({ ...one, payload: { weight: 2 } }))).rejects.toMatchObject(refusal);
    expect(dataAt('one').payload).toBeNull();
    expect(services.registered).toEqual([one]);
    const disabled = { ...one, enabled: false };
    await wait(services.update(disabled));
    await expect(wait(services.update({ ...one, payload: 'x' }))).rejects.toMatchObject(refusal);
    expect([services.registered, dataAt('one').enabled]).toEqual([[disabled], false]);

    const removing = wait(services.unregister(one)).catch(() => undefined);
    await expect(wait(services.register({ ...one, payload: 'x' }))).rejects.toMatchObject(refusal);
    await removing;
    expect([services.registered, dataAt('one')]).toEqual([[], null]);
    await services.close();
  });

  it('keeps what it has, though that could not be written before for want of a connection', async () => {
    const { clock, zookeeper, wait, dataAt } = registered();
    const services = new ServiceDiscovery({ zookeeper, clock, random: seededRandom(1) });
    const { state } = zookeeper;
    zookeeper.become({ status: 'suspended', sessionId: 'a', timeoutMs: SESSION_MS });
    const one = { ...instanceOf('one'), payload: undefined };
    const first = wait(services.register(one)).catch(() => undefined);
    const second = expect(wait(services.update({ ...one, payload: 'x' }))).rejects.toMatchObject(refusal);
    await clock.advance(0);
    zookeeper.become(state);
    await Promise.all([first, second]);
    expect([services.registered, dataAt('one')?.payload]).toEqual([[one], null]);
    await services.close();
  });

  it('is not replaced by one that would do so', async () => {
    const { clock, zookeeper, wait, dataAt } = registered();
    const directory = new ServiceDirectory({ zookeeper, clock, payload: jsonPayload });
    const one = { ...instanceOf('one'), serviceType: 'STATIC' as const, payload: undefined };
    await wait(directory.write(one));
    await expect(wait(directory.write({ ...one, payload: { weight: 2 } }))).rejects.toMatchObject(refusal);
    expect(dataAt('one').payload).toBeNull();
  });
});
