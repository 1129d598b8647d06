import { describe, expect, it } from 'vitest';
import { instanceOf, instancesOf, TestSource } from '../../../test/support/service-instances.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { ServiceInstance } from './instance/service-instance.js';
import { parseUriSpec } from './instance/uri-spec.js';
import { NoInstanceError, type ProviderChoices, ServiceProvider } from './service-provider.js';
import { parseStrategy, STRATEGY_NAMES, sticky, weighted } from './strategies.js';

function provided(instances: readonly ServiceInstance[], choices: ProviderChoices = {}) {
  const clock = new VirtualClock();
  const source = new TestSource(instances);
  let looks = 0;
  const counting = {
    now: () => {
      looks += 1;
      return clock.now();
    },
    monotonic: () => {
      looks += 1;
      return clock.monotonic();
    },
  };
  const provider = new ServiceProvider({ source, clock: counting, random: seededRandom(1), ...choices });
  const picked = (times = 30) => {
    const ids = new Set<string | undefined>();
    for (let i = 0; i < times; i += 1) ids.add(provider.pick()?.id);
    return [...ids].sort();
  };
  const fail = (id: string, times = 1) => {
    const instance = source.instances.find((each) => each.id === id) as ServiceInstance;
    for (let i = 0; i < times; i += 1) provider.noteError(instance);
  };
  return { clock, source, provider, picked, fail, looks: () => looks };
}

describe('a provider', () => {
  it('refuses a strategy that is only the name of one', () => {
    expect(() => provided([], { strategy: 'random' as never })).toThrow(
      'strategy: expected a strategy itself, such as roundRobin(), got "random"',
    );
  });

  it('picks from the current instances of its source', () => {
    const { source, provider, picked } = provided([]);
    expect(provider.pick()).toBeUndefined();
    source.set(instancesOf(3));
    expect(picked()).toEqual(['0', '1', '2']);
    source.set(instancesOf(2));
    expect(picked()).toEqual(['0', '1']);
    source.set([]);
    expect(provider.pick()).toBeUndefined();
  });

  it('passes on the reports of its source, and closes it', () => {
    const { source, provider } = provided(instancesOf(2));
    source.stale = { since: 7 };
    expect([provider.name, provider.instances, provider.stale]).toEqual([
      'orders',
      source.instances,
      { since: 7 },
    ]);
    provider.close();
    expect(source.closed).toBe(1);
    expect(provider.pick()).toBeDefined();
  });

  it('never picks an instance that Spring’s status takes out of service', () => {
    const statuses = [undefined, 'UP', ' ', 'up', 'OUT_OF_SERVICE', 'DOWN', 'out_of_service'];
    const instances = statuses.map((status, index) =>
      instanceOf(String(index), {
        payload: { '@class': 'Spring', metadata: status === undefined ? {} : { instance_status: status } },
      }),
    );
    const { picked, source, provider } = provided([...instances, instanceOf('7', { payload: 'text' })]);
    expect(picked(100)).toEqual(['0', '1', '2', '3', '7']);
    // Not by a choice of one’s own either.
    expect(provided(instances, { accept: () => true }).picked(100)).toEqual(['0', '1', '2', '3']);
    source.set(instances.slice(4));
    expect(provider.pick()).toBeUndefined();
    expect(() => provider.need()).toThrow('3 known: 3 disabled or out of service');
  });

  it('never picks a disabled instance, by any strategy, not even when all the others are down', () => {
    for (const name of STRATEGY_NAMES) {
      const { picked, fail } = provided([instanceOf('on'), instanceOf('off', { enabled: false })], {
        strategy: parseStrategy(name),
      });
      expect(picked()).toEqual(['on']);
      fail('on', 2);
      expect(picked()).toEqual(['on']);
    }
  });

  it('skips those without an address, unless its filter accepts them', () => {
    const instances = [
      instanceOf('here'),
      instanceOf('nowhere', { address: undefined }),
      instanceOf('spec', { address: undefined, uriSpec: parseUriSpec('http://x') }),
    ];
    expect(provided(instances).picked()).toEqual(['here', 'spec']);
    expect(provided(instances, { accept: () => true }).picked()).toEqual(['here', 'nowhere', 'spec']);
    expect(provided(instances, { accept: ({ id }) => id === 'nowhere' }).picked()).toEqual(['nowhere']);
  });

  it('does not read the clock for a pick while no instance is down', () => {
    const { picked, fail, looks } = provided(instancesOf(3));
    picked(1_000);
    expect(looks()).toBe(0);
    fail('0', 2);
    const before = looks();
    picked(10);
    expect(looks()).toBeGreaterThan(before);
  });

  it('calls its filter only when something has changed', () => {
    let asked = 0;
    const accept = () => {
      asked += 1;
      return true;
    };
    const { source, picked } = provided(instancesOf(10), { accept });
    picked(1_000);
    expect(asked).toBe(10);
    source.set(instancesOf(5));
    picked(1_000);
    expect(asked).toBe(15);
  });
});

