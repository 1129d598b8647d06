import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import { evictHolder } from '../../../../src/core/lease/operate/evict.js';
import { StoreSession } from '../../../../src/core/lease/session/store-session.js';
import {
  type MemoryIntercept,
  MemoryLeaseStore,
} from '../../../../src/core/store/memory/memory-lease-store.js';
import { type AcquireOptions, acquire, type ManagedLease } from '../../../../src/node/runtime/acquire.js';
import { runInProcess } from '../../../support/in-process.js';
import { FaultProxy } from '../../../support/network/fault-proxy.js';
import { killAll, runProcess, type TestProcess } from '../../../support/processes.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';

const NODE = '/discovery/nodes/00/08';
/** How long an announcement may take on a loaded machine, in milliseconds. */
const SYNCED_WITHIN_MS = 30_000;
/** How long the session of a program lasts whose host is gone, in milliseconds. */
const SESSION_MS = 30_000;

let connect: string;
let reader: TreeReader;
let folder: string;
const leases: ManagedLease[] = [];

beforeEach(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
  reader = new TreeReader(connect);
  folder = await mkdtemp(join(tmpdir(), 'nodelease-announced-'));
});
afterEach(async () => {
  await Promise.all(leases.splice(0).map((lease) => lease.release()));
  await reader.close();
  await killAll();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function hold(options: AcquireOptions): Promise<ManagedLease> {
  const lease = await acquire({ nodes: 4, onLost: 'signal', ...options });
  leases.push(lease);
  return lease;
}

/** A program of its own that holds and announces a node id. */
function announced(keeper: 'inline' | 'worker' = 'inline'): TestProcess {
  const file = fileURLToPath(new URL('../../../fixtures/programs/announced.mjs', import.meta.url));
  return runProcess(process.execPath, [file, join(folder, 'store'), connect, keeper]);
}

describe('a lease with discovery', () => {
  it('is in the tree with its service and endpoints, and is ready at once where no task held the id before', async () => {
    const zookeeper = {
      connect,
      service: 'orders',
      address: '::1',
      port: 80,
      endpoints: [{ endpoint: 'pay', key: 'visa', fields: { tier: 1 } }],
    };
    const lease = await hold({ store: 'memory:', taskId: 'me', zookeeper });
    expect(await lease.discovery?.ready).toMatchObject({ ready: true, why: 'vacant' });
    await lease.discovery?.synced(SYNCED_WITHIN_MS);
    const fields = { taskId: 'me', nodeId: 0, version: 1, service: 'orders', address: '::1', port: 80 };
    expect([...(await reader.all())]).toEqual([
      ['/discovery/endpoints/pay/visa/orders:0', { ...fields, tier: 1 }],
      [NODE, fields],
      ['/discovery/servicetypes/orders/0', fields],
    ]);
    expect(lease.discovery).toMatchObject({
      isReady: true,
      state: { status: 'synced' },
      idWidth: { value: 8 },
    });
  });

  it('has left the tree when the write that gives the id back is sent', async () => {
    const seen: unknown[] = [];
    const intercept: MemoryIntercept = async (call, apply) => {
      if (call.operation === 'replace' && /^\d/.test(call.key) && !call.body.includes('"taskId"'))
        seen.push((await reader.all()).size);
      return apply();
    };
    const store = new MemoryLeaseStore({ clock: systemClock, intercept });
    const lease = await hold({ store, zookeeper: { connect, service: 'orders' } });
    await lease.discovery?.synced(SYNCED_WITHIN_MS);
    expect((await reader.all()).size).toBe(2);
    await lease.release();
    expect(seen).toEqual([0]);
    expect(lease.discovery?.state.status).toBe('closed');
  });

  it('is gone from the tree even when the loss ends the process at once, long before its session would have ended', async () => {
    const program = announced();
    await program.waitForOutput(/id 0 version 1/);
    await reader.until('/discovery/servicetypes/orders/0', (at) => at !== undefined);
    const release = ['release', '0', '--force', '--store', `file:${join(folder, 'store')}`];
    expect(await runInProcess(release)).toMatchObject({ code: 0 });
    expect((await program.exit).code).toBe(76);
    expect(await reader.until(NODE, (at) => at === undefined, SESSION_MS)).toBeLessThan(SESSION_MS / 3);
  });

  it('is not harmed by a listener that throws: that one surfaces as an uncaught error, once for each event', async () => {
    const uncaught: unknown[] = [];
    const others = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', (error) => uncaught.push(error));
    try {
      const mistake = new Error('a mistake of the listener');
      const onEvent = () => {
        throw mistake;
      };
      const lease = await hold({ store: 'memory:', zookeeper: { connect, onEvent } });
      await lease.discovery?.synced(SYNCED_WITHIN_MS);
      await reader.zookeeper.remove(NODE);
      await reader.until(NODE, (at) => at?.version === 1);
      expect(await lease.discovery?.ready).toMatchObject({ ready: true });
      await lease.release();
      expect(lease.isValid()).toBe(false);
      expect(new Set(uncaught)).toEqual(new Set([mistake]));
    } finally {
      process.removeAllListeners('uncaughtException');
      for (const listener of others) process.on('uncaughtException', listener);
    }
  });

  it('fails for its loss when it is lost while a required announcement is still awaited', async () => {
    await reader.zookeeper.createWithParents(NODE, 'in the way', 'ephemeral');
    const store = new MemoryLeaseStore({ clock: systemClock });
    const rejected = expect(
      acquire({
        store,
        nodes: 4,
        durationMs: 4_000,
        onLost: 'signal',
        zookeeper: { connect, required: true },
      }),
    ).rejects;
    const session = new StoreSession(store.connect(), systemClock, 1_000);
    await expect
      .poll(async () => (await evictHolder(session, 0).catch(() => undefined))?.kind)
      .toBe('evicted');
    await rejected.toMatchObject({ code: 'LEASE_LOST', reason: 'taken' });
  });

  it('gives up waiting for a required ZooKeeper when it is asked to', async () => {
    const giveUp = AbortSignal.timeout(200);
    const begun = performance.now();
    const options = {
      store: 'memory:',
      zookeeper: { connect: '127.0.0.1:1', required: true },
      signal: giveUp,
    } as const;
    await expect(acquire(options)).rejects.toSatisfy((error) => giveUp.aborted && error === giveUp.reason);
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  it('knows the others, and is known by them before it is ready, also when a separate thread keeps it', async () => {
    const store = `file:${join(folder, 'store')}`;
    const others: ManagedLease[] = [];
    // All ids but one, so that it is the program's, whichever it is, and its successor's.
    for (const durationMs of [9_000, 9_000, 9_000])
      others.push(await hold({ store, zookeeper: connect, durationMs }));
    const killed = announced();
    const [, id = ''] = await killed.waitForOutput(/id (\d) version 1/);
    killed.kill('SIGKILL');
    const successor = announced('worker');
    await successor.waitForOutput(new RegExp(`id ${id} version 2\nready: known`));
    const known = Object.fromEntries(others.map((lease) => [lease.id, 1]));
    expect(others[0]?.discovery?.nodes.knownVersions()).toEqual({ ...known, [id]: 2 });
  });
});

describe('a node id that comes only from ZooKeeper', () => {
  const provider = 'zookeeper';

  it('needs nothing to announce where ZooKeeper is required', async () => {
    const lease = await acquire({ provider, zookeeper: { connect, required: true }, onLost: 'signal' });
    expect(lease.discovery?.state.status).toBe('synced');
    await lease.release();
  });

  it('is not announced any longer once it is lost, also where the session comes back later', async () => {
    const proxy = new FaultProxy();
    const [host = '', port] = inject('zookeeper').connect.split(':');
    const through = connect.replace(/^[^/]*/, `127.0.0.1:${await proxy.start(host, Number(port))}`);
    try {
      const lease = await acquire({
        provider,
        zookeeper: { connect: through, sessionTimeoutMs: 10_000, service: 'orders' },
        onLost: 'signal',
      });
      await lease.discovery?.synced(SYNCED_WITHIN_MS);
      const lost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
      proxy.cut();
      await lost;
      proxy.heal();
      await reader.until('/discovery/servicetypes/orders/0', (at) => at === undefined);
      // The id itself stays taken: its holder may still be ending its work.
      expect(await reader.at(NODE)).toMatchObject({ nodeId: 0 });
      await lease.release();
      expect(await reader.at(NODE)).toBeUndefined();
    } finally {
      await proxy.stop();
    }
  });

  it('is lost with the session', async () => {
    // This process stands still while another one ends its session, which must not seem too long to it.
    const lease = await acquire({
      provider,
      zookeeper: { connect, sessionTimeoutMs: 30_000 },
      onLost: 'signal',
    });
    const lost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    const { sessionId = '' } = (await lease.discovery?.zookeeper.whenConnected()) ?? {};
    await expireSession({ connect: inject('zookeeper').connect, sessionId });
    await lost;
    expect(lease.isValid()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'taken' });
    await lease.release();
  });
});
