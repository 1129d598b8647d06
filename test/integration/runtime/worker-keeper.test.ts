import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../../src/base/system.js';
import { encodeCluster } from '../../../src/lease/model/cluster-config.js';
import { scaleCluster } from '../../../src/lease/operate/scale.js';
import { readCluster } from '../../../src/lease/session/cluster-store.js';
import { StoreSession } from '../../../src/lease/session/store-session.js';
import type { AcquireOptions } from '../../../src/runtime/acquire.js';
import { openStore } from '../../../src/store/open-store.js';
import { packageRoot } from '../../support/package-root.js';
import { killAll, runProcess } from '../../support/processes.js';

const DURATION_MS = 2_000;

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodelease-worker-'));
});
afterEach(async () => {
  await killAll();
  await rm(folder, { recursive: true });
});

function program(name: string, ...args: readonly string[]) {
  const file = fileURLToPath(new URL(`../../fixtures/programs/${name}.mjs`, import.meta.url));
  return runProcess(process.execPath, [file, ...args]);
}

/** The store of the tests as an operator opens it, beside the holders. */
async function openForOperator() {
  const store = await openStore(`file:${folder}/store`, { clock: systemClock, random: systemRandom, requestTimeoutMs: 5_000 });
  return { session: new StoreSession(store, systemClock, 5_000), close: () => store.close() };
}

/** `acquire()` of the build, since the thread is started from its compiled form. */
async function acquireBuilt(options: AcquireOptions) {
  const { acquire } = (await import(join(packageRoot, 'dist/index.js'))) as typeof import('../../../src/index.js');
  return acquire({ store: `file:${folder}/store`, keeper: 'worker', durationMs: DURATION_MS, onLost: 'signal', ...options });
}

describe('a process whose main thread is blocked', () => {
  const blocked = (keeper: string) =>
    program('blocked-main-thread', `file:${folder}/store`, keeper, String(DURATION_MS), String(3 * DURATION_MS));

  it('keeps its lease for three durations when a worker thread renews it', async () => {
    const process = blocked('worker');
    expect(await process.exit).toEqual({ code: 0, signal: null });
    expect(process.stdout()).toBe('id 0 version 1\nvalid true\nreleased\n');
  });

  it('loses it when the blocked thread itself should have renewed, and ends with 76', async () => {
    const process = blocked('inline');
    expect(await process.exit).toEqual({ code: 76, signal: null });
    expect(process.stdout()).toBe('id 0 version 1\nvalid false\n');
  });

  it('gives the id back, so that the next process has it at once', async () => {
    expect((await blocked('worker').exit).code).toBe(0);
    // Released, not left to expire: the next task has it, however long a process takes to start.
    expect(JSON.parse(await readFile(join(folder, 'store', '0.json'), 'utf8'))).toMatchObject({ released: true, version: 1 });
    const next = program('blocked-main-thread', `file:${folder}/store`, 'worker', String(DURATION_MS), '0');
    await next.waitForOutput(/id 0 version 2/, 60_000);
    expect((await next.exit).code).toBe(0);
  });

  it('shows no deadline any more once it has been released, though ids were asked for just before', async () => {
    const lease = await acquireBuilt({ nodes: 1 });
    expect(lease.deadline).toBeGreaterThan(0);
    const prepared = lease.tenureTime?.prepare();
    const released = lease.release();
    await expect(prepared).rejects.toMatchObject({ code: 'LEASE_RELEASED' });
    await released;
    expect([lease.deadline, lease.isValid()]).toEqual([0, false]);
  });

  it('is told that its node id is being retired as soon as it can listen', async () => {
    const leases = [await acquireBuilt({ nodes: 2 }), await acquireBuilt({ nodes: 2 })];
    const leaving = leases.find(({ id }) => id === 1);
    const { session, close } = await openForOperator();
    const shrinking = scaleCluster({ session, clock: systemClock, random: systemRandom, size: 1 });
    await expect.poll(() => leaving?.retiring.aborted, { timeout: 60_000 }).toBe(true);
    expect(leaving?.retiring.reason).toMatchObject({ code: 'LEASE_RETIRING', nodeId: 1, version: 1, size: 1 });
    expect(leaving?.isValid()).toBe(true);
    await leaving?.release();
    expect(await shrinking).toMatchObject({ kind: 'scaled', retired: 1, forced: [] });
    expect(leases.find(({ id }) => id === 0)?.retiring.aborted).toBe(false);
    await Promise.all(leases.map((lease) => lease.release()));
    await close();
  });

  it.each([
    ['and it cannot be told', []],
    ['and it blocks again after it was told', ['heard']],
  ])('is killed before the deadline when the lease is lost %s', async (_, mode) => {
    const process = program('blocked-and-cut-off', `${folder}/store`, String(DURATION_MS), ...mode);
    const begun = Date.now();
    expect(await process.exit).toEqual({ code: null, signal: 'SIGKILL' });
    const last = Number(/(\d{13})\n$/.exec(process.stdout())?.[1]);
    expect(last - begun).toBeGreaterThan(DURATION_MS / 2);
    const renewedAtTheLatest = Number(/^(\d{13})$/m.exec(process.stdout())?.[1]);
    expect(last).toBeLessThan(renewedAtTheLatest + DURATION_MS);
  });
});

