import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { openZooKeeper, type ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { startEnsemble, type ZooKeeperEnsemble } from '../../../support/servers/zookeeper-ensemble.js';
import type { ZooKeeperProcess } from '../../../support/servers/zookeeper-process.js';
import { uniqueChroot } from '../../../support/zookeeper.js';

/** Elections have to be over before it is. */
const SESSION_MS = 12_000;

let ensemble: ZooKeeperEnsemble;
const clients: ZooKeeperClient[] = [];

beforeAll(async () => {
  ensemble = await startEnsemble(3);
});
afterAll(async () => {
  await ensemble.stop();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  for (const server of ensemble.servers) server.resume();
  await Promise.all(ensemble.servers.map((server) => server.start()));
  await ensemble.whenServing();
});

interface Watching {
  readonly client: ZooKeeperClient;
  readonly newest: { children?: string; data?: string };
  readonly states: string[];
}

/** Some clients, so that every server has its share of them, each watching one znode and its children. */
async function watchers(chroot: string, count = 9): Promise<Watching[]> {
  const all = Array.from({ length: count }, (): Watching => {
    const client = openZooKeeper({
      connect: `${ensemble.connect}${chroot}`,
      sessionTimeoutMs: SESSION_MS,
      clock,
      random,
    });
    clients.push(client);
    const watching: Watching = { client, newest: {}, states: [] };
    client.onState(({ status }) => {
      if (watching.states.at(-1) !== status) watching.states.push(status);
    });
    return watching;
  });
  await all[0]?.client.ensurePath('/w');
  for (const [i, { client, newest }] of all.entries()) {
    const children = client.watchChildren('/w', (names) => {
      newest.children = names ? [...names].sort().join() : 'absent';
    });
    const data = client.watchData('/w', (znode) => {
      newest.data = String(znode?.data);
    });
    await Promise.all([children.first, data.first]);
    await client.create(`/w/e${i}`, '', 'ephemeral');
  }
  return all;
}

/** Which of the clients are connected to this server. */
function connectedTo(all: readonly Watching[], { connect }: ZooKeeperProcess): Watching[] {
  return all.filter(({ client: { state } }) => state.status === 'connected' && state.server === connect);
}

/** Repeats a write whose outcome may be unknown: it is the same each time. */
async function write(client: ZooKeeperClient, data: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.setData('/w', data, -1, { timeoutMs: 10_000 });
      return;
    } catch (error) {
      if (attempt === 20) throw error;
    }
  }
}

/** Every watch has reported the newest state. Every ephemeral znode exists, in the session that made it. */
async function agree(all: readonly Watching[], data: string): Promise<void> {
  const names = all.map((_, i) => `e${i}`).join();
  await expect
    .poll(() => all.map(({ newest }) => newest))
    .toEqual(all.map(() => ({ children: names, data })));
}

describe('clients of an ensemble', () => {
  it('spread over its servers', async () => {
    const all = await watchers(uniqueChroot('spread'), 40);
    for (const server of ensemble.servers) expect(connectedTo(all, server).length).toBeGreaterThan(0);
  });

  it('keep their sessions and watches when the leader is killed', async () => {
    const all = await watchers(uniqueChroot('leader'));
    const leader = await ensemble.leader();
    await leader.kill();
    const since = performance.now();
    const survivor = all[0]?.client as ZooKeeperClient;
    await write(survivor, 'after');
    await agree(all, 'after');
    expect(performance.now() - since).toBeLessThan(SESSION_MS + 5_000);
    for (const { states } of all) expect(states).not.toContain('expired');
    expect(connectedTo(all, leader)).toEqual([]);
  });

  it('go on to another server, with the same session, when theirs hangs', async () => {
    const all = await watchers(uniqueChroot('paused'));
    const leader = await ensemble.leader();
    const follower = ensemble.servers.find(
      (server) => server !== leader && connectedTo(all, server).length > 0,
    ) as ZooKeeperProcess;
    const moved = connectedTo(all, follower);
    const sessions = moved.map(({ client }) => client.state);
    follower.pause();
    const other = all.find((watching) => !moved.includes(watching))?.client as ZooKeeperClient;
    await write(other, 'meanwhile');
    await expect
      .poll(
        () =>
          moved.every(
            ({ client: { state } }) => state.status === 'connected' && state.server !== follower.connect,
          ),
        {
          timeout: SESSION_MS,
        },
      )
      .toBe(true);
    await agree(all, 'meanwhile');
    for (const [i, { client, states }] of moved.entries()) {
      expect(states).not.toContain('expired');
      expect(client.state).toMatchObject({
        sessionId: sessions[i] && 'sessionId' in sessions[i] ? sessions[i].sessionId : '',
      });
    }
  });

  it('wait without a quorum, and go on where they were when it is back', async () => {
    const all = await watchers(uniqueChroot('quorum'));
    const before = all.map(({ client }) => client.state);
    const [first, second] = ensemble.servers as [ZooKeeperProcess, ZooKeeperProcess];
    await Promise.all([first.kill(), second.kill()]);
    await expect.poll(() => all.every(({ client }) => client.state.status === 'suspended')).toBe(true);
    // Longer than the sessions: without a quorum no server can end them.
    await clock.sleep(SESSION_MS + 2_000);
    const client = all[0]?.client as ZooKeeperClient;
    await expect(client.setData('/w', 'never', -1, { timeoutMs: 500 })).rejects.toMatchObject({
      fault: 'timeout',
      outcome: 'not-applied',
      cause: expect.objectContaining({ message: expect.stringContaining('it may have no quorum') }),
    });
    const waiting = client.setData('/w', 'again', -1, { timeoutMs: 60_000 });
    await Promise.all([first.start(), second.start()]);
    await ensemble.whenServing();
    const since = performance.now();
    await waiting;
    await agree(all, 'again');
    // Later they would have begun a new session.
    expect(performance.now() - since).toBeLessThan(SESSION_MS);
    for (const [
      i,
      {
        client: { state },
      },
    ] of all.entries()) {
      expect('sessionId' in state && state.sessionId).toBe(
        before[i] && 'sessionId' in before[i] ? before[i].sessionId : '',
      );
    }
  });

  it('see nothing of a restart of one server after the other', async () => {
    const all = await watchers(uniqueChroot('rolling'));
    for (const [i, server] of ensemble.servers.entries()) {
      await server.stop();
      await write(all[i]?.client as ZooKeeperClient, `during ${i}`);
      await server.start();
      await ensemble.whenServing();
      await agree(all, `during ${i}`);
    }
    for (const { states } of all) expect(states).not.toContain('expired');
  });
});
