import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { SessionState } from '../../../../src/zookeeper/client/session-state.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { ZooKeeperError } from '../../../../src/zookeeper/client/zookeeper-error.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client } from '../discovery/discovery-support.js';
import {
  closeRegistrants,
  orders,
  type Registrant,
  registrant,
  renewSession,
  sessionIdOf,
  until,
} from './services-support.js';

// What keeps registrations right in moments that are rare: each of these tests fails when its safeguard is
// taken out.

const SERVICE = '/services/orders';
const TYPES = ['DYNAMIC', 'DYNAMIC_SEQUENTIAL', 'STATIC'] as const;

let connect: string;
let reader: ZooKeeperClient;

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  reader = client(connect);
});
afterEach(closeRegistrants);

/**
 * Two clients that pass for one whose session is followed by another while the servers have not ended the
 * first.
 */
async function successive(): Promise<{
  zookeeper: ZooKeeperClient;
  first: ZooKeeperClient;
  second: ZooKeeperClient;
  next(): void;
}> {
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
  return Promise.all(
    (await names()).map(async (name) => (await reader.read(`${SERVICE}/${name}`))?.stat.owner),
  );
}

/** Has something happen once the next znode has been made, and before its maker is answered. */
function afterNextCreate({ zookeeper }: Registrant, act: (path: string) => Promise<void>): void {
  const create = zookeeper.createWithParents.bind(zookeeper);
  zookeeper.createWithParents = async (...given) => {
    zookeeper.createWithParents = create;
    const path = await create(...given);
    await act(path);
    return path;
  };
}

function lost(): ZooKeeperError {
  return new ZooKeeperError('lost', 'connection-loss', 'unknown');
}

