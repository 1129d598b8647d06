import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { ServiceInstance } from '../../src/discovery/services/service-instance.js';
import type { SessionState } from '../../src/zookeeper/session-state.js';
import type { ZooKeeperClient } from '../../src/zookeeper/zookeeper-client.js';
import { ZooKeeperError } from '../../src/zookeeper/zookeeper-error.js';
import { seededRandom } from '../support/virtual-clock.js';
import { uniqueChroot } from '../support/zookeeper.js';
import { client, closeClients } from './discovery-support.js';
import { closeRegistrants, expire, orders, registrant, throughProxy, until } from './services-support.js';

// What keeps registrations right in moments that are rare: each of these tests fails when its safeguard is taken out.

const SERVICE = '/services/orders';
const TYPES = ['DYNAMIC', 'DYNAMIC_SEQUENTIAL', 'STATIC'] as const;

let connect: string;
let reader: ZooKeeperClient;

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  reader = client(connect);
});
afterEach(async () => {
  await closeRegistrants();
  await closeClients();
});

/** Two clients that pass for one whose session is followed by another while the servers have not ended the first. */
async function successive(): Promise<{ zookeeper: ZooKeeperClient; first: ZooKeeperClient; second: ZooKeeperClient; next(): void }> {
  const [first, second] = [client(connect), client(connect)];
  await Promise.all([first.whenConnected(), second.whenConnected()]);
  const listeners = new Set<(state: SessionState) => void>();
  let present = first;
  const zookeeper = new Proxy(first, {
    get: (_, key) => {
      if (key === 'onState')
        return (listener: (state: SessionState) => void) => {
          listeners.add(listener);
          return () => listeners.delete(listener);
        };
      const value: unknown = Reflect.get(present, key, present);
      return typeof value === 'function' ? value.bind(present) : value;
    },
  });
  const next = () => {
    present = second;
    for (const listener of [...listeners]) listener(second.state);
  };
  return { zookeeper, first, second, next };
}

async function names(): Promise<string[]> {
  return [...((await reader.children(SERVICE)) ?? [])].sort();
}

async function owners(): Promise<(string | undefined)[]> {
  return Promise.all((await names()).map(async (name) => (await reader.read(`${SERVICE}/${name}`))?.stat.owner));
}

function sessionIdOf({ state }: ZooKeeperClient): string | undefined {
  return 'sessionId' in state ? state.sessionId : undefined;
}

function lost(): ZooKeeperError {
  return new ZooKeeperError('lost', { fault: 'connection-loss', outcome: 'unknown' });
}

describe('what an earlier session of the same registrant has left behind', () => {
  it.each(['DYNAMIC', 'DYNAMIC_SEQUENTIAL'] as const)(
    'is replaced: nobody finds the instance twice, or in a session that ends soon (%s)',
    async (serviceType) => {
      const { zookeeper, second, next } = await successive();
      const one = registrant(connect, { zookeeper });
      await one.discovery.register(orders({ serviceType }));
      next();
      await until(async () => (await owners()).join() === sessionIdOf(second));
      await until(() => one.discovery.state.status === 'synced');
      expect(one.events.map(({ type }) => type)).not.toContain('superseded');
    },
  );

  it('is replaced too when its making was never confirmed', async () => {
    const { zookeeper, first, second, next } = await successive();
    const one = registrant(connect, { zookeeper });
    await one.discovery.register(orders());
    const create = first.createWithParents.bind(first);
    first.createWithParents = async (...given) => {
      await create(...given);
      next();
      throw lost();
    };
    await reader.remove(`${SERVICE}/one`);
    await until(async () => (await owners()).join() === sessionIdOf(second));
    await until(() => one.discovery.state.status === 'synced');
    expect(one.events.map(({ type }) => type)).not.toContain('superseded');
  });

  it('is removed with what is unregistered', async () => {
    const { zookeeper, next } = await successive();
    const one = registrant(connect, { zookeeper });
    for (const serviceType of TYPES) await one.discovery.register(orders({ serviceType, id: serviceType }));
    next();
    await Promise.all(TYPES.map((id) => one.discovery.unregister({ name: 'orders', id })));
    expect(await names()).toEqual([]);
  });
});

