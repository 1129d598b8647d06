import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import type { MultiOperation } from '../../../../src/zookeeper/client/zookeeper.js';
import {
  openZooKeeper,
  type ZooKeeperClient,
  type ZooKeeperOptions,
} from '../../../../src/zookeeper/client/zookeeper-client.js';
import { packageRoot } from '../../../support/package-root.js';
import { killAll, runProcess } from '../../../support/processes.js';
import { freePort } from '../../../support/servers/free-ports.js';
import { zkCli } from '../../../support/servers/zookeeper-process.js';
import { uniqueChroot } from '../../../support/zookeeper.js';

const clients: ZooKeeperClient[] = [];
let connect: string;

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('client')}`;
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await killAll();
});

function open(options: Partial<ZooKeeperOptions> = {}): ZooKeeperClient {
  const client = openZooKeeper({ connect, clock, random, ...options });
  clients.push(client);
  return client;
}

async function openWithChroot(options: Partial<ZooKeeperOptions> = {}): Promise<ZooKeeperClient> {
  const client = open(options);
  await client.ensurePath('/');
  return client;
}

describe('a client', () => {
  it('can be used at once: calls wait for the first connection', async () => {
    const client = open();
    expect(client.state).toEqual({ status: 'connecting' });
    expect(await client.read('/a')).toBeUndefined();
    expect(client.state).toEqual({
      status: 'connected',
      sessionId: expect.stringMatching(/^[0-9a-f]{16}$/),
      timeoutMs: 20_000,
      server: inject('zookeeper').connect,
    });
    expect(await client.whenConnected()).toBe(client.state);
  });

  it('makes, reads, changes and removes znodes', async () => {
    const client = await openWithChroot();
    expect(await client.create('/a', 'grün', 'persistent')).toBe('/a');
    const made = await client.read('/a');
    expect(made?.data.toString()).toBe('grün');
    expect(made?.stat).toMatchObject({ version: 0, childrenVersion: 0, owner: undefined, childCount: 0 });
    expect(Math.abs((made?.stat.createdAt ?? 0) - Date.now())).toBeLessThan(60_000);
    expect(made?.stat.modifiedZxid).toBe(made?.stat.createdZxid);

    const changed = await client.setData('/a', '', 0);
    expect(changed).toMatchObject({ version: 1, createdZxid: made?.stat.createdZxid });
    expect(changed.modifiedZxid).toBeGreaterThan(changed.createdZxid);
    expect((await client.read('/a'))?.data).toEqual(Buffer.alloc(0));
    expect((await client.setData('/a', 'x')).version).toBe(2);

    expect(await client.children('/a')).toEqual([]);
    await client.create('/a/b', '', 'persistent');
    expect(await client.children('/a')).toEqual(['b']);
    expect(await client.remove('/a/b', 0)).toBe(true);
    expect(await client.remove('/a/b')).toBe(false);
    expect(await client.remove('/a')).toBe(true);
  });

  it('reports an absent znode as a value', async () => {
    const client = await openWithChroot();
    expect(await client.read('/absent')).toBeUndefined();
    expect(await client.children('/absent')).toBeUndefined();
    expect(await client.remove('/absent/child')).toBe(false);
  });

  it('has znodes numbered by the server, and gone with the session', async () => {
    const client = await openWithChroot();
    const other = open();
    const { sessionId } = await client.whenConnected();
    expect(await client.create('/e', '', 'ephemeral')).toBe('/e');
    const first = await client.create('/n-', '', 'ephemeral-sequential');
    const second = await client.create('/n-', '', 'persistent-sequential');
    expect([first, second]).toEqual([
      expect.stringMatching(/^\/n-\d{10}$/),
      expect.stringMatching(/^\/n-\d{10}$/),
    ]);
    expect(second > first).toBe(true);
    expect((await other.read('/e'))?.stat.owner).toBe(sessionId);
    await client.close();
    expect(await other.children('/')).toEqual([second.slice(1)]);
  });

  it.each<[string, string, (client: ZooKeeperClient) => Promise<unknown>, string?]>([
    [
      'no-node',
      'its parent does not exist',
      (client) => client.create('/no/child', '', 'persistent'),
      '/no/child',
    ],
    ['no-node', 'there is no such znode', (client) => client.setData('/no', ''), '/no'],
    ['node-exists', 'the znode exists', (client) => client.create('/a', '', 'persistent'), '/a'],
    ['bad-version', 'the data has another version', (client) => client.setData('/a', '', 7), '/a'],
    ['bad-version', 'the data has another version', (client) => client.remove('/a', 7), '/a'],
    ['not-empty', 'the znode has children', (client) => client.remove('/a'), '/a'],
    [
      'no-children-for-ephemerals',
      'the parent is ephemeral',
      (client) => client.create('/e/b', '', 'persistent'),
      '/e/b',
    ],
    ['refused', 'a path begins with "/"', (client) => client.read('a'), 'a'],
    ['refused', 'a path does not end with "/"', (client) => client.create('/a/', '', 'persistent'), '/a/'],
    ['refused', '.. is no name', (client) => client.children('/a/../b'), '/a/../b'],
    ['refused', 'a character that the servers refuse', (client) => client.remove('/a\u0000'), '/a\u0000'],
    [
      'refused',
      '1000001 bytes of data',
      (client) => client.create('/big', 'x'.repeat(1_000_001), 'persistent'),
      '/big',
    ],
    ['refused', '1000001 bytes of data', (client) => client.setData('/a', 'x'.repeat(1_000_001)), '/a'],
  ])('reports the fault %s: %s', async (fault, text, act, path) => {
    const client = await openWithChroot();
    await client.createWithParents('/a/child', '', 'persistent');
    await client.create('/e', '', 'ephemeral');
    await expect(act(client)).rejects.toMatchObject({
      code: 'ZOOKEEPER_FAILED',
      fault,
      outcome: 'not-applied',
      path,
      transient: false,
      message: expect.stringContaining(text),
    });
    // Not by breaking the connection, which would be no answer at all.
    expect(client.state.status).toBe('connected');
  });

  it('takes a megabyte of data', async () => {
    const client = await openWithChroot();
    await client.create('/big', 'x'.repeat(1_000_000), 'persistent');
    expect((await client.read('/big'))?.data.length).toBe(1_000_000);
  });

  it('makes the parents that are missing, and the chroot', async () => {
    const client = open();
    expect(await client.create('/a', '', 'persistent').catch((error: { fault: string }) => error.fault)).toBe(
      'no-node',
    );
    expect(await client.createWithParents('/a/b/c', 'x', 'ephemeral')).toBe('/a/b/c');
    await client.ensurePath('/p/q');
    await client.ensurePath('/p/q');
    expect(await client.children('/p')).toEqual(['q']);
    expect((await client.read('/a/b'))?.stat.owner).toBeUndefined();
    // Another program sees the same.
    expect(
      await zkCli(inject('zookeeper').connect, ['get', `${connect.slice(connect.indexOf('/'))}/a/b/c`]),
    ).toBe('x');
  });

  it('makes parents that others remove all the time', async () => {
    const client = open();
    const other = open();
    let isDone = false;
    const removing = (async () => {
      while (!isDone) {
        for (const path of ['/p/q', '/p']) await other.remove(path).catch(() => undefined);
        await sleep(1);
      }
    })();
    try {
      for (let i = 0; i < 20; i += 1) {
        await client.createWithParents('/p/q/r', String(i), 'ephemeral');
        await client.remove('/p/q/r');
      }
    } finally {
      isDone = true;
      await removing;
    }
  });

  it('needs no right to make parents that exist', async () => {
    const { connect: server } = inject('zookeeper');
    await open({ connect: server, auth: 'digest:owner:secret' }).create(
      connect.slice(server.length),
      '',
      'persistent',
    );
    const guest = open({ auth: 'digest:guest:secret' });
    await guest.ensurePath('/');
    await expect(guest.createWithParents('/a/b', '', 'persistent')).rejects.toMatchObject({
      fault: 'no-auth',
      path: '/a/b',
    });
  });

  describe('carries out a transaction', () => {
    const three: readonly MultiOperation[] = [
      { type: 'check', path: '/a', version: 0 },
      { type: 'set', path: '/a', data: 'new', version: 0 },
      { type: 'create', path: '/b', data: 'b', mode: 'ephemeral' },
    ];

    it('as a whole', async () => {
      const client = await openWithChroot();
      await client.create('/a', 'old', 'persistent');
      await client.multi([...three, { type: 'remove', path: '/a', version: 1 }]);
      expect(await client.read('/a')).toBeUndefined();
      expect((await client.read('/b'))?.data.toString()).toBe('b');
      await client.multi([]);
    });

    it.each<[string, string, MultiOperation]>([
      ['bad-version', '/a', { type: 'check', path: '/a', version: 0 }],
      ['bad-version', '/a', { type: 'set', path: '/a', data: '', version: 0 }],
      ['bad-version', '/a', { type: 'remove', path: '/a', version: 0 }],
      ['no-node', '/c', { type: 'remove', path: '/c' }],
      ['no-node', '/c', { type: 'set', path: '/c', data: '' }],
      ['node-exists', '/a', { type: 'create', path: '/a', data: '', mode: 'persistent' }],
    ])('or not at all, with the fault of the one that is refused: %s of %s', async (fault, path, refused) => {
      const client = await openWithChroot();
      await client.create('/a', 'old', 'persistent');
      await client.setData('/a', 'newer');
      const before: MultiOperation = { type: 'create', path: '/before', data: '', mode: 'persistent' };
      const after: MultiOperation = { type: 'create', path: '/after', data: '', mode: 'persistent' };
      await expect(client.multi([before, refused, after])).rejects.toMatchObject({
        fault,
        path,
        outcome: 'not-applied',
      });
      expect(await client.children('/')).toEqual(['a']);
      expect((await client.read('/a'))?.data.toString()).toBe('newer');
    });

    it('and refuses one that is too large, instead of losing the connection over it', async () => {
      const client = await openWithChroot();
      const halves = ['/a', '/b'].map(
        (path): MultiOperation => ({ type: 'create', path, data: 'x'.repeat(600_000), mode: 'persistent' }),
      );
      await expect(client.multi(halves)).rejects.toMatchObject({ fault: 'refused', outcome: 'not-applied' });
    });
  });

  describe('with credentials', () => {
    it('makes znodes that all may read and no other may change', async () => {
      const owner = open({ auth: 'digest:owner:secret' });
      await owner.createWithParents('/a', 'mine', 'persistent');
      await owner.multi([{ type: 'create', path: '/m', data: '', mode: 'persistent' }]);
      for (const auth of [undefined, 'digest:owner:wrong', 'digest:other:secret']) {
        const other = open({ auth });
        expect((await other.read('/a'))?.data.toString()).toBe('mine');
        for (const path of ['/a', '/m']) {
          await expect(other.setData(path, 'theirs')).rejects.toMatchObject({
            fault: 'no-auth',
            outcome: 'not-applied',
            path,
            transient: false,
          });
          await expect(other.create(`${path}/b`, '', 'persistent')).rejects.toMatchObject({
            fault: 'no-auth',
          });
        }
      }
      const same = open({ auth: 'digest:owner:secret' });
      expect((await same.setData('/a', 'still mine')).version).toBe(1);
    });

    it('makes parents, and other shared znodes, in which everybody may do everything but shut out the others', async () => {
      const owner = open({ auth: 'digest:owner:secret' });
      await owner.createWithParents('/parent/mine', '', 'persistent');
      await owner.multi([{ type: 'create', path: '/shared', data: '', mode: 'shared' }]);
      for (const auth of [undefined, 'digest:owner:wrong', 'digest:other:secret']) {
        const other = open({ auth });
        for (const path of ['/', '/parent', '/shared']) {
          const child = `${path === '/' ? '' : path}/theirs`;
          await other.create(child, '', 'ephemeral');
          expect(await other.children(path)).toContain('theirs');
          expect(await other.remove(child)).toBe(true);
        }
        await other.setData('/shared', 'theirs');
      }
      await expect(zkCli(connect, ['setAcl', '/parent', 'world:anyone:r'])).rejects.toThrow(
        /Authentication is not valid|permission/,
      );
    });

    it('without them makes znodes that everybody may change', async () => {
      await (await openWithChroot()).create('/a', '', 'persistent');
      expect(await open({ auth: 'digest:other:secret' }).remove('/a')).toBe(true);
    });
  });

  describe('bounds every call', () => {
    it('that finds no connection: nothing was sent, and the error says what is wrong', async () => {
      const port = await freePort();
      const client = open({ connect: `127.0.0.1:${port}`, operationTimeoutMs: 200 });
      await expect
        .poll(() => client.state)
        .toMatchObject({ problem: `connect ECONNREFUSED 127.0.0.1:${port}` });
      await expect(client.create('/a', '', 'ephemeral')).rejects.toMatchObject({
        fault: 'timeout',
        outcome: 'not-applied',
        transient: true,
        message: `zookeeper 127.0.0.1:${port}: create /a: no connection within 200 ms (timeout)`,
        cause: expect.objectContaining({ message: `connect ECONNREFUSED 127.0.0.1:${port}` }),
      });
      await expect(client.whenConnected({ timeoutMs: 50 })).rejects.toMatchObject({ fault: 'timeout' });
      expect(client.state).toEqual({
        status: 'connecting',
        problem: `connect ECONNREFUSED 127.0.0.1:${port}`,
      });
    });

    it('to hosts that do not exist, each with its own problem', async () => {
      const port = await freePort();
      const client = open({ connect: `zk1.invalid:2181,127.0.0.1:${port}` });
      const problems: string[] = [];
      client.onState((state) => {
        if (state.status === 'connecting' && state.problem?.includes(';')) problems.push(state.problem);
      });
      // Not always the first one: a resolver may need longer than an attempt has.
      const unknown = /zk1\.invalid:2181: getaddrinfo E[A-Z_]+ zk1\.invalid/;
      const refused = `connect ECONNREFUSED 127.0.0.1:${port}`;
      await expect
        .poll(() => problems.find((problem) => unknown.test(problem) && problem.includes(refused)))
        .toBeDefined();
    });

    it('by its signal, before and after it was sent, leaving no listener behind', async () => {
      const away = open({ connect: `127.0.0.1:${await freePort()}` });
      const controller = new AbortController();
      const waiting = away.create('/a', '', 'ephemeral', { signal: controller.signal });
      controller.abort(new Error('enough'));
      await expect(waiting).rejects.toMatchObject({
        fault: 'aborted',
        outcome: 'not-applied',
        cause: expect.objectContaining({ message: 'enough' }),
      });
      await expect(away.read('/a', { signal: controller.signal })).rejects.toMatchObject({
        fault: 'aborted',
      });

      const client = await openWithChroot();
      const late = new AbortController();
      const sent = client.create('/b', '', 'ephemeral', { signal: late.signal });
      late.abort();
      await expect(sent).rejects.toMatchObject({ fault: 'aborted', outcome: 'unknown' });
      const read = new AbortController();
      const reading = client.read('/b', { signal: read.signal });
      read.abort();
      await expect(reading).rejects.toMatchObject({ fault: 'aborted', outcome: 'not-applied' });

      const warnings: Error[] = [];
      const onWarning = (warning: Error) => warnings.push(warning);
      process.on('warning', onWarning);
      const shared = new AbortController();
      await Promise.all(Array.from({ length: 500 }, () => client.read('/b', { signal: shared.signal })));
      await clock.sleep(1);
      process.off('warning', onWarning);
      expect(warnings).toEqual([]);
    });
  });

  it('does not send what was meant for another session', async () => {
    const client = await openWithChroot();
    const { sessionId } = await client.whenConnected();
    expect(await client.create('/a', '', 'ephemeral', { sessionId })).toBe('/a');
    const other = { sessionId: '00000000deadbeef' };
    await expect(client.create('/b', '', 'ephemeral', other)).rejects.toMatchObject({
      fault: 'session-expired',
      outcome: 'not-applied',
    });
    await expect(client.createWithParents('/c/d', '', 'ephemeral', other)).rejects.toMatchObject({
      fault: 'session-expired',
    });
    expect(await client.children('/')).toEqual(['a']);
    await expect(open().read('/a', { sessionId })).rejects.toMatchObject({ fault: 'session-expired' });
  });

  it.each<[string, Partial<ZooKeeperOptions>, string]>([
    ['connect', { connect: 'zk1:x' }, '"x" is no port'],
    ['auth', { auth: 'digest:me' }, 'digest:USER:PASSWORD'],
    ['sessionTimeoutMs', { sessionTimeoutMs: 10 }, '1000 to 600000'],
    ['operationTimeoutMs', { operationTimeoutMs: 0 }, '1 to 86400000'],
  ])('is refused with a wrong %s', (setting, options, text) => {
    expect(() => openZooKeeper({ connect, clock, random, ...options })).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        setting,
        message: expect.stringContaining(text) as string,
      }),
    );
  });

  it('works next to 299 others in one process', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    await openWithChroot();
    // So many at once take a busy server a while.
    const all = Array.from({ length: 299 }, () => open({ operationTimeoutMs: 60_000 }));
    await Promise.all(all.map((client, i) => client.create(`/n${i}`, '', 'ephemeral')));
    expect(new Set(all.map(({ state }) => (state.status === 'connected' ? state.sessionId : ''))).size).toBe(
      299,
    );
    expect(await clients[0]?.children('/')).toHaveLength(299);
    await Promise.all(all.map((client) => client.close()));
    await expect.poll(() => clients[0]?.children('/')).toEqual([]);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });
});

describe('close()', () => {
  it('ends what is under way and what comes later, reports it, and may be called again', async () => {
    const client = await openWithChroot();
    const states: string[] = [];
    client.onState(({ status }) => states.push(status));
    const sent = client.create('/a', '', 'ephemeral');
    const closing = client.close();
    await expect(sent).rejects.toMatchObject({ fault: 'closed', outcome: 'unknown' });
    expect(client.state).toEqual({ status: 'closed' });
    await Promise.all([closing, client.close()]);
    expect(states).toEqual(['closed']);
    await expect(client.read('/a')).rejects.toMatchObject({ fault: 'closed', outcome: 'not-applied' });
    await expect(client.whenConnected()).rejects.toMatchObject({ fault: 'closed' });
    client.watchChildren('/', () => states.push('reported')).close();
    expect(await open().children('/')).toEqual([]);
    expect(states).toEqual(['closed']);
  });

  it('ends calls that wait for a connection', async () => {
    const client = open({ connect: `127.0.0.1:${await freePort()}` });
    const waiting = client.create('/a', '', 'ephemeral');
    await client.close();
    await expect(waiting).rejects.toMatchObject({ fault: 'closed', outcome: 'not-applied' });
  });

  it('lets the process end: nothing of it stays', async () => {
    const dist = (file: string) => pathToFileURL(join(packageRoot, 'dist', file)).href;
    const program = `
      import { openZooKeeper } from '${dist('zookeeper/client/index.js')}';
      import { systemClock as clock, systemRandom as random } from '${dist('core/base/system.js')}';
      const open = (connect) => openZooKeeper({ connect, clock, random });
      const used = open('${connect}');
      await used.ensurePath('/');
      used.watchChildren('/', () => {});
      await used.create('/a', '', 'ephemeral');
      const connecting = open('${connect}');
      const away = open('127.0.0.1:${await freePort()}');
      away.watchData('/', () => {});
      const pending = away.read('/').catch(({ fault }) => fault);
      await clock.sleep(300);
      const begun = clock.monotonic();
      // A call may take 5 s: none is waited for.
      await Promise.all([used.close(), connecting.close(), away.close()]);
      console.log('closed', await pending, clock.monotonic() - begun < 4_500, JSON.stringify(process.getActiveResourcesInfo().filter((kind) => !/^(Pipe|TTY)/.test(kind))));
    `;
    const child = runProcess(process.execPath, ['--input-type=module', '-e', program]);
    const [, rest] = await child.waitForOutput(/closed (.*)\n/);
    // By itself: no timer, no socket is left that would hold it.
    expect(await child.exit).toEqual({ code: 0, signal: null });
    expect(rest).toBe('closed true []');
    expect(child.stderr()).toBe('');
  });
});
