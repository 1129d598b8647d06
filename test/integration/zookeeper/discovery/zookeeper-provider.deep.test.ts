import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import type { Lease, LeaseEvent } from '../../../../src/core/lease/model/lease.js';
import { BoundSession } from '../../../../src/zookeeper/client/bound-session.js';
import { DEFAULT_SESSION_TIMEOUT_MS, type ZooKeeperClient } from '../../../../src/zookeeper/client/index.js';
import { decodeAssignment } from '../../../../src/zookeeper/discovery/layout.js';
import { FaultProxy } from '../../../support/network/fault-proxy.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { runProcess } from '../../../support/processes.js';
import { pathOf, tendGroups } from '../../../support/scripted-zookeeper.js';
import { freePorts } from '../../../support/servers/free-ports.js';
import { startEnsemble } from '../../../support/servers/zookeeper-ensemble.js';
import { startZooKeeperProcess } from '../../../support/servers/zookeeper-process.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';
import { acquire, atEnd, clients, endAll, openSession } from './allocation-support.js';

// Node ids from ZooKeeper alone, on real servers.

/** Of a session that is to last, however busy the machine is. */
const SESSION_MS = 12_000;
/** Of one whose end is waited for. */
const SHORT_SESSION_MS = 3_000;

afterEach(endAll);

const open = (chroot: string, connect?: string, sessionTimeoutMs = SESSION_MS) =>
  openSession(chroot, sessionTimeoutMs, connect);

/**
 * The first client made by `make` that is connected to this server; the order in which each tries them is
 * drawn at random.
 */
async function connectedTo(server: string, make: () => ZooKeeperClient): Promise<ZooKeeperClient> {
  for (let attempt = 1; attempt <= 50; attempt += 1) {
    const client = make();
    if ((await client.whenConnected()).server === server) return client;
    await client.close();
  }
  throw new Error(`none of 50 clients connected to ${server}`);
}

/** Takes cluster node ids for others, by znodes of this client. */
async function occupy(client: ZooKeeperClient, from: number, to: number): Promise<void> {
  const ids = Array.from({ length: to - from + 1 }, (_, i) => from + i);
  await client.ensurePath('/discovery/nodes/00');
  await Promise.all(
    ids.map((id) => client.createWithParents(pathOf(id), '{"taskId":"other","idWidth":16}', 'ephemeral')),
  );
}

const groupsOf = async (client: ZooKeeperClient) => (await client.children('/discovery/nodes'))?.toSorted();
const lossOf = (lease: Lease) =>
  new Promise<{ reason: string; deadline: number; at: number }>((resolve) => {
    const report = () => resolve({ ...lease.signal.reason, at: systemClock.monotonic() });
    if (lease.signal.aborted) report();
    else lease.signal.addEventListener('abort', report, { once: true });
  });

