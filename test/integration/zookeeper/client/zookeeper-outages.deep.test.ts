import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { LibrarySession } from '../../../../src/zookeeper/client/connection/library-session.js';
import { type Lookup, NameResolver } from '../../../../src/zookeeper/client/connection/name-resolver.js';
import type { SessionState } from '../../../../src/zookeeper/client/session-state.js';
import {
  openZooKeeper,
  type ZooKeeperClient,
  type ZooKeeperOptions,
} from '../../../../src/zookeeper/client/zookeeper-client.js';
import { FaultProxy, type StallDirection } from '../../../support/network/fault-proxy.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { startZooKeeperProcess, type ZooKeeperProcess } from '../../../support/servers/zookeeper-process.js';
import { expireSession } from '../../../support/zookeeper.js';

// One server, each test its own, and what may happen to it and to the network in front of it.

const SESSION_MS = 3_000;
/** Of a session that is to last, however busy the machine is: its end is not waited for. */
const LASTING_SESSION_MS = 20_000;

interface Seen {
  readonly client: ZooKeeperClient;
  readonly states: SessionState[];
}

const clients: ZooKeeperClient[] = [];
const proxies: FaultProxy[] = [];
let server: ZooKeeperProcess;
let dataDir: string;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'nodelease-outages-'));
  server = await startZooKeeperProcess({ dataDir });
});
afterEach(async () => {
  server.resume();
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
  await server.dispose();
  await rm(dataDir, { recursive: true, force: true });
});

function open(options: Partial<ZooKeeperOptions> = {}): Seen {
  const client = openZooKeeper({
    connect: server.connect,
    sessionTimeoutMs: SESSION_MS,
    clock,
    random,
    ...options,
  });
  clients.push(client);
  const states: SessionState[] = [];
  client.onState((state) => states.push(state));
  return { client, states };
}

async function openThroughProxy(
  options: Partial<ZooKeeperOptions> = {},
): Promise<Seen & { proxy: FaultProxy }> {
  const proxy = new FaultProxy();
  proxies.push(proxy);
  const port = await proxy.start('127.0.0.1', server.port);
  return { proxy, ...open({ connect: `127.0.0.1:${port}`, ...options }) };
}

/** Has the server stand still; the signal alone would leave it the time for an answer. */
async function pause(): Promise<void> {
  await new ProcessHandle(server.pid ?? 0).pause();
}

/** The reported states, without the ones that differ only in their problem. */
function statuses(states: readonly SessionState[]): string[] {
  return states.map(({ status }) => status).filter((status, i, all) => status !== all[i - 1]);
}

/** For a state that lasts until the test goes on. */
async function status(client: ZooKeeperClient, wanted: SessionState['status']): Promise<void> {
  await expect.poll(() => client.state.status).toBe(wanted);
}

/** The next time that it is reported: some states do not last. */
function next(client: ZooKeeperClient, wanted: SessionState['status']): Promise<void> {
  return new Promise((resolve) => {
    const forget = client.onState((state) => {
      if (state.status !== wanted) return;
      forget();
      resolve();
    });
  });
}

function idOf(client: ZooKeeperClient): string | undefined {
  return 'sessionId' in client.state ? client.state.sessionId : undefined;
}

