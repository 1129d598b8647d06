import { isDeepStrictEqual } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import type { ZooKeeper } from '../../src/zookeeper/client/zookeeper.js';

/** Servers that a contract is checked on. */
export interface ContractServers {
  /** A client with a session of its own. */
  open(chroot: string): ZooKeeper;
  /** Waits, in the time of these servers. */
  sleep(ms: number): Promise<void>;
  /** Settles as `work` does; lets time pass where it is virtual. */
  settled<T>(work: Promise<T>): Promise<T>;
  /** Has the servers end a client's session. Resolves when they have. */
  expire(client: ZooKeeper): Promise<void>;
}

/**
 * What the simulated servers have to do as the real ones do, over the same client: what the recipes rest on.
 */
export function zooKeeperContract(servers: ContractServers): void {
  const clients: ZooKeeper[] = [];
  let tests = 0;
  const open = () => {
    const client = servers.open(`/contract-${tests}`);
    clients.push(client);
    return client;
  };
  const is = <T>(work: Promise<T>) => expect(servers.settled(work)).resolves;
  const fails = (work: Promise<unknown>) => expect(servers.settled(work)).rejects;
  /** A server may be behind the one that did it, and on a loaded machine take its time. */
  const becomes = async (read: () => unknown, expected: unknown) => {
    for (let tries = 0; tries < 600 && !isDeepStrictEqual(await read(), expected); tries += 1)
      await servers.settled(servers.sleep(50));
    expect(await read()).toEqual(expected);
  };
  const run = (name: string, test: (client: ZooKeeper) => Promise<void>) =>
    it(name, async () => {
      tests += 1;
      const client = open();
      await servers.settled(client.ensurePath('/a'));
      await test(client);
    });

  afterEach(async () => {
    for (const client of clients.splice(0)) await servers.settled(client.close());
  });

  describe('znodes', () => {
    run('are numbered by their parent: by all children that were ever made', async (client) => {
      await is(client.create('/a/x-', '', 'ephemeral-sequential')).toBe('/a/x-0000000000');
      await is(client.create('/a/plain', '', 'persistent')).toBe('/a/plain');
      await is(client.create('/a/y-', '', 'persistent-sequential')).toBe('/a/y-0000000002');
      await is(client.remove('/a/y-0000000002')).toBe(true);
      await is(client.create('/a/x-', '', 'ephemeral-sequential')).toBe('/a/x-0000000003');
      const parent = await servers.settled(client.read('/a'));
      expect(parent?.stat).toMatchObject({ version: 0, childrenVersion: 5, childCount: 3, owner: undefined });
    });

    run(
      'know the transactions that made and changed them, which only grow, over all sessions',
      async (client) => {
        const other = open();
        await servers.settled(client.create('/a/b', 'one', 'persistent'));
        await servers.settled(other.create('/a/c', '', 'ephemeral'));
        const changed = await servers.settled(client.setData('/a/b', 'two', 0));
        const c = await servers.settled(other.read('/a/c'));
        const b = await servers.settled(client.read('/a/b'));
        expect(b?.data.toString()).toBe('two');
        expect(b?.stat).toEqual(changed);
        expect(b?.stat).toMatchObject({ version: 1, owner: undefined });
        expect(c?.stat.createdZxid).toBeGreaterThan(b?.stat.createdZxid ?? 0n);
        expect(b?.stat.modifiedZxid).toBeGreaterThan(c?.stat.createdZxid ?? 0n);
        expect('sessionId' in other.state && other.state.sessionId).toBe(c?.stat.owner);
      },
    );

    run('refuse what does not fit', async (client) => {
      await servers.settled(client.create('/a/e', '', 'ephemeral'));
      await fails(client.create('/a/e', '', 'persistent')).toMatchObject({
        fault: 'node-exists',
        outcome: 'not-applied',
      });
      await fails(client.create('/a/e/f', '', 'persistent')).toMatchObject({
        fault: 'no-children-for-ephemerals',
      });
      await fails(client.create('/a/g/h', '', 'persistent')).toMatchObject({ fault: 'no-node' });
      await fails(client.setData('/a/e', '', 1)).toMatchObject({ fault: 'bad-version' });
      await fails(client.setData('/a/g', '')).toMatchObject({ fault: 'no-node' });
      await fails(client.remove('/a')).toMatchObject({ fault: 'not-empty' });
      await fails(client.remove('/a/e', 1)).toMatchObject({ fault: 'bad-version' });
      await is(client.remove('/a/g')).toBe(false);
      await is(client.read('/a/g')).toBeUndefined();
      await is(client.children('/a/g')).toBeUndefined();
      await is(client.children('/a/e')).toEqual([]);
    });
  });

  describe('a transaction', () => {
    run('is carried out as a whole, each operation seeing those before it', async (client) => {
      const create = { type: 'create', path: '/a/b', data: 'one', mode: 'persistent' } as const;
      await servers.settled(
        client.multi([
          create,
          { type: 'set', path: '/a/b', data: 'two', version: 0 },
          { type: 'check', path: '/a' },
        ]),
      );
      const made = await servers.settled(client.read('/a/b'));
      expect(made?.data.toString()).toBe('two');
      expect(made?.stat.createdZxid).toBe(made?.stat.modifiedZxid);
    });

    run('does nothing where one operation is refused, and names its path', async (client) => {
      const create = { type: 'create', path: '/a/b', data: '', mode: 'persistent' } as const;
      const refused = [
        [{ type: 'check', path: '/a/none' } as const, { fault: 'no-node', path: '/a/none' }],
        [{ type: 'check', path: '/a', version: 1 } as const, { fault: 'bad-version', path: '/a' }],
        [{ type: 'remove', path: '/a' } as const, { fault: 'not-empty', path: '/a' }],
        [create, { fault: 'node-exists', path: '/a/b' }],
      ] as const;
      for (const [operation, error] of refused)
        await fails(client.multi([create, operation])).toMatchObject({ ...error, outcome: 'not-applied' });
      await is(client.children('/a')).toEqual([]);
      // The number that was not used is used by the next one.
      await is(client.create('/a/x-', '', 'ephemeral-sequential')).toBe('/a/x-0000000000');
    });
  });

  describe('a session', () => {
    run('takes its ephemeral znodes along when its client is closed', async (client) => {
      const other = open();
      await servers.settled(other.create('/a/e', '', 'ephemeral'));
      await servers.settled(other.create('/a/p', '', 'persistent'));
      await servers.settled(other.close());
      await becomes(() => servers.settled(client.children('/a')), ['p']);
      await fails(other.read('/a')).toMatchObject({ fault: 'closed' });
    });

    run('takes them along when the servers end it', async (client) => {
      const other = open();
      await servers.settled(other.create('/a/e', '', 'ephemeral'));
      let reported: readonly string[] | undefined;
      client.watchChildren('/a', (names) => {
        reported = names;
      });
      await becomes(() => reported, ['e']);
      await servers.settled(servers.expire(other));
      await becomes(() => reported, []);
    });

    run('refuses what was meant for another one', async (client) => {
      const call = { sessionId: '0000000000000001' };
      await fails(client.create('/a/e', '', 'ephemeral', call)).toMatchObject({
        fault: 'session-expired',
        outcome: 'not-applied',
      });
    });
  });

  describe('a watch', () => {
    run('reports the creation, the change and the removal of a znode', async (client) => {
      const other = open();
      const reported: (string | undefined)[] = [];
      await servers.settled(client.watchData('/a/b', (znode) => reported.push(znode?.data.toString())).first);
      await servers.settled(other.create('/a/b', 'one', 'persistent'));
      await becomes(() => reported, [undefined, 'one']);
      await servers.settled(other.setData('/a/b', 'two'));
      await becomes(() => reported, [undefined, 'one', 'two']);
      await servers.settled(other.remove('/a/b'));
      await becomes(() => reported, [undefined, 'one', 'two', undefined]);
    });

    run('on children reports only changes of their set', async (client) => {
      const other = open();
      const reported: (readonly string[] | undefined)[] = [];
      await servers.settled(client.watchChildren('/a', (names) => reported.push(names)).first);
      await servers.settled(other.create('/a/b', '', 'persistent'));
      await becomes(() => reported, [[], ['b']]);
      await servers.settled(other.setData('/a/b', 'x'));
      await servers.settled(other.create('/a/b/c', '', 'persistent'));
      await servers.settled(other.remove('/a/b/c'));
      await servers.settled(other.remove('/a/b'));
      await becomes(() => reported, [[], ['b'], []]);
    });

    run('notifies its session of a change before the session gets what was read after it', async (client) => {
      const events: string[] = [];
      await servers.settled(client.create('/a/b', '', 'persistent'));
      await servers.settled(client.watchRemoval('/a/b', () => events.push('gone')).first);
      const [, read] = await servers.settled(
        Promise.all([
          client.remove('/a/b'),
          client.read('/a/b').then((znode) => events.push(`read ${znode?.stat.version}`)),
        ]),
      );
      expect(read).toBe(2);
      expect(events).toEqual(['gone', 'read undefined']);
    });
  });
}