describe('the ids', () => {
  it('are given in ascending order from cluster node id 8 on, and the tree says which tasks hold them', async () => {
    const chroot = uniqueChroot('ids');
    const events: LeaseEvent[] = [];
    const onEvent = (event: LeaseEvent) => events.push(event);
    const held = [];
    for (const taskId of ['a', 'b', 'c'])
      held.push(await acquire(open(chroot), { taskId, onEvent, data: { address: '10.0.0.1' } }));
    expect(held.map(({ id }) => id)).toEqual([0, 1, 2]);
    const reader = open(chroot);
    expect((await reader.children('/discovery/nodes/00'))?.toSorted()).toEqual(['08', '09', '0A']);
    const [first, second, third] = held as [Lease, Lease, Lease];
    expect(decodeAssignment((await reader.read('/discovery/nodes/00/0A'))?.data as Buffer)).toMatchObject({
      taskId: 'c',
      nodeId: 2,
      version: third.version,
      idWidth: 8,
      address: '10.0.0.1',
    });
    expect(first.version < second.version && second.version < third.version).toBe(true);
    const acquired = events.filter((event) => event.type === 'acquired');
    // The groups, the first group's ids, the claim, a read of it; the first one also makes the group.
    expect(acquired.map(({ from, requests }) => [from, requests])).toEqual([
      ['vacant', 4],
      ['vacant', 4],
      ['vacant', 4],
    ]);
    expect(await reader.children('/discovery')).toEqual(['nodes']);
  });

  it('fill the first gap, with a higher version than the last holder’s, and never take the reserved ones', async () => {
    const chroot = uniqueChroot('gaps');
    const [, middle] = [
      await acquire(open(chroot)),
      await acquire(open(chroot)),
      await acquire(open(chroot)),
    ];
    await middle?.release();
    const next = await acquire(open(chroot));
    expect(next.id).toBe(1);
    expect(next.version).toBeGreaterThan(middle?.version as number);
    expect((await acquire(open(chroot))).id).toBe(3);
    expect((await clients[0]?.children('/discovery/nodes/00'))?.toSorted()).toEqual(['08', '09', '0A', '0B']);
  });

  it('are lost like any other when they are taken away between their claim and their announcement', async () => {
    const chroot = uniqueChroot('evicted');
    const operator = open(chroot);
    const client = open(chroot);
    const setData = client.setData.bind(client);
    // Just before the claimer writes its version, somebody marks the znode as evicted.
    client.setData = async (path, data, version, options) => {
      client.setData = setData;
      await operator.setData(path, '{"taskId":"task","nodeId":0,"evictedAt":1}');
      return setData(path, data, version, options);
    };
    const lease = await acquire(client);
    expect(await lossOf(lease)).toMatchObject({ reason: 'taken' });
    expect((await acquire(open(chroot))).id).toBe(1);
  });

  it('go on in group 01 when group 00 is full, and the holders that are there learn that ids are 9 bits wide', async () => {
    const chroot = uniqueChroot('full');
    const early = await acquire(open(chroot));
    const other = open(chroot);
    await occupy(other, 9, 255);
    const lease = await acquire(open(chroot));
    expect([early.id, lease.id]).toEqual([0, 248]);
    const width = async (id: number) =>
      decodeAssignment((await other.read(pathOf(id)))?.data as Buffer)?.idWidth;
    expect(await width(256)).toBe(9);
    await expect.poll(() => width(8)).toBe(9);
  });

  it('have their next group made ahead of need when 200 ids are taken, and removed again when fewer than 152 are', async () => {
    const chroot = uniqueChroot('groups');
    const other = open(chroot);
    await occupy(other, 8, 0x9e);
    const another = open(chroot);
    await occupy(another, 0x9f, 0xcd);
    const before = await acquire(open(chroot));
    expect([before.id + 8, await groupsOf(other)]).toEqual([0xce, ['00']]);
    const reaches = await acquire(open(chroot));
    expect(reaches.id + 8).toBe(0xcf);
    await expect.poll(() => groupsOf(other)).toEqual(['00', '01']);
    // Neither while 152 are taken, nor while the last group has a member. Holders look about once a minute.
    const { sessionId } = await other.whenConnected();
    const tend = () => tendGroups(new BoundSession(other, sessionId), 256);
    await tend();
    expect(await groupsOf(other)).toEqual(['00', '01']);
    await reaches.release();
    await before.release();
    await tend();
    expect(await groupsOf(other)).toEqual(['00', '01']);
    await another.close();
    await occupy(other, 0x100, 0x100);
    await tend();
    expect(await groupsOf(other)).toEqual(['00', '01']);
    await other.remove(pathOf(0x100));
    await tend();
    expect(await groupsOf(other)).toEqual(['00']);
  });
});