describe('a server that lags behind', () => {
  /** Loses the answer of the next create, and does not show what it made before the server has been made to catch up. */
  function laggard(zookeeper: ZooKeeperClient): { asked: number } {
    const { createWithParents, read, children, multi } = zookeeper;
    let hidden: string | undefined;
    let isDone = false;
    const seen = { asked: 0 };
    zookeeper.createWithParents = async (...given) => {
      const path = await createWithParents.apply(zookeeper, given);
      if (isDone) return path;
      isDone = true;
      hidden = path;
      throw lost();
    };
    zookeeper.read = async (path, call) => {
      const znode = await read.call(zookeeper, path, call);
      return path === hidden ? undefined : znode;
    };
    zookeeper.children = async (path, call) => {
      const all = await children.call(zookeeper, path, call);
      return all?.filter((name) => `${path}/${name}` !== hidden);
    };
    zookeeper.multi = async (operations, call) => {
      hidden = undefined;
      seen.asked += 1;
      return multi.call(zookeeper, operations, call);
    };
    return seen;
  }

  it('does not lead to a second number', async () => {
    const one = registrant(connect);
    const seen = laggard(one.zookeeper);
    await one.discovery.register(orders({ serviceType: 'DYNAMIC_SEQUENTIAL' }));
    expect(seen.asked).toBeGreaterThan(0);
    expect(await names()).toHaveLength(1);
  });

  it.each(TYPES)('does not leave behind what is unregistered (%s)', async (serviceType) => {
    const one = registrant(connect);
    await one.zookeeper.whenConnected();
    laggard(one.zookeeper);
    const create = one.zookeeper.createWithParents;
    let leaving: Promise<void> | undefined;
    one.zookeeper.createWithParents = (...given) => {
      const made = create(...given);
      leaving ??= made.catch(() => undefined).then(() => undefined);
      return made;
    };
    const registering = one.discovery.register(orders({ serviceType }));
    registering.catch(() => undefined);
    await until(() => leaving !== undefined);
    await one.discovery.unregister(orders());
    await leaving;
    expect(await names()).toEqual([]);
  });
});

describe('a znode whose making was not answered', () => {
  it('is not left behind where it arrives late, after another was made in its place', async () => {
    const one = registrant(connect);
    const create = one.zookeeper.createWithParents.bind(one.zookeeper);
    let late: (() => Promise<unknown>) | undefined;
    one.zookeeper.createWithParents = async (...given) => {
      one.zookeeper.createWithParents = create;
      late = () => create(...given);
      throw lost();
    };
    await one.discovery.register(orders({ serviceType: 'DYNAMIC_SEQUENTIAL' }));
    await late?.();
    expect(await names()).toHaveLength(2);
    await one.discovery.update({ ...one.discovery.registered[0], port: 9 } as ServiceInstance);
    expect(await names()).toHaveLength(1);
    await late?.();
    await one.discovery.unregister(orders());
    expect(await names()).toEqual([]);
  });

  it.each(['DYNAMIC', 'DYNAMIC_SEQUENTIAL'] as const)(
    'is not left behind where somebody overwrote it meanwhile (%s)',
    async (serviceType) => {
      for (const ends of ['unregister', 'register'] as const) {
        const one = registrant(connect);
        const create = one.zookeeper.createWithParents.bind(one.zookeeper);
        one.zookeeper.createWithParents = async (...given) => {
          one.zookeeper.createWithParents = create;
          const path = await create(...given);
          await reader.setData(path, 'scribble');
          if (ends === 'unregister') void one.discovery.unregister(orders());
          throw lost();
        };
        await one.discovery.register(orders({ serviceType })).catch(() => undefined);
        await until(() => one.discovery.state.status === 'synced');
        expect(await names()).toHaveLength(ends === 'register' ? 1 : 0);
        await one.discovery.unregister(orders());
        expect(await names()).toEqual([]);
      }
    },
  );
});

describe('a znode whose number of transaction is not known yet', () => {
  it('is made anew where somebody was quicker to overwrite it, so that it can be told from others', async () => {
    const one = registrant(connect);
    const create = one.zookeeper.createWithParents.bind(one.zookeeper);
    one.zookeeper.createWithParents = async (...given) => {
      one.zookeeper.createWithParents = create;
      const path = await create(...given);
      await reader.setData(path, 'scribble');
      return path;
    };
    await one.discovery.register(orders());
    expect(await one.discovery.queryForInstances('orders')).toHaveLength(1);
    expect(one.discovery.state.status).not.toBe('closed');
    await one.discovery.unregister(orders());
    expect(await names()).toEqual([]);
  });

  it('is left alone where another registrant was quicker to replace it', async () => {
    const one = registrant(connect);
    const other = registrant(connect);
    const create = one.zookeeper.createWithParents.bind(one.zookeeper);
    one.zookeeper.createWithParents = async (...given) => {
      one.zookeeper.createWithParents = create;
      const path = await create(...given);
      await other.discovery.register(orders({ port: 2 }));
      return path;
    };
    await expect(one.discovery.register(orders({ port: 1 }), { timeoutMs: 500 })).rejects.toMatchObject({ fault: 'timeout' });
    expect(await other.discovery.queryForInstance('orders', 'one')).toMatchObject({ port: 2 });
    expect(other.events.map(({ type }) => type)).not.toContain('superseded');
  });
});

