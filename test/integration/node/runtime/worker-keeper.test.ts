import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { Lease } from '../../../../src/core/lease/model/lease.js';
import { scaleCluster } from '../../../../src/core/lease/operate/scale.js';
import type { AcquireOptions } from '../../../../src/node/runtime/acquire.js';
import { packageRoot } from '../../../support/package-root.js';
import { workerScene } from './worker-scene.js';

const DURATION_MS = 4_000;

const scene = workerScene();

/** `acquire()` of the build, since the thread is started from its compiled form. */
async function acquireBuilt(options: AcquireOptions) {
  const { acquire } = (await import(
    join(packageRoot, 'dist/index.js')
  )) as typeof import('../../../../src/index.js');
  return acquire({
    store: scene.store,
    keeper: 'worker',
    durationMs: DURATION_MS,
    onLost: 'signal',
    ...options,
  });
}

/** What work on a lease gets, and the lease object. */
function homeOf(lease: Lease) {
  const object = () => JSON.parse(readFileSync(join(scene.folder, 'store', `${lease.id}.json`), 'utf8'));
  return { home: lease.home ?? expect.unreachable(), object };
}

describe('a lease that a worker thread renews', () => {
  it('is left to expire by its release where work on it has not ended', async () => {
    const events: string[] = [];
    const lease = await acquireBuilt({ nodes: 1, onEvent: ({ type }) => events.push(type) });
    const { home, object } = homeOf(lease);
    home.attach({ end: async () => false });
    await lease.release();
    expect([lease.isValid(), events.at(-1)]).toEqual([false, 'release-failed']);
    expect(object()).toMatchObject({ version: 1, taskId: lease.taskId });
    expect(object()).not.toHaveProperty('released');
  });

  it('refuses known nodes that no lease object could have, before the thread sees them', async () => {
    const lease = await acquireBuilt({ nodes: 1 });
    const wrong = { 1: 'one' } as unknown as Record<number, number>;
    expect(() => lease.setKnownNodes(wrong)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
    expect(lease.isValid()).toBe(true);
    await lease.release();
  });

  it('shows a mark once its object has it, whatever answer to an earlier mark comes first', async () => {
    const lease = await acquireBuilt({ nodes: 1 });
    const { home, object } = homeOf(lease);
    void home.mark({ shards: { epoch: 0 } });
    // This thread is blocked, so the answer waits behind the next mark.
    while (object().shards === undefined);
    for (const until = performance.now() + 200; performance.now() < until; );
    await home.mark({ shards: { epoch: 7 } });
    expect(object().shards).toEqual({ epoch: 7 });
    await lease.release();
  });
});

describe('a process whose main thread is blocked', () => {
  /** For longer than the lease lasts without a renewal. */
  const BLOCK_MS = 1.5 * DURATION_MS;
  const blocked = (keeper: string, ms = BLOCK_MS) =>
    scene.program('blocked-main-thread', scene.store, keeper, String(DURATION_MS), String(ms));

  it('keeps its lease when a worker thread renews it, and gives the id back, so that the next process has it at once', async () => {
    const first = blocked('worker');
    expect(await first.exit, first.stderr()).toEqual({ code: 0, signal: null });
    expect(first.stdout()).toBe('id 0 version 1\nvalid true\nreleased\n');
    // Released, not left to expire: the next task has it, however long a process takes to start.
    expect(JSON.parse(await readFile(join(scene.folder, 'store', '0.json'), 'utf8'))).toMatchObject({
      released: true,
      version: 1,
    });
    const next = blocked('worker', 0);
    expect((await next.exit).code, next.stderr()).toBe(0);
    expect(next.stdout()).toMatch(/^id 0 version 2$/m);
  });

  it('loses it when the blocked thread itself should have renewed, and ends with 76', async () => {
    const process = blocked('inline');
    expect(await process.exit).toEqual({ code: 76, signal: null });
    expect(process.stdout()).toBe('id 0 version 1\nvalid false\n');
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

  it('is notified that its node id is being retired as soon as it can listen', async () => {
    const leases = [await acquireBuilt({ nodes: 2 }), await acquireBuilt({ nodes: 2 })];
    const leaving = leases.find(({ id }) => id === 1);
    const { session, close } = await scene.openForOperator();
    const shrinking = scaleCluster({ session, clock: systemClock, random: systemRandom, size: 1 });
    await expect.poll(() => leaving?.retiring.aborted, { timeout: 60_000 }).toBe(true);
    expect(leaving?.retiring.reason).toMatchObject({
      code: 'LEASE_RETIRING',
      nodeId: 1,
      version: 1,
      size: 1,
    });
    expect(leaving?.isValid()).toBe(true);
    await leaving?.release();
    expect(await shrinking).toMatchObject({ kind: 'scaled', retired: 1, forced: [] });
    expect(leases.find(({ id }) => id === 0)?.retiring.aborted).toBe(false);
    await Promise.all(leases.map((lease) => lease.release()));
    await close();
  });
});
