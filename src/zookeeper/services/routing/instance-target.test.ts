import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { newInstance, type ServiceInstanceInit } from '../instance/new-instance.js';
import type { ServiceInstance } from '../instance/service-instance.js';
import { fixedInstances } from '../service-cache.js';
import { ServiceProvider } from '../service-provider.js';
import { type InstanceTarget, noInstance, pickTarget, targetOf } from './instance-target.js';

function instance(init: Partial<ServiceInstanceInit>): ServiceInstance {
  return newInstance(
    { name: 'orders', address: '10.0.0.5', ...init },
    { clock: new VirtualClock(), random: seededRandom(1) },
  );
}

function providerOf(instances: readonly ServiceInstance[]): ServiceProvider {
  return new ServiceProvider({
    source: fixedInstances('orders', instances),
    clock: new VirtualClock(),
    random: seededRandom(1),
  });
}

describe('the target of an instance', () => {
  const template = '{scheme}://{address}:{port}';
  it.each([
    ['its port', { port: 8080 }, 'http://10.0.0.5:8080', ''],
    ['its TLS port, if it has one', { port: 8080, sslPort: 8443 }, 'https://10.0.0.5:8443', ''],
    ['an IPv6 address', { address: 'fe80::1', port: 80 }, 'http://[fe80::1]:80', ''],
    ['a host name', { address: 'host-1.internal', port: 81 }, 'http://host-1.internal:81', ''],
    ['its uriSpec', { port: 8080, uriSpec: template }, 'http://10.0.0.5:8080', ''],
    [
      'a path in its uriSpec',
      { port: 8080, uriSpec: `${template}/api/v1/` },
      'http://10.0.0.5:8080',
      '/api/v1',
    ],
    ['a uriSpec without a port', { uriSpec: 'https://{address}/api' }, 'https://10.0.0.5:443', '/api'],
    [
      'a uriSpec for a TLS port that it has not',
      { port: 8080, uriSpec: 'http://{address}:{ssl-port}' },
      'http://10.0.0.5:8080',
      '',
    ],
    [
      'a uriSpec for a port that it has for TLS only',
      { sslPort: 8443, uriSpec: template },
      'https://10.0.0.5:8443',
      '',
    ],
  ])('is made of %s', (_what, init, origin, basePath) => {
    expect(targetOf(instance(init))).toMatchObject({ origin, basePath });
  });

  it.each([
    ['has no port', {}],
    ['has a uriSpec for a port that it has not', { uriSpec: template }],
    ['speaks something else', { port: 80, uriSpec: 'amqp://{address}:{port}' }],
    ['has a uriSpec that makes no URL', { port: 80, uriSpec: 'http://{no such variable}' }],
  ])('is none when the instance %s', (_what, init) => {
    expect(targetOf(instance(init))).toBeUndefined();
  });

  it('is none for a foreign instance without an address', () => {
    expect(targetOf({ ...instance({ port: 80 }), address: undefined })).toBeUndefined();
  });

  it('has no brackets in the host name that sockets take', () => {
    expect(targetOf(instance({ address: '::1', port: 8080 }))).toMatchObject({
      hostname: '::1',
      port: 8080,
      protocol: 'http:',
    });
  });
});

describe('a pick', () => {
  it('passes over instances that nothing can be sent to', () => {
    const [useless, useful] = [instance({}), instance({ port: 80 })];
    const picker = {
      name: 'orders',
      pick: (except?: ReadonlySet<ServiceInstance>) => (except?.has(useless) ? useful : useless),
      noteError() {},
    };
    expect(pickTarget(picker, new Set())?.instance).toBe(useful);
  });

  it('returns no tried instance, even if the picker does', () => {
    const useful = instance({ port: 80 });
    const forgetful = { name: 'orders', pick: () => useful, noteError() {} };
    expect(pickTarget(forgetful, new Set([useful]))).toBeUndefined();
  });

  it('ends, whatever the picker does', () => {
    const useless = instance({});
    const stubborn = { name: 'orders', pick: () => useless, noteError() {} };
    expect(pickTarget(stubborn, new Set())).toBeUndefined();
    let asked = 0;
    const endless = {
      name: 'orders',
      pick() {
        asked += 1;
        return instance({});
      },
      noteError() {},
    };
    expect(pickTarget(endless, new Set())).toBeUndefined();
    expect(asked).toBeLessThan(100);
  });

  it('finds the one among many, as the picker would have it', () => {
    const useless = Array.from({ length: 500 }, () => instance({}));
    const useful = [instance({ port: 80 }), instance({ port: 81 })];
    const provider = providerOf([...useless, ...useful]);
    const off = { ...instance({ port: 82 }), enabled: false };
    for (let i = 0; i < 4; i += 1) expect(useful).toContain(pickTarget(provider, new Set())?.instance);
    expect(pickTarget(provider, new Set([...useful.slice(1)]))?.instance).toBe(useful[0]);
    expect(pickTarget(providerOf([...useless, off]), new Set())).toBeUndefined();
    const secure = instance({ sslPort: 443 });
    const only = providerOf([...Array.from({ length: 500 }, () => instance({ port: 80 })), secure]);
    expect(pickTarget(only, new Set(), ({ protocol }) => protocol === 'https:')?.instance).toBe(secure);
  });

  it('that finds no instance reports what is known of the existing ones', () => {
    const instances = [
      ...Array.from({ length: 100 }, () => instance({})),
      { ...instance({ port: 80 }), enabled: false },
    ];
    const tried = new Set<ServiceInstance>();
    expect(pickTarget(providerOf(instances), tried)).toBeUndefined();
    expect(noInstance(providerOf(instances), tried).facts).toEqual({
      known: 101,
      disabled: 1,
      unacceptable: 100,
      down: 0,
      staleForMs: undefined,
    });
    const plain = providerOf([instance({ port: 80 })]);
    const tls = ({ protocol }: InstanceTarget) => protocol === 'https:';
    tried.clear();
    expect(pickTarget(plain, tried, tls)).toBeUndefined();
    expect(noInstance(plain, tried, tls).message).toBe(
      'no instance of orders can be picked (1 known: 1 without a usable address)',
    );
    const [failed] = plain.instances;
    expect(noInstance(plain, new Set(failed && [failed])).message).toBe(
      'no instance of orders can be picked (1 known: 1 tried already)',
    );
  });
});