describe('the instances that were tried already', () => {
  it('are not picked again, by any strategy, until none is left', () => {
    for (const name of STRATEGY_NAMES) {
      const { provider } = provided(instancesOf(10), { strategy: parseStrategy(name) });
      const tried = new Set<ServiceInstance>();
      for (let i = 0; i < 10; i += 1) {
        const picked = provider.pick(tried) as ServiceInstance;
        expect(tried.has(picked)).toBe(false);
        tried.add(picked);
      }
      expect(provider.pick(tried)).toBeUndefined();
    }
  });

  it('do not change the instance of a sticky provider', () => {
    const { provider } = provided(instancesOf(10), { strategy: sticky() });
    const first = provider.pick() as ServiceInstance;
    const second = provider.pick(new Set([first]));
    expect(second).not.toBe(first);
    expect(provider.pick(new Set([first]))).toBe(second);
    expect(provider.pick()).toBe(first);
  });

  it('do not let one of weight 0 be picked while there is another', () => {
    const instances = [9_999, 0, 0, 0, 0.001].map((weight, index) =>
      instanceOf(String(index), { payload: { weight } }),
    );
    const { provider } = provided(instances, { strategy: weighted() });
    const tried = new Set([instances[0] as ServiceInstance]);
    for (let i = 0; i < 100; i += 1) expect(provider.pick(tried)?.id).toBe('4');
  });
});