describe('ids that are made wider twice in a row, while the main thread of their holder is blocked', () => {
  /** As an operator who makes ids wider. */
  const widen = async (idWidth: number) => {
    const { session, close } = await openForOperator();
    const cluster = await readCluster(session);
    if (cluster === undefined) throw new Error('no cluster');
    const wider = { body: encodeCluster({ ...cluster.config, idWidth }, cluster.body), metadata: {} };
    expect(await session.write('cluster.json', wider, cluster.etag)).toMatchObject({ status: 'written' });
    await close();
  };
  const lease = async () =>
    JSON.parse(await readFile(join(folder, 'store/0.json'), 'utf8')) as { idWidth: number; renewal: number; narrowIdsUntil: number };
  /** The keeper looks at the settings after each renewal: at the third from now it has done so, and said at the next what came of it. */
  const renewedThrice = async () => {
    const { renewal } = await lease();
    await expect.poll(async () => (await lease()).renewal, { timeout: 60_000 }).toBeGreaterThanOrEqual(renewal + 3);
  };

  it('are told of to others only when the main thread makes the widest, not when it has gone over to the first', async () => {
    const [first, second] = [join(folder, 'first'), join(folder, 'second')];
    const maker = program('blocked-again', `file:${folder}/store`, String(DURATION_MS), first, second);
    const made = () => [...maker.stdout().matchAll(/^(\d+) (\d+)$/gm)].map(([, id = '', bits]) => ({ id: BigInt(id), bits: Number(bits) }));
    await maker.waitForOutput(/^\d+ 8$/m, 30_000);
    for (const idWidth of [9, 10]) {
      await widen(idWidth);
      await renewedThrice();
    }
    expect(await lease()).toMatchObject({ idWidth: 8 });
    await writeFile(first, '');
    await maker.waitForOutput(/^blocked again\n\d+ 9$/m, 30_000);
    await renewedThrice();
    // It has said that it makes ids of 9 bits by now, which is no answer to the question of 10.
    expect(await lease()).toMatchObject({ idWidth: 8 });
    expect(new Set(made().map(({ bits }) => bits))).toEqual(new Set([8, 9]));
    await writeFile(second, '');
    await maker.waitForOutput(/^\d+ 10$/m, 30_000);
    await expect.poll(lease, { timeout: 30_000 }).toMatchObject({ idWidth: 10 });
    const ids = made();
    expect(ids.every(({ id, bits }, at) => at === 0 || (id > (ids[at - 1]?.id ?? 0n) && bits >= (ids[at - 1]?.bits ?? 0)))).toBe(true);
    // What the new node ids keep away from.
    const lastNarrow = Number((ids.findLast(({ bits }) => bits < 10)?.id ?? 0n) >> 16n);
    expect((await lease()).narrowIdsUntil).toBeGreaterThanOrEqual(lastNarrow);
  });
});