describe('a removal', () => {
  it('looks again where the data have been changed since the last look', async () => {
    const one = registrant(connect);
    await one.discovery.register(orders({ port: 1 }));
    const other = registrant(connect);
    await other.zookeeper.whenConnected();
    const remove = one.zookeeper.remove.bind(one.zookeeper);
    one.zookeeper.remove = async (...given) => {
      one.zookeeper.remove = remove;
      await reader.setData(`${SERVICE}/one`, 'changed meanwhile');
      return remove(...given);
    };
    await one.discovery.unregister(orders());
    expect(await names()).toEqual([]);
  });

  it.each(['before', 'after'])('of a number that was given out again to another is none of ours, %s our first look at it', async (when) => {
    const one = registrant(connect);
    await one.zookeeper.whenConnected();
    const create = one.zookeeper.createWithParents.bind(one.zookeeper);
    const name = 'one0000000000';
    // Everything is gone for a moment, parents included, and the servers count from 0 again.
    const giveOut = async () => {
      await reader.remove(SERVICE);
      await reader.createWithParents(`${SERVICE}/${name}`, 'another', 'persistent');
    };
    if (when === 'before') {
      one.zookeeper.createWithParents = async (...given) => {
        one.zookeeper.createWithParents = create;
        await reader.remove(await create(...given));
        await giveOut();
        return `${SERVICE}/${name}`;
      };
    }
    await one.discovery.register(orders({ serviceType: 'DYNAMIC_SEQUENTIAL' }));
    if (when === 'after') {
      const read = one.zookeeper.read.bind(one.zookeeper);
      one.zookeeper.read = async (...given) => {
        one.zookeeper.read = read;
        await giveOut();
        return read(...given);
      };
      await reader.remove(`${SERVICE}/${name}`);
    }
    await until(async () => (await names()).length === 2);
    await one.discovery.unregister(orders());
    expect(await names()).toEqual([name]);
  });
});

describe('whatever several registrants, their networks and strangers do', () => {
  it.each([1, 2, 3, 4])(
    'in the end there stands what is wanted, each once, and nothing else (seed %s)',
    async (seed) => {
      const random = seededRandom(seed);
      const choose = <T>(of: readonly T[]): T => of[Math.floor(random.next() * of.length)] as T;
      const lines = await Promise.all([0, 1, 2].map(() => throughProxy(connect)));
      const all = lines.map(({ through }) => registrant(through, { sessionTimeoutMs: 4_000 }));
      const ids = ['a', 'b'];
      const acts: (() => Promise<unknown> | undefined)[] = [
        ...[1, 2, 3, 4].map(
          () => () =>
            choose(all).discovery.register(
              orders({ id: choose(ids), port: 1 + Math.floor(random.next() * 1_000), serviceType: choose(TYPES) }),
            ),
        ),
        () => {
          const { discovery } = choose(all);
          const [known] = discovery.registered;
          return known && discovery.update({ ...known, port: 1 + Math.floor(random.next() * 1_000) });
        },
        () => choose(all).discovery.unregister({ name: 'orders', id: choose(ids) }),
        () => expire(choose(all)),
        async () => choose(lines).proxy.reset(),
        async () => {
          const { proxy } = choose(lines);
          proxy.stall(choose(['to-client', 'to-server', 'both'] as const));
          await sleep(100);
          proxy.heal({ deliverHeld: random.next() < 0.5 });
        },
        async () => reader.remove(`${SERVICE}/${choose(await names())}`),
        async () => {
          const path = `${SERVICE}/${choose(await names())}`;
          // A persistent one may be overwritten before its registrant has had a look at it, and be left then.
          if ((await reader.read(path))?.stat.owner !== undefined) await reader.setData(path, 'scribble');
        },
      ];
      for (let act = 0; act < 60; act += 1) {
        const done = choose(acts)()?.catch(() => undefined);
        if (random.next() < 0.3) await done;
        else await sleep(random.next() * 20);
      }
      const show = ({ id, port, serviceType }: ServiceInstance) => `${id} ${port} ${serviceType}`;
      const wrong = async (): Promise<string | undefined> => {
        const found = (await all[0]?.discovery.queryForInstances('orders')) ?? [];
        const wanted = all.flatMap(({ discovery }) => discovery.registered);
        const isNumbered = ({ serviceType }: ServiceInstance) => serviceType === 'DYNAMIC_SEQUENTIAL';
        const right = ids.every((id) => {
          const named = (of: readonly ServiceInstance[]) => of.filter((each) => each.id === id && !isNumbered(each)).map(show);
          const [theirs, ours] = [named(found), named(wanted)];
          return theirs.length === Math.min(1, ours.length) && theirs.every((each) => ours.includes(each));
        });
        const numbers = [found, wanted].map((of) => of.filter(isNumbered).map(show).sort().join());
        const standing = await names();
        if (right && numbers[0] === numbers[1] && found.length === standing.length) return undefined;
        return JSON.stringify({
          standing,
          found: found.map(show),
          wanted: wanted.map(show),
          states: all.map(({ discovery }) => discovery.state),
        });
      };
      let last: string | undefined;
      await until(async () => {
        last = await wrong();
        return last === undefined;
      }, 30_000).catch((error: unknown) => {
        throw new Error(last, { cause: error });
      });
      // And it stays so.
      for (let i = 0; i < 10; i += 1) {
        await sleep(50);
        expect(await wrong()).toBeUndefined();
      }
      await Promise.all(all.map(({ discovery }) => discovery.close()));
      expect(await names()).toEqual([]);
    },
    90_000,
  );
});