describe('when no id is free', () => {
  /**
   * All of one group but the first id. Their sessions outlast what holds this process up, as the end of
   * another one's session does.
   */
  async function crowded(name: string) {
    const chroot = uniqueChroot(name);
    await occupy(open(chroot, undefined, 30_000), 9, 255);
    return { chroot, holder: open(chroot, undefined, 30_000) };
  }

  it('a starter waits, gets the one that is released at once, and fails in time where none is', async () => {
    const { chroot, holder } = await crowded('waiting');
    const held = await acquire(holder, { maxGroups: 1 });
    const begun = systemClock.monotonic();
    await expect(acquire(open(chroot), { maxGroups: 1, acquireTimeoutMs: 500 })).rejects.toMatchObject({
      code: 'ACQUIRE_TIMEOUT',
    });
    expect(systemClock.monotonic() - begun).toBeGreaterThanOrEqual(500);
    await expect(acquire(open(chroot), { maxGroups: 1, acquireTimeoutMs: 0 })).rejects.toMatchObject({
      code: 'ACQUIRE_TIMEOUT',
    });
    const events: LeaseEvent[] = [];
    const pending = acquire(open(chroot), { maxGroups: 1, onEvent: (event) => events.push(event) });
    await expect.poll(() => events.map(({ type }) => type)).toContain('waiting');
    await held.release();
    const releasedAt = systemClock.monotonic();
    const next = await pending;
    // By a notification, and not by looking again.
    expect(systemClock.monotonic() - releasedAt).toBeLessThan(SESSION_MS / 6);
    expect([next.id, next.version > held.version]).toEqual([0, true]);
  });

  it('a starter that is asked to give up does, and one that is asked later is not disturbed', async () => {
    const { chroot, holder } = await crowded('abort');
    const giveUp = new AbortController();
    const held = await acquire(holder, { maxGroups: 1, signal: giveUp.signal });
    const events: LeaseEvent[] = [];
    const pending = acquire(open(chroot), {
      maxGroups: 1,
      signal: giveUp.signal,
      onEvent: (event) => events.push(event),
    });
    await expect.poll(() => events.map(({ type }) => type)).toContain('waiting');
    giveUp.abort(new Error('enough'));
    await expect(pending).rejects.toThrow('enough');
    expect(held.isValid()).toBe(true);
  });

  it('a starter whose session expires meanwhile goes on waiting in the next one', async () => {
    const { chroot, holder } = await crowded('next-session');
    const held = await acquire(holder, { maxGroups: 1 });
    const starter = open(chroot);
    const events: LeaseEvent[] = [];
    const pending = acquire(starter, { maxGroups: 1, onEvent: (event) => events.push(event) });
    const happened = () => events.map(({ type }) => type);
    await expect.poll(happened).toContain('waiting');
    const { sessionId } = await starter.whenConnected();
    await expireSession({ connect: inject('zookeeper').connect, sessionId });
    await expect.poll(() => happened().join()).toMatch(/store-failed,.*waiting/);
    await held.release();
    expect((await pending).id).toBe(0);
  });

  it('ten waiting starters get ten ids that become free at once, the lowest ten', async () => {
    const { chroot, holder } = await crowded('ten');
    await acquire(holder, { maxGroups: 1 });
    const events: LeaseEvent[] = [];
    const [others] = clients as [ZooKeeperClient];
    const pending = Array.from({ length: 10 }, () =>
      acquire(open(chroot), { maxGroups: 1, onEvent: (event) => events.push(event) }),
    );
    await expect.poll(() => events.filter(({ type }) => type === 'waiting').length).toBe(10);
    await Promise.all(Array.from({ length: 10 }, (_, i) => others.remove(pathOf(20 + i))));
    const ids = (await Promise.all(pending)).map(({ id }) => id + 8).sort((a, b) => a - b);
    expect(ids).toEqual(Array.from({ length: 10 }, (_, i) => 20 + i));
  });
});

