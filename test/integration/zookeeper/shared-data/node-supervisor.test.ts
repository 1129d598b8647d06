import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { evictHolder } from '../../../../src/core/lease/operate/evict.js';
import { StoreSession } from '../../../../src/core/lease/session/store-session.js';
import { FileLeaseStore } from '../../../../src/core/store/file/file-lease-store.js';
import type { ManagedLease } from '../../../../src/node/runtime/acquire.js';
import { acquire } from '../../../../src/node/runtime/acquire.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import type {
  SupervisorOptions,
  SupervisorState,
} from '../../../../src/zookeeper/shared-data/node-supervisor.js';
import { type SharedData, sharedData } from '../../../../src/zookeeper/shared-data/shared-data.js';
import { stopProxies } from '../../../support/network/proxies.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';
import { expire, RecipeScene } from '../recipes/recipe-scene.js';

let scene: RecipeScene;
const opened: SharedData[] = [];

beforeEach(() => {
  scene = new RecipeScene();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
  await scene.close();
  await stopProxies();
  removeFolders();
});

function supervise(client: ZooKeeperClient, options: SupervisorOptions = {}) {
  const data = sharedData(client);
  opened.push(data);
  const states: SupervisorState[] = [];
  const supervisor = data.supervise({ ...options, onState: (state) => states.push(state) });
  const reported = () => states.map(({ status }) => status).join(' ');
  return { data, supervisor, states, reported };
}

/** What another client sees. */
async function observe() {
  const data = sharedData(await scene.open());
  opened.push(data);
  const nodes = data.nodes();
  const claims = await data.map<string, number>('claims', { lifespan: 'ephemeral' });
  await Promise.all([nodes.ready, claims.ready]);
  return { nodes, claims };
}