describe('what an earlier session of the same registrant has left behind', () => {
  it.each(['DYNAMIC', 'DYNAMIC_SEQUENTIAL'] as const)(
    'is replaced: no reader finds the instance twice, or in a session that ends soon (%s)',
    async (serviceType) => {
      const { zookeeper, second, next } = await successive();
      const one = registrant(connect, { zookeeper });
      await one.discovery.register(orders({ serviceType }));
      next();
      await until(async () => (await owners()).join() === sessionIdOf(second));
      await expect.poll(() => one.discovery.state.status).toBe('synced');
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
    await expect.poll(() => one.discovery.state.status).toBe('synced');
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
  /**
   * Loses the answer of the next create, and does not show what it made before the server has been made to
   * catch up.
   */
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

describe('a new session with a server that lags behind', () => {
  it("does not lead to a persistent instance that is taken for another registrant's", async () => {
    const other = registrant(connect);
    await other.discovery.register(orders({ port: 1 }));
    const before = await reader.read(`${SERVICE}/one`);
    const { zookeeper, second, next } = await successive();
    const one = registrant(connect, { zookeeper });
    await one.discovery.register(orders({ port: 2, serviceType: 'STATIC' }));
    const { read, multi } = second;
    let lags = true;
    second.read = (...given) => (lags ? Promise.resolve(before) : read.apply(second, given));
    second.multi = (...given) => {
      lags = false;
      return multi.apply(second, given);
    };
    next();
    await until(() => !lags && one.discovery.state.status === 'synced');
    expect(one.events.map(({ type }) => type)).not.toContain('superseded');
    await other.discovery.unregister(orders());
    await one.discovery.unregister(orders());
    expect(await names()).toEqual([]);
  });
});

describe('a registration with another type', () => {
  const wishes = [
    ['STATIC', 'DYNAMIC'],
    ['DYNAMIC', 'STATIC'],
    ['STATIC', 'DYNAMIC_SEQUENTIAL'],
    ['DYNAMIC_SEQUENTIAL', 'STATIC'],
  ] as const;

  it.each(
    wishes.flatMap(([from, to]) => [
      [from, to, 'nothing'] as const,
      [from, to, "another registrant's"] as const,
    ]),
  )(
    'leaves nothing behind of what is being made for the former (%s, then %s, in place of %s)',
    async (from, to, place) => {
      if (place !== 'nothing') await registrant(connect).discovery.register(orders({ port: 1 }));
      const one = registrant(connect);
      await one.zookeeper.whenConnected();
      const { createWithParents, multi } = one.zookeeper;
      let again: Promise<void> | undefined;
      const made = async <T>(making: Promise<T>): Promise<T> => {
        const result = await making;
        again ??= one.discovery.register(orders({ port: 3, serviceType: to }));
        return result;
      };
      one.zookeeper.createWithParents = (...given) => made(createWithParents.apply(one.zookeeper, given));
      one.zookeeper.multi = (...given) => made(multi.apply(one.zookeeper, given));
      one.discovery.register(orders({ port: 2, serviceType: from })).catch(() => undefined);
      await until(() => again !== undefined);
      await again;
      const mine = (await one.discovery.queryForInstances('orders')).filter(({ port }) => port !== 1);
      expect(mine).toMatchObject([{ port: 3, serviceType: to }]);
      expect(one.events.map(({ type }) => type)).not.toContain('superseded');
      await one.discovery.unregister(orders());
      expect((await one.discovery.queryForInstances('orders')).filter(({ port }) => port !== 1)).toEqual([]);
    },
  );
});

describe('the last one to register an id', () => {
  it.each(['setData', 'remove'] as const)(
    'is not hit by what another one writes who looked before (%s)',
    async (write) => {
      const [one, other] = [registrant(connect), registrant(connect)];
      const first = orders({ port: 1, serviceType: 'STATIC' });
      await one.discovery.register(first);
      const take = async () => {
        Object.assign(one.zookeeper, { setData, remove });
        await other.discovery.register(orders({ port: 2, serviceType: 'STATIC' }));
      };
      const setData = one.zookeeper.setData.bind(one.zookeeper);
      const remove = one.zookeeper.remove.bind(one.zookeeper);
      one.zookeeper.setData = (...given) => take().then(() => setData(...given));
      one.zookeeper.remove = (...given) => take().then(() => remove(...given));
      if (write === 'remove') await one.discovery.unregister(first);
      else
        await expect(one.discovery.update({ ...first, port: 3 }, { timeoutMs: 500 })).rejects.toMatchObject({
          fault: 'timeout',
        });
      expect(await other.discovery.queryForInstances('orders')).toMatchObject([{ port: 2 }]);
      expect(other.events.map(({ type }) => type)).not.toContain('restored');
    },
  );

  it('has it, also where an earlier wish of his was being written until then', async () => {
    const [one, other] = [registrant(connect), registrant(connect)];
    let last: Promise<void> | undefined;
    afterNextCreate(one, async () => {
      await other.discovery.register(orders({ port: 2 }));
      last = one.discovery.register(orders({ port: 3 }));
    });
    await Promise.all([one.discovery.register(orders({ port: 1 })), until(() => last !== undefined)]);
    await last;
    expect(await one.discovery.queryForInstances('orders')).toMatchObject([{ port: 3 }]);
    await until(() => other.events.some(({ type }) => type === 'superseded'));
    expect(one.events.map(({ type }) => type)).not.toContain('superseded');
  });
});

describe('a registrant of another kind, which takes a place by removing and creating', () => {
  const PATH = `${SERVICE}/one`;

  it.each(['DYNAMIC', 'STATIC'] as const)(
    'has it, and ours comes back when it leaves (%s)',
    async (serviceType) => {
      const clock = new VirtualClock();
      const one = registrant(connect, { clock });
      const superseded = () => one.events.filter(({ type }) => type === 'superseded').length;
      await one.discovery.register(orders({ serviceType }));
      // The second time what it removes is its own, after a change of its session.
      for (const times of [1, 2]) {
        await reader.remove(PATH);
        await until(() => clock.sleepers > 0);
        await clock.advance(99);
        await reader.create(PATH, `theirs, ${times}`, 'ephemeral');
        await until(() => superseded() === times);
      }
      expect(one.events.map(({ type }) => type)).not.toContain('restored');
      await reader.remove(PATH);
      await until(() => clock.sleepers > 0);
      await clock.advance(300);
      await expect.poll(() => one.discovery.state.status).toBe('synced');
      expect((await reader.read(PATH))?.stat.owner).toBe(
        serviceType === 'STATIC' ? undefined : sessionIdOf(one.zookeeper),
      );
    },
  );

  it('has it, too, where it was quicker than our first look at what we had made', async () => {
    const clock = new VirtualClock();
    const one = registrant(connect, { clock });
    afterNextCreate(one, async () => {
      await reader.remove(PATH);
    });
    await one.discovery.register(orders());
    await until(() => clock.sleepers > 0);
    await reader.create(PATH, 'theirs', 'ephemeral');
    await until(() => one.events.some(({ type }) => type === 'superseded'));
  });

  it('is not waited for by who registers again, nor in a new session', async () => {
    const one = registrant(connect, { clock: new VirtualClock() });
    await one.discovery.register(orders());
    const vacate = async () => {
      await reader.remove(PATH);
      await until(() => one.discovery.state.status === 'degraded');
    };
    await vacate();
    await one.discovery.register(orders({ port: 2 }));
    expect((await reader.read(PATH))?.data.toString()).toContain('"port":2');
    await vacate();
    await renewSession(one);
    await expect.poll(() => one.discovery.state.status).toBe('synced');
    expect((await reader.read(PATH))?.stat.owner).toBe(sessionIdOf(one.zookeeper));
  });

  it('is no longer waited for where ours is unregistered meanwhile: nothing is made again', async () => {
    const clock = new VirtualClock();
    const one = registrant(connect, { clock });
    await one.discovery.register(orders());
    await reader.remove(PATH);
    await until(() => clock.sleepers > 0);
    await one.discovery.unregister(orders());
    expect(clock.sleepers).toBe(0);
    expect(await names()).toEqual([]);
  });
});

describe('an instance that is unregistered before its turn comes, and registered again', () => {
  it('exists', async () => {
    const one = registrant(connect);
    await one.zookeeper.whenConnected();
    const create = one.zookeeper.createWithParents.bind(one.zookeeper);
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    let waiting = 0;
    one.zookeeper.createWithParents = async (...given) => {
      waiting += 1;
      await gate;
      return create(...given);
    };
    const ids = Array.from({ length: 65 }, (_, i) => `n${i}`);
    const all = ids.map((id) => one.discovery.register(orders({ id })));
    await until(() => waiting === 64);
    const late = orders({ id: 'n64' });
    all.pop()?.catch(() => undefined);
    await one.discovery.unregister(late);
    all.push(one.discovery.register(late));
    open();
    await Promise.all(all);
    expect(await names()).toHaveLength(65);
  });
});

describe('a znode whose making was not answered', () => {
  it('is ours where the wish changed, and the next answer was lost too', async () => {
    const one = registrant(connect);
    const instance = orders({ port: 1, serviceType: 'STATIC' });
    await one.discovery.register(instance);
    const { createWithParents, read, multi } = one.zookeeper;
    let hidden = false;
    let asked = 0;
    // The server shows what it made only after it has caught up, or has refused to make it again.
    one.zookeeper.createWithParents = async (...given) => {
      asked += 1;
      hidden = asked === 1;
      await createWithParents.apply(one.zookeeper, given).catch(() => undefined);
      if (asked === 1) void one.discovery.update({ ...instance, port: 2 });
      if (asked > 2) return given[0];
      throw lost();
    };
    one.zookeeper.read = async (...given) => {
      const znode = await read.apply(one.zookeeper, given);
      return hidden ? undefined : znode;
    };
    one.zookeeper.multi = (...given) => {
      hidden = false;
      return multi.apply(one.zookeeper, given);
    };
    await reader.remove(`${SERVICE}/one`);
    await until(() => asked > 0);
    await until(async () => (await one.discovery.queryForInstance('orders', 'one'))?.port === 2);
    await expect.poll(() => one.discovery.state.status).toBe('synced');
    expect(one.events.map(({ type }) => type)).not.toContain('superseded');
  });

  it('is put right where another client overwrote it meanwhile, also when it was made for the second time', async () => {
    const one = registrant(connect);
    await one.discovery.register(orders());
    let isMade = false;
    afterNextCreate(one, async (path) => {
      await reader.setData(path, 'scribble');
      isMade = true;
      throw lost();
    });
    await reader.remove(`${SERVICE}/one`);
    await until(() => isMade);
    await until(async () => (await one.discovery.queryForInstances('orders')).length === 1);
    expect(one.events.map(({ type }) => type)).not.toContain('superseded');
  });

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
        afterNextCreate(one, async (path) => {
          await reader.setData(path, 'scribble');
          if (ends === 'unregister') void one.discovery.unregister(orders());
          throw lost();
        });
        await one.discovery.register(orders({ serviceType })).catch(() => undefined);
        await expect.poll(() => one.discovery.state.status).toBe('synced');
        expect(await names()).toHaveLength(ends === 'register' ? 1 : 0);
        await one.discovery.unregister(orders());
        expect(await names()).toEqual([]);
      }
    },
  );
});

describe('a znode whose number of transaction is not known yet', () => {
  it('is made again where another client overwrote it first, so that it can be distinguished from others', async () => {
    const one = registrant(connect);
    afterNextCreate(one, async (path) => {
      await reader.setData(path, 'scribble');
    });
    await one.discovery.register(orders());
    await until(async () => (await one.discovery.queryForInstances('orders')).length === 1);
    expect(one.discovery.state.status).not.toBe('closed');
    await one.discovery.unregister(orders());
    expect(await names()).toEqual([]);
  });

  it('is left alone where another registrant was quicker to replace it', async () => {
    const one = registrant(connect);
    const other = registrant(connect);
    afterNextCreate(one, async () => {
      await other.discovery.register(orders({ port: 2 }));
    });
    await one.discovery.register(orders({ port: 1 }));
    await until(() => one.events.some(({ type }) => type === 'superseded'));
    expect(one.discovery.state.status).toBe('degraded');
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

  it.each(['before', 'after'])(
    'of a number that was given out again to another is not one of ours, %s our first look at it',
    async (when) => {
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
        // Two answers come after the comparison with other instances has listed them, and asked for each.
        for (const _ of ['children', 'instances']) await one.zookeeper.children(SERVICE);
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
    },
  );
});