describe('a client', () => {
  it.each(['stop', 'kill'] as const)('keeps its session when the server restarts (%s)', async (end) => {
    const { client, states } = open({ sessionTimeoutMs: LASTING_SESSION_MS });
    await client.create('/e', '', 'ephemeral');
    const sessionId = idOf(client);
    await server[end]();
    const refused = { status: 'suspended', sessionId, problem: `connect ECONNREFUSED ${server.connect}` };
    await expect.poll(() => client.state).toMatchObject(refused);
    // Made while there is no server: one goes out on the return, the other fails in time.
    const late = client.create('/late', '', 'ephemeral', { timeoutMs: 60_000 });
    await expect(client.create('/never', '', 'ephemeral', { timeoutMs: 300 })).rejects.toMatchObject({
      fault: 'timeout',
      outcome: 'not-applied',
      cause: expect.objectContaining({ message: `connect ECONNREFUSED ${server.connect}` }),
    });
    expect(client.state).toMatchObject(refused);
    await server.start();
    const since = performance.now();
    expect(await late).toBe('/late');
    // Later it would have begun a new session.
    expect(performance.now() - since).toBeLessThan(LASTING_SESSION_MS);
    expect((await client.children('/'))?.filter((name) => name !== 'zookeeper').sort()).toEqual([
      'e',
      'late',
    ]);
    expect((await client.read('/e'))?.stat.owner).toBe(sessionId);
    expect(statuses(states)).toEqual(['connected', 'suspended', 'connected']);
  });

  it('begins a new session when the server comes back without its data', async () => {
    const { client } = open({ sessionTimeoutMs: 1_500 });
    for (let i = 0; i < 5; i += 1) await client.create(`/p${i}`, '', 'persistent');
    const before = idOf(client);
    await server.kill();
    await rm(join(dataDir, 'version-2'), { recursive: true });
    await server.start();
    // It is behind what the client has seen, and would refuse it for ever.
    await status(client, 'connected');
    expect(idOf(client)).not.toBe(before);
    expect(await client.children('/')).toEqual(['zookeeper']);
  });

  it('notices a server that hangs, and goes on when it does', async () => {
    const { client, states } = open();
    await client.whenConnected();
    await pause();
    const since = performance.now();
    const call = client.read('/', { timeoutMs: 10_000 });
    await expect(call).rejects.toMatchObject({ fault: 'connection-loss', outcome: 'not-applied' });
    expect(performance.now() - since).toBeLessThan(SESSION_MS);
    const problem = (text: string) =>
      expect.objectContaining({ status: 'suspended', problem: expect.stringContaining(text) });
    await expect.poll(() => states).toContainEqual(problem('no session within 500 ms'));
    expect(states.find((state) => state.status === 'suspended')).toEqual(problem('no answer for 2000 ms'));
    server.resume();
    await client.whenConnected({ timeoutMs: 30_000 });
    await client.create('/a', '', 'ephemeral');
    expect(statuses(states).slice(0, 3)).toEqual([
      'connected',
      'suspended',
      expect.stringMatching(/connected|expired/),
    ]);
  });

  it('is connected again at once after a reset, with the same session', async () => {
    const { client, states, proxy } = await openThroughProxy({ sessionTimeoutMs: LASTING_SESSION_MS });
    const begun = performance.now();
    await openThroughProxy().then((other) => other.client.whenConnected());
    const connectMs = performance.now() - begun;
    await client.create('/e', '', 'ephemeral');
    await clock.sleep(1_100);
    const sessionId = idOf(client);
    const since = performance.now();
    const suspended = next(client, 'suspended');
    proxy.reset();
    await suspended;
    await client.whenConnected();
    // On a busy machine, so many times what it takes to connect there.
    expect(performance.now() - since).toBeLessThan(Math.max(500, 5 * connectMs));
    expect(idOf(client)).toBe(sessionId);
    expect((await client.read('/e'))?.stat.owner).toBe(sessionId);
    expect(statuses(states)).toEqual(['connected', 'suspended', 'connected']);
  });

  it('keeps its session through a cut that is shorter than it', async () => {
    const { client, proxy } = await openThroughProxy({ sessionTimeoutMs: LASTING_SESSION_MS });
    await client.create('/e', '', 'ephemeral');
    const sessionId = idOf(client);
    proxy.cut();
    await status(client, 'suspended');
    await clock.sleep(SESSION_MS / 2);
    proxy.heal();
    await client.whenConnected();
    expect(idOf(client)).toBe(sessionId);
    expect((await client.read('/e'))?.stat.owner).toBe(sessionId);
  });

  it('gets a new session by itself after a cut that is longer', async () => {
    const { client, states, proxy } = await openThroughProxy();
    const other = open({ sessionTimeoutMs: LASTING_SESSION_MS }).client;
    await client.create('/e', '', 'ephemeral');
    const sessionId = idOf(client);
    proxy.cut();
    await expect.poll(() => other.read('/e')).toBeUndefined();
    // That it is over can only be learned from a server.
    expect(client.state).toMatchObject({ status: 'suspended', sessionId });
    const meant = client.create('/e', '', 'ephemeral', { sessionId, timeoutMs: 30_000 });
    const any = client.create('/f', '', 'ephemeral', { timeoutMs: 30_000 });
    proxy.heal();
    await expect(meant).rejects.toMatchObject({ fault: 'session-expired', outcome: 'not-applied' });
    expect(await any).toBe('/f');
    expect(statuses(states)).toEqual(['connected', 'suspended', 'expired', 'connecting', 'connected']);
    expect(idOf(client)).not.toBe(sessionId);
    expect((await other.read('/f'))?.stat.owner).toBe(idOf(client));
    expect(await other.read('/e')).toBeUndefined();
  });

  it('gets a new session when the old one is expired on purpose', async () => {
    const { client, states } = open();
    const first = (await client.whenConnected()).sessionId;
    await expireSession({ connect: server.connect, sessionId: first });
    await expect
      .poll(() => statuses(states))
      .toEqual(['connected', 'suspended', 'expired', 'connecting', 'connected']);
    expect(states.find((state) => state.status === 'expired')).toEqual({
      status: 'expired',
      sessionId: first,
    });
    expect(await client.create('/a', '', 'ephemeral')).toBe('/a');
  });

  it.each<StallDirection>(['to-server', 'to-client', 'both'])(
    'notices a network that swallows what goes %s, and goes on after it',
    async (direction) => {
      const { client, proxy } = await openThroughProxy();
      await client.whenConnected();
      const since = performance.now();
      const suspended = next(client, 'suspended');
      proxy.stall(direction);
      await suspended;
      expect(performance.now() - since).toBeLessThan(SESSION_MS);
      proxy.heal();
      await client.whenConnected({ timeoutMs: 30_000 });
      expect(await client.create('/a', '', 'ephemeral')).toBe('/a');
    },
  );

  it('calls the outcome of a write unknown whose answer was lost, and it may have been applied', async () => {
    // What it makes is to be there still when it comes back.
    const { client, proxy } = await openThroughProxy({ sessionTimeoutMs: 2 * SESSION_MS });
    const other = open({ sessionTimeoutMs: LASTING_SESSION_MS }).client;
    await client.whenConnected();
    proxy.stall('to-client');
    const lost = client.create('/lost', '', 'ephemeral', { timeoutMs: 20_000 });
    const late = client.create('/late', '', 'ephemeral', { timeoutMs: 200 });
    const read = client.read('/lost', { timeoutMs: 200 });
    await expect(late).rejects.toMatchObject({
      fault: 'timeout',
      outcome: 'unknown',
      message: expect.stringContaining('no answer within 200 ms'),
    });
    await expect(read).rejects.toMatchObject({ fault: 'timeout', outcome: 'not-applied' });
    await expect(lost).rejects.toMatchObject({
      fault: 'connection-loss',
      outcome: 'unknown',
      transient: true,
    });
    expect(await other.read('/lost')).toBeDefined();
    // The answer comes after all, to no waiting caller.
    proxy.heal({ deliverHeld: true });
    await client.whenConnected();
    expect(await client.remove('/lost')).toBe(true);
  });
});