describe('an instance that fails', () => {
  it('is down from the second error on, and comes back 30 seconds after that', async () => {
    const { clock, picked, fail } = provided(instancesOf(3));
    fail('1');
    expect(picked()).toEqual(['0', '1', '2']);
    await clock.advance(20_000);
    fail('1');
    expect(picked()).toEqual(['0', '2']);
    await clock.advance(29_999);
    expect(picked()).toEqual(['0', '2']);
    await clock.advance(1);
    expect(picked()).toEqual(['0', '1', '2']);
  });

  it('begins again when it comes back', async () => {
    const { clock, picked, fail } = provided(instancesOf(2));
    fail('1', 2);
    await clock.advance(30_000);
    fail('1');
    expect(picked()).toEqual(['0', '1']);
    fail('1');
    expect(picked()).toEqual(['0']);
  });

  it('is not down for errors that lie further apart than the time-out', async () => {
    const { clock, picked, fail } = provided(instancesOf(2));
    for (let i = 0; i < 10; i += 1) {
      fail('1');
      expect(picked()).toEqual(['0', '1']);
      await clock.advance(30_000);
    }
  });

  it('is not down for as many errors as it takes when they are spread over more than the time-out', async () => {
    const { clock, picked, fail } = provided(instancesOf(2), { downPolicy: { threshold: 3 } });
    for (let i = 0; i < 4; i += 1) {
      fail('1');
      await clock.advance(20_000);
      expect(picked()).toEqual(['0', '1']);
    }
  });

  it('is not kept down for longer by errors that are noted meanwhile', async () => {
    const { clock, picked, fail } = provided(instancesOf(2));
    fail('1', 2);
    await clock.advance(29_000);
    fail('1', 5);
    await clock.advance(1_000);
    expect(picked()).toEqual(['0', '1']);
  });

  it('obeys the threshold and the time-out that are given', async () => {
    const { clock, picked, fail } = provided(instancesOf(2), {
      downPolicy: { threshold: 4, timeoutMs: 500 },
    });
    fail('0', 3);
    expect(picked()).toEqual(['0', '1']);
    fail('0');
    expect(picked()).toEqual(['1']);
    await clock.advance(500);
    expect(picked()).toEqual(['0', '1']);
  });

  it('stays down while it is updated, comes and goes, and is another one when it is registered again', () => {
    const { source, picked, fail } = provided(instancesOf(2));
    fail('1', 2);
    source.set([instanceOf('0'), instanceOf('1', { payload: { version: 2 } })]);
    expect(picked()).toEqual(['0']);
    source.set([instanceOf('0')]);
    expect(picked()).toEqual(['0']);
    source.set(instancesOf(2));
    expect(picked()).toEqual(['0']);
    source.set([instanceOf('0'), instanceOf('1', { registrationTimeUTC: 1_800_000_000_000 })]);
    expect(picked()).toEqual(['0', '1']);
    source.set([instanceOf('0'), instanceOf('1', { address: '10.0.0.9' })]);
    expect(picked()).toEqual(['0', '1']);
  });

  it('does not count for another one with the same id, as sequential instances have', () => {
    const twins = [instanceOf('x', { port: 1 }), instanceOf('x', { port: 2 })];
    const { provider } = provided(twins);
    for (let i = 0; i < 2; i += 1) provider.noteError(twins[0] as ServiceInstance);
    for (let i = 0; i < 10; i += 1) expect(provider.pick()?.port).toBe(2);
  });

  it('comes back in its turn while others go down, over and over', async () => {
    const { clock, picked, fail } = provided(instancesOf(4), {
      downPolicy: { threshold: 1, timeoutMs: 100 },
    });
    for (let round = 0; round < 50; round += 1) {
      fail(String(round % 4));
      await clock.advance(40);
      // Down are those of the last 100 ms: this one and the two before.
      const down = [round, round - 1].filter((each) => each >= 0).map((each) => String(each % 4));
      const all = ['0', '1', '2', '3'];
      expect(picked()).toEqual(all.filter((id) => !down.includes(id)));
    }
  });

  it('is picked all the same when every one is down, since then it is most likely not they that have failed', async () => {
    const { clock, picked, fail } = provided(instancesOf(2));
    fail('0', 2);
    await clock.advance(10_000);
    fail('1', 2);
    expect(picked()).toEqual(['0', '1']);
    await clock.advance(20_000);
    expect(picked()).toEqual(['0']);
    await clock.advance(10_000);
    expect(picked()).toEqual(['0', '1']);
  });

  it('is not picked when every one is down, if the provider is configured so', async () => {
    const { clock, provider, picked, fail } = provided(instancesOf(2), {
      downPolicy: { whenAllDown: 'none' },
    });
    fail('0', 2);
    fail('1', 2);
    expect(provider.pick()).toBeUndefined();
    await clock.advance(30_000);
    expect(picked()).toEqual(['0', '1']);
  });

  it('is known to a strategy, also where that picks in place of an unwanted instance', () => {
    const avoidFailed = () => {
      const failed = new Set<ServiceInstance>();
      return {
        pick: (all: readonly ServiceInstance[]) =>
          (all.find((each) => !failed.has(each)) ?? all[0]) as ServiceInstance,
        noteError: (instance: ServiceInstance) => void failed.add(instance),
      };
    };
    const { source, provider, fail } = provided(instancesOf(4), { strategy: sticky(avoidFailed) });
    fail('0');
    expect(provider.pick()?.id).toBe('1');
    expect(provider.pick(new Set(source.instances.slice(1, 3)))?.id).toBe('3');
  });

  it('is forgotten in time, however many fail', async () => {
    const { clock, source, picked, provider } = provided(instancesOf(1));
    for (let i = 0; i < 1_000; i += 1) {
      const gone = instanceOf(`gone-${i}`);
      source.set([instanceOf('0'), gone]);
      provider.noteError(gone);
      await clock.advance(100);
    }
    expect(picked()).toEqual(['0', 'gone-999']);
  });

  it('is refused a policy that makes no sense', () => {
    for (const threshold of [0, -1, 1.5, Number.NaN])
      expect(() => provided([], { downPolicy: { threshold } })).toThrow(
        expect.objectContaining({ setting: 'downPolicy.threshold' }),
      );
    for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => provided([], { downPolicy: { timeoutMs } })).toThrow(
        expect.objectContaining({ setting: 'downPolicy.timeoutMs' }),
      );
  });
});