describe('a supervised node', () => {
  it('is replaced once where its session has expired, with all of its data', async () => {
    const client = await scene.open();
    const { nodes, claims } = await observe();
    const { data, supervisor, reported } = supervise(client);
    const first = await supervisor.whenJoined();
    const mine = await data.map<string, number>('claims', { lifespan: 'ephemeral' });
    for (let n = 0; n < 10; n += 1) await mine.set(`k${n}`, n);
    const steps = await data.list<number>('steps', { lifespan: 'ephemeral' });
    for (let n = 0; n < 10; n += 1) await steps.append(n);
    await expect.poll(() => [claims.size, steps.length]).toEqual([10, 10]);
    await expire(client);
    await expect.poll(() => supervisor.state.status === 'joined' && supervisor.replacements).toBe(1);
    expect(await data.synced()).toBe(true);
    const second = await supervisor.whenJoined();
    expect([first.id, second.id]).toEqual(['node-0000000000', 'node-0000000001']);
    expect(first.state).toEqual({ status: 'disconnected', reason: 'session-expired' });
    await expect.poll(() => [claims.size, claims.entry('k7')?.owner]).toEqual([10, second.sessionId]);
    await expect.poll(() => steps.values()).toEqual(Array.from({ length: 10 }, (_, n) => n));
    expect(nodes.entries().map(({ id }) => id)).toEqual(['node-0000000001']);
    expect(reported()).toMatch(/^joined( suspended)? disconnected replacing joined$/);
  });

  it('keeps its node through a lost connection of a living session', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const { supervisor, reported } = supervise(client);
    const node = await supervisor.whenJoined();
    proxy.cut();
    await expect.poll(() => reported()).toBe('joined suspended');
    proxy.heal();
    await expect.poll(() => reported()).toBe('joined suspended joined');
    expect((await supervisor.whenJoined()).id).toBe(node.id);
    expect(supervisor.replacements).toBe(0);
  });

  it('stops at its limit, and says so; its data goes with it', async () => {
    const client = await scene.open();
    const { claims } = await observe();
    const { data, supervisor, states } = supervise(client, { maxReplacements: 1, backoffMs: 1 });
    const node = await supervisor.whenJoined();
    await (await data.map('claims', { lifespan: 'ephemeral' })).set('k', 1);
    await client.remove(node.path);
    await expect.poll(() => supervisor.replacements).toBe(1);
    const next = await supervisor.whenJoined();
    await expect.poll(() => claims.size).toBe(1);
    await client.remove(next.path);
    await expect.poll(() => states.at(-1)).toEqual({ status: 'stopped', reason: 'limit-reached' });
    await expect.poll(() => claims.size).toBe(0);
    await expect(supervisor.whenJoined()).rejects.toMatchObject({ fault: 'closed' });
  });

  it("is replaced on the application's word, and not where it declines", async () => {
    const client = await scene.open();
    const asked: string[] = [];
    const replace: SupervisorOptions['replace'] = async ({ nodeId, reason }) =>
      asked.push(`${nodeId} ${reason}`) < 2;
    const { supervisor, states } = supervise(client, { replace, backoffMs: 1 });
    await client.remove((await supervisor.whenJoined()).path);
    await expect.poll(() => supervisor.replacements).toBe(1);
    await client.remove((await supervisor.whenJoined()).path);
    await expect.poll(() => states.at(-1)).toEqual({ status: 'stopped', reason: 'declined' });
    expect(asked).toEqual(['node-0000000000 removed', 'node-0000000001 removed']);
  });

  it('is the holder of a lease, and goes at once with it', async () => {
    const client = await scene.open();
    const { nodes, claims } = await observe();
    const loss = new AbortController();
    const lease = { id: 7, version: 3, taskId: 'task-a', signal: loss.signal };
    const { data, supervisor, states } = supervise(client, { lease });
    await supervisor.whenJoined();
    await (await data.map('claims', { lifespan: 'ephemeral' })).set('k', lease.id);
    await expect
      .poll(() => [claims.get('k'), ...nodes.entries().map((node) => String(node.data))])
      .toEqual([7, '{"taskId":"task-a","nodeId":7,"version":3}']);
    loss.abort(new Error('lost'));
    await expect
      .poll(() => [claims.size, nodes.size, states.at(-1)])
      .toEqual([0, 0, { status: 'stopped', reason: 'lease-lost' }]);
  });

  describe('that represents a lease of a store', () => {
    let directory: string;
    let lease: ManagedLease;
    const hold = (durationMs: number) =>
      acquire({ store: `file:${directory}`, nodes: 4, durationMs, onLost: 'signal' });
    const reported = ({ taskId, id, version }: ManagedLease) =>
      JSON.stringify({ taskId, nodeId: id, version });

    /** Its node and an entry of its, as another client sees them. */
    async function standing(durationMs: number) {
      directory = newFolder();
      lease = await hold(durationMs);
      const client = await scene.open();
      const { nodes, claims } = await observe();
      const supervised = supervise(client, { lease });
      await supervised.supervisor.whenJoined();
      const mine = await supervised.data.map<string, number>('claims', { lifespan: 'ephemeral' });
      await mine.set('k', 1);
      const seen = () => [claims.get('k'), ...nodes.entries().map((node) => `${node.id} ${node.data}`)];
      return { client, mine, seen, ...supervised };
    }
    afterEach(() => lease.release());

    it('is replaced once where its session expires, and the lease goes on', async () => {
      // expireSession() blocks this process; the lease has to outlive that.
      const { client, supervisor, seen } = await standing(30_000);
      await expire(client);
      await expect.poll(seen).toEqual([1, `node-0000000001 ${reported(lease)}`]);
      expect([supervisor.replacements, lease.isValid()]).toEqual([1, true]);
    });

    it('is gone where the lease is taken, and back with the next lease', async () => {
      const { data, mine, states, supervisor, seen } = await standing(6_000);
      // An operator overwrites the object of the lease.
      const ofCluster = new FileLeaseStore({ directory, clock: systemClock, random: systemRandom });
      await evictHolder(new StoreSession(ofCluster, systemClock, 5_000), lease.id);
      await expect.poll(seen).toEqual([undefined]);
      await expect.poll(() => states.at(-1)).toEqual({ status: 'stopped', reason: 'lease-lost' });
      expect([lease.isValid(), supervisor.replacements]).toEqual([false, 0]);
      await expect(mine.set('k', 2, { timeoutMs: 100 })).rejects.toMatchObject({ fault: 'not-joined' });

      lease = await hold(30_000);
      const again = data.supervise({ lease });
      await again.whenJoined();
      await mine.set('k', 2);
      await expect.poll(seen).toEqual([2, `node-0000000001 ${reported(lease)}`]);
    });
  });

  it('is one for its data, and says what is wrong of an option', async () => {
    const { data, supervisor } = supervise(await scene.open());
    expect(() => data.supervise()).toThrow(/supervise: expected no other supervisor/);
    await supervisor.stop();
    expect(() => data.supervise({ maxReplacements: -1 })).toThrow(
      'maxReplacements: expected a number of at least 0, got -1',
    );
    await data.supervise().whenJoined();
  });
});