describe('a session', () => {
  const sessions: LibrarySession[] = [];
  afterEach(async () => {
    await Promise.all(sessions.splice(0).map((session) => session.end(AbortSignal.timeout(1_000))));
  });

  /** Resolves once there is a session, to the address that it is connected to. */
  function connected(
    hosts: readonly string[],
    names: NameResolver,
    sessionTimeoutMs = SESSION_MS,
  ): { session: LibrarySession; at: Promise<string> } {
    let resolve: (server: string) => void = () => undefined;
    const at = new Promise<string>((settle) => {
      resolve = settle;
    });
    const ignore = () => undefined;
    const listener = {
      connected: (facts: { server: string }) => resolve(facts.server),
      suspended: ignore,
      troubled: ignore,
      ended: ignore,
    };
    const session = new LibrarySession({
      servers: hosts.map((host) => ({ host, port: server.port })),
      sessionTimeoutMs,
      auth: undefined,
      clock,
      random,
      names,
      listener: { ...listener, changed: ignore },
    });
    sessions.push(session);
    return { session, at };
  }

  it('begins under another address of the name when the first one is of no use', async () => {
    const names = new NameResolver(async () => ['::1', '127.0.0.1']);
    const since = performance.now();
    expect(await connected(['zk.test'], names, LASTING_SESSION_MS).at).toBe(server.connect);
    // An attempt that gets no answer is given up after a sixth of the session.
    expect(performance.now() - since).toBeLessThan(LASTING_SESSION_MS / 6);
  });

  it('begins at a server whose address is known while the names of the others are not resolved', async () => {
    const begun: string[] = [];
    const lookup: Lookup = (host) => {
      begun.push(host);
      return new Promise(() => undefined);
    };
    const names = new NameResolver(lookup);
    // Many, so that the known one comes last for some.
    const all = Array.from({ length: 10 }, () => connected(['zk1.test', 'zk2.test', '127.0.0.1'], names).at);
    expect(await Promise.all(all)).toEqual(all.map(() => server.connect));
    expect(begun).toHaveLength(1);
  });

  it('says which name is not resolved, and begins once it is', async () => {
    let answer: (addresses: string[]) => void = () => undefined;
    const names = new NameResolver(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    const { session, at } = connected(['zk.test'], names);
    await expect
      .poll(() => session.problem)
      .toBe(`zk.test:${server.port}: the name was not resolved within 1000 ms`);
    await expect(session.read('/', false)).rejects.toMatchObject({ fault: 'connection-loss' });
    answer(['127.0.0.1']);
    expect(await at).toBe(server.connect);
    expect((await session.read('/', false)).stat.childCount).toBeGreaterThan(0);
  });
});

/** What closing takes, and what a second takes here, on a machine that may be busy; in milliseconds. */
async function closing(client: ZooKeeperClient): Promise<{ tookMs: number; secondMs: number }> {
  const since = performance.now();
  const ms = () => performance.now() - since;
  const [secondMs, tookMs] = await Promise.all([clock.sleep(1_000).then(ms), client.close().then(ms)]);
  return { tookMs, secondMs };
}

describe('close()', () => {
  it('ends the session also when the connection is lost at that moment', async () => {
    const { client, proxy } = await openThroughProxy({ sessionTimeoutMs: 20_000 });
    const other = open().client;
    await client.create('/e', '', 'ephemeral');
    const suspended = next(client, 'suspended');
    proxy.reset();
    await suspended;
    await client.close();
    expect(await other.read('/e')).toBeUndefined();
  });

  it.each<[string, (proxy: FaultProxy) => void]>([
    ['stuck', (proxy) => proxy.stall('both')],
    ['gone', (proxy) => proxy.cut()],
  ])('takes no longer than a second when the network is %s', async (_, fault) => {
    const { client, proxy } = await openThroughProxy();
    await client.create('/e', '', 'ephemeral');
    fault(proxy);
    const { tookMs, secondMs } = await closing(client);
    expect(tookMs).toBeLessThan(secondMs + 300);
    // Nothing of it comes back later.
    proxy.heal();
    await clock.sleep(1_200);
    expect(proxy.connections).toBe(0);
  });

  it('takes no longer than a second when the server hangs', async () => {
    const { client } = open();
    await client.whenConnected();
    await pause();
    const { tookMs, secondMs } = await closing(client);
    expect(tookMs).toBeLessThan(secondMs + 300);
  });
});