describe('the URL of an instance', () => {
  it('is made of its uriSpec, else of address and port', () => {
    expect(provided([instanceOf('a')]).provider.url()).toBe('http://10.0.0.1:8080');
    expect(provided([instanceOf('a', { sslPort: 8443 })]).provider.url()).toBe('https://10.0.0.1:8443');
    const uriSpec = parseUriSpec('{scheme}://{address}:{port}/{version}');
    expect(provided([instanceOf('a', { uriSpec })]).provider.url({ version: 'v2' })).toBe(
      'http://10.0.0.1:8080/v2',
    );
  });

  it('is that of another instance if the picked one has no port', () => {
    const { provider } = provided([...instancesOf(9, { port: undefined }), instanceOf('whole')]);
    for (let i = 0; i < 20; i += 1) expect(provider.url()).toBe('http://10.0.0.1:8080');
  });

  it('does not change the instance of a sticky provider if that has no port', () => {
    const { provider } = provided([...instancesOf(9, { port: undefined }), instanceOf('whole')], {
      strategy: sticky(),
    });
    const choice = provider.pick();
    for (let i = 0; i < 3; i += 1) provider.url();
    expect(provider.pick()).toBe(choice);
  });

  it('fails if there is none, and says why', async () => {
    const none = (instances: readonly ServiceInstance[]) => {
      const { clock, source, provider, fail } = provided(instances, { downPolicy: { whenAllDown: 'none' } });
      const message = () => {
        try {
          return provider.url();
        } catch (error) {
          expect(error).toBeInstanceOf(NoInstanceError);
          expect(error).toMatchObject({ code: 'NO_INSTANCE', service: 'orders' });
          return (error as Error).message;
        }
      };
      return { clock, source, fail, message };
    };
    const empty = none([]);
    expect(empty.message()).toBe('no instance of orders can be picked (none is known)');
    empty.source.stale = { since: 0 };
    await empty.clock.advance(3_200);
    expect(empty.message()).toBe(
      'no instance of orders can be picked (none is known; ZooKeeper has not answered for 3 s)',
    );
    const some = none([
      ...instancesOf(2),
      instanceOf('off', { enabled: false }),
      instanceOf('x', { address: undefined }),
    ]);
    some.fail('0', 2);
    some.fail('1', 2);
    expect(some.message()).toBe(
      'no instance of orders can be picked (4 known: 1 disabled or out of service, 1 without a usable address, 2 down)',
    );
    expect(none(instancesOf(1, { port: undefined })).message()).toBe(
      'no instance of orders can be picked (1 known: 1 without a usable address)',
    );
  });

  it('is not made up for a caller that needs an instance other than the tried ones', () => {
    const { provider } = provided(instancesOf(2));
    expect(provider.need()).toBeDefined();
    expect(() => provider.need(new Set(provider.instances))).toThrow(
      'no instance of orders can be picked (2 known: 2 tried already)',
    );
  });
});