describe('a held id is lost', () => {
  it('at once when its session expires, and the next holder has a higher version', async () => {
    const chroot = uniqueChroot('expired');
    const client = open(chroot);
    const lease = await acquire(client);
    const { state } = client;
    const loss = lossOf(lease);
    await expireSession({
      connect: inject('zookeeper').connect,
      sessionId: state.status === 'connected' ? state.sessionId : '',
    });
    expect(await loss).toMatchObject({ reason: 'taken' });
    expect(lease.isValid()).toBe(false);
    const next = await acquire(open(chroot));
    expect([next.id, next.version > lease.version]).toEqual([0, true]);
    await lease.release();
    expect(await client.children('/discovery/nodes/00')).toEqual(['08']);
  });

  it('at once when another client deletes its znode, and also when that client creates another one there', async () => {
    const chroot = uniqueChroot('deleted');
    const operator = open(chroot);
    for (const replaced of [false, true]) {
      const lease = await acquire(open(chroot));
      const loss = lossOf(lease);
      const begun = systemClock.monotonic();
      const remove = { type: 'remove', path: pathOf(8) } as const;
      await operator.multi(
        replaced ? [remove, { type: 'create', path: pathOf(8), data: '{}', mode: 'ephemeral' }] : [remove],
      );
      const { reason, at } = await loss;
      // By a notification, and not by the next heartbeats.
      expect([reason, at - begun < SESSION_MS / 6]).toEqual(['taken', true]);
      await lease.release();
      expect(await operator.children('/discovery/nodes/00')).toEqual(replaced ? ['08'] : []);
    }
  });

  it('before its deadline when the network is cut, and no other gets it before that', async () => {
    const chroot = uniqueChroot('cut');
    await occupy(open(chroot), 9, 255);
    for (const fault of ['cut', 'stall'] as const) {
      const proxy = new FaultProxy();
      const [host, port] = inject('zookeeper').connect.split(':') as [string, string];
      const proxied = `127.0.0.1:${await proxy.start(host, Number(port))}`;
      atEnd(() => proxy.stop());
      const events: LeaseEvent[] = [];
      const lease = await acquire(open(chroot, proxied, SHORT_SESSION_MS), {
        maxGroups: 1,
        onEvent: (event) => events.push(event),
      });
      const renewed = () => events.filter((event) => event.type === 'renewed');
      await expect.poll(() => renewed().length).toBeGreaterThan(3);
      const pending = acquire(open(chroot), { maxGroups: 1 });
      if (fault === 'cut') proxy.cut();
      else proxy.stall('both');
      const late = monitorEventLoopDelay({ resolution: 10 });
      late.enable();
      const loss = await lossOf(lease);
      late.disable();
      const { deadline } = renewed().at(-1) as { deadline: number };
      expect(loss).toMatchObject({ reason: 'unreachable', deadline });
      expect(deadline - loss.at).toBeGreaterThan(0);
      // Half of the time to end the work is left, but for what this process was held up.
      expect(deadline - loss.at + late.max / 1e6).toBeGreaterThan(SHORT_SESSION_MS / 24);
      expect(deadline - loss.at).toBeLessThan(SHORT_SESSION_MS / 6);
      const next = await pending;
      expect(next.id).toBe(0);
      expect(systemClock.monotonic()).toBeGreaterThan(deadline);
      await next.release();
    }
  });

  it('by a process that was stopped for longer than its session: isValid() says so at the first call after it goes on', async () => {
    const chroot = uniqueChroot('stopped');
    await occupy(open(chroot), 9, 255);
    const program = 'test/fixtures/programs/zookeeper-holder.mjs';
    const holder = runProcess(process.execPath, [
      program,
      `${inject('zookeeper').connect}${chroot}`,
      String(SHORT_SESSION_MS),
    ]);
    await holder.waitForOutput(/ valid id 0 /);
    const handle = new ProcessHandle(holder.pid);
    await handle.pause();
    const stoppedAt = systemClock.monotonic();
    const next = await acquire(open(chroot), { maxGroups: 1 });
    expect(next.id).toBe(0);
    const continuedAt = systemClock.monotonic();
    handle.signal('SIGCONT');
    await holder.waitForOutput(/( invalid id 0 .*\n.*){3}/s);
    await holder.waitForOutput(/ lost (paused|taken)\n/);
    const asked = [...holder.stdout().matchAll(/^([\d.]+) (valid|invalid) /gm)].map(([, at, answer]) => ({
      at: Number(at),
      answer,
    }));
    expect(asked.filter(({ at }) => at > stoppedAt + 50 && at < continuedAt)).toEqual([]);
    expect(asked.filter(({ at, answer }) => at > continuedAt && answer === 'valid')).toEqual([]);
    expect(next.isValid()).toBe(true);
  });
});

