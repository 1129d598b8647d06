import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ManagedLease } from '../../../../src/node/runtime/acquire.js';
import { acquire } from '../../../../src/node/runtime/acquire.js';
import { FaultProxy } from '../../../support/network/fault-proxy.js';
import { startEnsemble, type ZooKeeperEnsemble } from '../../../support/servers/zookeeper-ensemble.js';
import { startZooKeeperProcess, type ZooKeeperProcess } from '../../../support/servers/zookeeper-process.js';
import { TreeReader } from '../../../support/tree-reader.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';

const SESSION_MS = 3_000;
/**
 * From the end of a fault, or of a session, until the tree is right; on a busy machine, as many times what
 * the start of a task takes there.
 */
const RIGHT = { withinMs: 2_000, starts: 5 };
/** How long to wait for it, in milliseconds. */
const PATIENCE_MS = 60_000;

/** A small fleet in this process, with leases in a folder, and what everybody should see of it. */
class Fleet {
  readonly leases: ManagedLease[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), 'nodelease-outages-'));
  readonly #ids = new Map<ManagedLease, string>();
  #started = 0;
  #slowestStartMs = 0;

  async start(count: number, connect: (index: number) => string): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      const begun = performance.now();
      const lease = await acquire({
        store: `file:${this.#folder}`,
        nodes: 8,
        // A task's id is its instance's: of two with the same one only the later is registered.
        taskId: `task-${this.#started++}`,
        onLost: 'signal',
        zookeeper: { connect: connect(index), sessionTimeoutMs: SESSION_MS, service: 'orders' },
      });
      this.#slowestStartMs = Math.max(this.#slowestStartMs, performance.now() - begun);
      this.leases.push(lease);
      this.#ids.set(lease, `${lease.id} at ${lease.version}`);
    }
  }

  /** Node id → version, as it should be. */
  get versions(): Record<number, number> {
    return Object.fromEntries(this.leases.map(({ id, version }) => [id, version]));
  }

  /** Whether every node stands in the tree, once, and every other node has seen it. */
  async isRight(reader: TreeReader): Promise<boolean> {
    const want = JSON.stringify(this.versions);
    if (this.leases.some(({ discovery }) => JSON.stringify(discovery?.nodes.knownVersions()) !== want))
      return false;
    if (
      this.leases.some(
        ({ discovery }) => discovery?.state.status !== 'synced' || discovery.nodes.stale !== undefined,
      )
    )
      return false;
    const [nodes, services] = await Promise.all([
      reader.all('/discovery/nodes'),
      reader.all('/discovery/servicetypes/orders'),
    ]);
    return [nodes, services].every(
      (found) =>
        JSON.stringify(
          Object.fromEntries([...found.values()].map(({ nodeId, version }) => [nodeId, version])),
        ) === want,
    );
  }

  /** Resolves when all is right, which is soon after now. */
  async expectRightSoon(reader: TreeReader): Promise<void> {
    expect(await this.untilRight(reader)).toBeLessThan(
      Math.max(RIGHT.withinMs, RIGHT.starts * this.#slowestStartMs),
    );
  }

  /** Resolves, with the milliseconds it took, when all is right. */
  async untilRight(reader: TreeReader): Promise<number> {
    const begun = performance.now();
    for (;;) {
      const right = await this.isRight(reader).catch(() => false);
      const took = performance.now() - begun;
      if (right) return took;
      if (took > PATIENCE_MS) {
        const seen = this.leases.map(({ id, discovery }) => ({
          id,
          state: discovery?.state,
          knows: discovery?.nodes.knownVersions(),
        }));
        throw new Error(
          `not right after ${PATIENCE_MS} ms: ${JSON.stringify(seen)}; tree: ${JSON.stringify([...(await reader.all())])}`,
        );
      }
      await sleep(10);
    }
  }

  /** No task has lost a node id, or got another one. */
  expectKept(): void {
    for (const lease of this.leases) {
      expect(lease.isValid()).toBe(true);
      expect(`${lease.id} at ${lease.version}`).toBe(this.#ids.get(lease));
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.leases.map((lease) => lease.release()));
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

const unhandled: unknown[] = [];
const note = (reason: unknown) => unhandled.push(reason);

let fleet: Fleet;
let reader: TreeReader;
beforeEach(() => {
  fleet = new Fleet();
  process.on('unhandledRejection', note);
});
afterEach(async () => {
  await Promise.all([fleet.stop(), reader.close()]);
  process.off('unhandledRejection', note);
  expect(unhandled.splice(0)).toEqual([]);
});

/** A session's id, while there is one. */
function sessionOf({ discovery }: ManagedLease): string {
  const state = discovery?.zookeeper.state;
  if (state?.status !== 'connected') throw new Error(`not connected, but ${state?.status}`);
  return state.sessionId;
}

describe('a fleet on one server', () => {
  let server: ZooKeeperProcess;
  let connect: string;
  const proxies: FaultProxy[] = [];
  beforeEach(async () => {
    server = await startZooKeeperProcess();
    connect = `${server.connect}${uniqueChroot()}`;
    reader = new TreeReader(connect);
  });
  afterEach(async () => {
    await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
    await server.dispose();
  });

  it('is right again within 2 s of a restart of the server', async () => {
    await fleet.start(4, () => connect);
    await fleet.untilRight(reader);
    await server.kill();
    await server.start();
    await fleet.expectRightSoon(reader);
    fleet.expectKept();
  });

  it('is right again within 2 s of a session’s end', async () => {
    await fleet.start(4, () => connect);
    await fleet.untilRight(reader);
    for (const lease of fleet.leases.slice(0, 3)) {
      const before = sessionOf(lease);
      await expireSession({ connect: server.connect, sessionId: before });
      await fleet.expectRightSoon(reader);
      expect(sessionOf(lease)).not.toBe(before);
    }
    fleet.expectKept();
  });

  it.each([
    ['shorter than the session', 1_000],
    ['longer than the session', 2 * SESSION_MS],
  ])(
    'is right again within 2 s of the end of a cut that is %s, and of what changed meanwhile',
    async (_, cutMs) => {
      await fleet.start(4, () => connect);
      const proxy = new FaultProxy();
      proxies.push(proxy);
      const [host = '', port] = server.connect.split(':');
      const through = `127.0.0.1:${await proxy.start(host, Number(port))}`;
      await fleet.start(1, () => connect.replace(server.connect, through));
      await fleet.untilRight(reader);
      proxy.cut();
      await sleep(cutMs);
      // One goes and one comes while the fifth sees nothing.
      const [first] = fleet.leases.splice(0, 1);
      await first?.release();
      await fleet.start(2, () => connect);
      proxy.heal();
      await fleet.expectRightSoon(reader);
      fleet.expectKept();
    },
  );
});

describe('a fleet on an ensemble of three', () => {
  let ensemble: ZooKeeperEnsemble;
  beforeEach(async () => {
    ensemble = await startEnsemble(3);
    const chroot = uniqueChroot();
    reader = new TreeReader(`${ensemble.connect}${chroot}`);
    // Each begins with another server.
    const { servers } = ensemble;
    await fleet.start(5, (index) => {
      const order = servers.map((_, at) => servers[(at + index) % servers.length]?.connect);
      return `${order.join(',')}${chroot}`;
    });
    await fleet.untilRight(reader);
  });
  afterEach(() => ensemble.stop());

  it('is right again within 2 s of the election after the leader’s death, and of its return', async () => {
    const leader = await ensemble.leader();
    await leader.kill();
    await ensemble.leader();
    await fleet.expectRightSoon(reader);
    await leader.start();
    await fleet.expectRightSoon(reader);
    fleet.expectKept();
  });

  it('works without a quorum for 20 s, and is right again when there is one', async () => {
    const [one, two] = ensemble.servers;
    await Promise.all([one?.kill(), two?.kill()]);
    await expect
      .poll(() => fleet.leases.map(({ discovery }) => discovery?.state.status))
      .toEqual(Array(5).fill('degraded'));
    await sleep(20_000);
    fleet.expectKept();
    await Promise.all([one?.start(), two?.start()]);
    await ensemble.whenServing();
    await fleet.expectRightSoon(reader);
    fleet.expectKept();
  });
});