describe('on an ensemble of three', () => {
  it('an id is kept when the leader is killed, and lost in time on a follower whose ensemble hangs though it still answers reads', async () => {
    const ensemble = await startEnsemble(3);
    atEnd(() => ensemble.stop());
    const chroot = uniqueChroot('ensemble');
    const sessionMs = 15_000;
    const lease = await acquire(open(chroot, ensemble.connect, sessionMs));
    const leader = await ensemble.leader();
    await leader.kill();
    const killedAt = systemClock.monotonic();
    await expect.poll(() => lease.deadline).toBeGreaterThan(killedAt + sessionMs / 2);
    expect(lease.isValid()).toBe(true);
    await leader.start();

    const second = await ensemble.leader();
    const [follower] = ensemble.servers.filter(({ port }) => port !== second.port) as [typeof second];
    const client = open(chroot, follower.connect, sessionMs);
    const held = await acquire(client);
    const others = ensemble.servers.filter(({ port }) => port !== follower.port);
    atEnd(async () => {
      for (const other of others) other.resume();
    });
    await Promise.all(others.map((other) => new ProcessHandle(other.pid ?? 0).pause()));
    const pausedAt = systemClock.monotonic();
    expect(await client.read(pathOf(held.id + 8))).toBeDefined();
    const loss = await lossOf(held);
    expect(loss.reason).toBe('unreachable');
    expect(loss.at).toBeLessThan(loss.deadline);
    expect(loss.deadline).toBeLessThan(pausedAt + sessionMs / 2 + 100);
  });

  it('an id is kept when the server hangs that its session is connected to, with the defaults of a session', async () => {
    const ensemble = await startEnsemble(3);
    atEnd(() => ensemble.stop());
    const chroot = uniqueChroot('standing-still');
    const leader = await ensemble.leader();
    const follower = ensemble.servers.find(({ port }) => port !== leader.port) as typeof leader;
    const client = await connectedTo(follower.connect, () =>
      open(chroot, ensemble.connect, DEFAULT_SESSION_TIMEOUT_MS),
    );
    const lease = await acquire(client);
    const { state } = client;
    // Past the first heartbeats, whose answers are worth less.
    await expect
      .poll(() => lease.deadline - systemClock.monotonic())
      .toBeGreaterThan(DEFAULT_SESSION_TIMEOUT_MS / 4);
    atEnd(async () => follower.resume());
    await new ProcessHandle(follower.pid ?? 0).pause();
    const pausedAt = systemClock.monotonic();
    await expect.poll(() => lease.deadline).toBeGreaterThan(pausedAt + DEFAULT_SESSION_TIMEOUT_MS);
    expect(lease.signal.aborted).toBe(false);
    expect(client.state).toMatchObject({
      status: 'connected',
      sessionId: 'sessionId' in state ? state.sessionId : '',
    });
  });

  it('ids of sessions on a follower that is cut off from the leader are lost before the leader gives them to others', async () => {
    // Half a tick is a quarter of the time-out here: the leader hears of sessions on followers as late as it
    // may.
    const [tickTimeMs, sessionMs] = [1_500, 3_000];
    const { proxies, leader, follower } = await startWithProxiedFollower(tickTimeMs);
    const chroot = uniqueChroot('cut-off');
    const COUNT = 8;
    await occupy(open(chroot, leader.connect), 8 + COUNT, 255);
    const held: Lease[] = [];
    for (let i = 0; i < COUNT; i += 1) {
      held.push(await acquire(open(chroot, follower.connect, sessionMs), { maxGroups: 1 }));
      // Their heartbeats are to come at different times.
      await systemClock.sleep(sessionMs / 6 / COUNT);
    }
    const given = new Map<number, number>();
    const pending = held.map(async () => {
      const { id } = await acquire(open(chroot, leader.connect), { maxGroups: 1 });
      given.set(id, systemClock.monotonic());
    });
    await systemClock.sleep(sessionMs);
    const lastClaim = held.at(-1) as Lease;
    expect(lastClaim.isValid()).toBe(true);
    for (const proxy of proxies) proxy.stall('both');
    const losses = await Promise.all(held.map(lossOf));
    expect(losses.map(({ reason }) => reason)).toEqual(held.map(() => 'unreachable'));
    expect(losses.filter(({ at, deadline }) => at >= deadline)).toEqual([]);
    await Promise.all(pending);
    const margins = held.map(({ id }, i) => (given.get(id) as number) - (losses[i]?.deadline as number));
    expect(Math.min(...margins)).toBeGreaterThan(0);
  });
});

/** An ensemble of three in which one follower reaches the others through proxies. */
async function startWithProxiedFollower(tickTimeMs: number) {
  const ports = await freePorts(9);
  const address = (member: number, quorum?: number) =>
    `127.0.0.1:${quorum ?? ports[3 * member - 2]}:${ports[3 * member - 1]}`;
  const proxies = [new FaultProxy(), new FaultProxy()];
  atEnd(() => Promise.all(proxies.map((proxy) => proxy.stop())));
  const proxied = await Promise.all(
    proxies.map((proxy, i) => proxy.start('127.0.0.1', ports[3 * (i + 2) - 2] as number)),
  );
  const start = async (member: number) => {
    const seen = (other: number) =>
      address(other, member === 1 && other > 1 ? proxied[other - 2] : undefined);
    const settings = {
      initLimit: '20',
      syncLimit: '6',
      'server.1': seen(1),
      'server.2': seen(2),
      'server.3': seen(3),
    };
    const server = await startZooKeeperProcess({
      tickTimeMs,
      minSessionTimeoutMs: 2 * tickTimeMs,
      port: ports[3 * member - 3] as number,
      memberId: member,
      settings,
    });
    atEnd(() => server.dispose());
    return server;
  };
  const [second, third] = await Promise.all([start(2), start(3)]);
  await expect
    .poll(async () => [await second.mode(), await third.mode()].toSorted())
    .toEqual(['follower', 'leader']);
  const follower = await start(1);
  await expect.poll(() => follower.mode()).toBe('follower');
  return { proxies, follower, leader: (await second.mode()) === 'leader' ? second : third };
}
