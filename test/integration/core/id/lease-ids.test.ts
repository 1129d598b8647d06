import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../../../src/core/base/errors.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { IdsExhaustedError } from '../../../../src/core/id/id-time.js';
import { uniqueIds } from '../../../../src/core/id/lease-ids.js';
import { staticLease } from '../../../../src/core/lease/hold/static-lease.js';
import { LeaseReleasedError } from '../../../../src/core/lease/model/lease.js';
import { acquire } from '../../../../src/node/runtime/acquire.js';
import { type FleetStore, newStore, removeStores } from '../../../support/fleet.js';
import { packageRoot } from '../../../support/package-root.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { killAll, runProcess, type TestProcess } from '../../../support/processes.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';
import { expectIncreasing } from './id-support.js';

/** Of a lease that has to be kept, also on a machine with other things to do. */
const DURATION_MS = 4_000;
/** How long the first id may take on a loaded machine. */
const FIRST_ID_MS = 60_000;

afterEach(async () => {
  await killAll();
  await removeStores();
  removeFolders();
});

interface Maker extends TestProcess {
  /** What it has made so far, in order. */
  made(): bigint[];
  /** How many bits each of these has for its node id. */
  widths(): number[];
}

type Mode = 'burst' | 'steadily' | 'blocked' | 'idle';

interface MakerOptions {
  /** @default 'inline' */
  readonly keeper?: 'inline' | 'worker';
  /** @default {@link DURATION_MS} */
  readonly durationMs?: number;
  /** Ends the blocking when it is there. */
  readonly file?: string;
}

function startMaker(
  store: FleetStore,
  mode: Mode,
  { keeper = 'inline', durationMs = DURATION_MS, file = '' }: MakerOptions = {},
): Maker {
  const [, url = '', , endpoint = '-'] = store.options;
  const program = fileURLToPath(new URL('../../../fixtures/programs/id-maker.mjs', import.meta.url));
  const maker = runProcess(
    process.execPath,
    [program, url, endpoint, keeper, String(durationMs), mode, file],
    { env: store.env },
  );
  const lines = () => [...maker.stdout().matchAll(/^(\d+) (\d+)$/gm)];
  return {
    ...maker,
    made: () => lines().map(([, id]) => BigInt(id ?? '')),
    widths: () => lines().map(([, , bits]) => Number(bits)),
  };
}

/**
 * The first and the last id of as many as there are at once: the last one is ahead of the time, at the end of
 * the lease.
 */
async function burst(store: FleetStore, options: MakerOptions = {}): Promise<Maker> {
  const maker = startMaker(store, 'burst', options);
  const [, count] = await maker.waitForOutput(/^made (\d+)$/m, FIRST_ID_MS);
  expect(Number(count)).toBeGreaterThan(0);
  expectIncreasing(maker.made());
  return maker;
}

const timeOf = (id: bigint | undefined) => Number((id ?? 0n) >> 16n);

describe('the ids of the next tenure of a node id', () => {
  it('are greater than all before when the lease was released, although it was ahead of the time, whichever thread keeps it', async () => {
    const store = await newStore('file');
    const ids: bigint[] = [];
    for (const keeper of ['inline', 'worker'] as const) {
      const maker = await burst(store, { keeper });
      maker.kill('SIGTERM');
      expect((await maker.exit).code).toBe(0);
      ids.push(...maker.made());
    }
    const last = startMaker(store, 'steadily');
    await last.waitForOutput(/^\d+ \d+$/m, FIRST_ID_MS);
    expectIncreasing([...ids, ...last.made()]);
  });
});

describe('a process that is stopped while it makes ids', () => {
  // Each in a cluster of its own: what takes time is that the leases run out.
  it('makes none that its successor makes, too, when it goes on, and soon none at all, whichever thread keeps the lease', async () => {
    const modes = [
      ['steadily', 'inline'],
      ['steadily', 'worker'],
      ['blocked', 'worker'],
    ] as const;
    await Promise.all(modes.map(([mode, keeper]) => stopAndGoOn(mode, keeper)));
  });

  async function stopAndGoOn(mode: Mode, keeper: 'inline' | 'worker'): Promise<void> {
    const store = await newStore('file');
    const first = startMaker(store, mode, { keeper });
    await first.waitForOutput(/^(\d+ \d+\n){20}/m, FIRST_ID_MS);
    const handle = new ProcessHandle(first.pid);
    await handle.pause();
    const second = await burst(store);
    const before = first.made().length;
    handle.signal('SIGCONT');
    await first.waitForOutput(/^LEASE_LOST$/m);
    expect((await first.exit).code).toBe(1);
    // What it had taken note of before it was stopped was its own: 4096 ids, 300 of them for each that it
    // says.
    expect(first.made().length - before).toBeLessThan(20);
    expectIncreasing([...first.made(), ...second.made()]);
  }
});

describe('a process whose main thread is blocked while it makes ids', () => {
  it('goes on making them when a worker thread keeps the lease: they follow the time beyond what was its end', async () => {
    const store = await newStore('file');
    const maker = startMaker(store, 'blocked', { keeper: 'worker' });
    await maker.waitForOutput(/^\d+ \d+$/m, FIRST_ID_MS);
    const first = timeOf(maker.made()[0]);
    await expect
      .poll(() => timeOf(maker.made().at(-1)) - first, { timeout: FIRST_ID_MS })
      .toBeGreaterThan(1.5 * DURATION_MS);
    expect(maker.stdout()).not.toContain('LEASE');
    expectIncreasing(maker.made());
  });

  it('is refused them when the lease is not kept', async () => {
    const store = await newStore('file');
    const maker = startMaker(store, 'blocked', { durationMs: 1_000 });
    await maker.waitForOutput(/^LEASE_LOST$/m);
    expect((await maker.exit).code).toBe(1);
    expect(maker.stdout()).not.toMatch(/LEASE_LOST\n\d/);
  });
});

describe('a wider width, where a worker thread keeps the lease', () => {
  const widen = async (store: FleetStore) => {
    const config = JSON.parse((await store.read('cluster.json')) ?? '') as Record<string, unknown>;
    await store.spoil('cluster.json', JSON.stringify({ ...config, idWidth: 9 }));
  };
  const lease = async (store: FleetStore) =>
    JSON.parse((await store.read('0.json')) ?? '') as {
      idWidth: number;
      renewal: number;
      narrowIdsUntil: number;
    };

  it('is used by the main thread before others learn of it: while that is blocked they do not', async () => {
    const store = await newStore('file');
    const file = join(newFolder(), 'go-on');
    const maker = startMaker(store, 'blocked', { keeper: 'worker', file });
    await maker.waitForOutput(/^\d+ 8$/m, FIRST_ID_MS);
    await widen(store);
    // The next renewal may have read the settings before that; the one after it has not.
    const { renewal } = await lease(store);
    await expect.poll(async () => (await lease(store)).renewal).toBeGreaterThan(renewal + 1);
    expect((await lease(store)).idWidth).toBe(8);
    expect(new Set(maker.widths())).toEqual(new Set([8]));
    await writeFile(file, '');
    await maker.waitForOutput(/^\d+ 9$/m);
    await expect.poll(async () => (await lease(store)).idWidth).toBe(9);
    expect(maker.widths()).toEqual([...maker.widths()].sort());
    // What the new node ids keep away from.
    const lastNarrow = maker.made()[maker.widths().lastIndexOf(8)] ?? 0n;
    expect((await lease(store)).narrowIdsUntil).toBeGreaterThanOrEqual(Number(lastNarrow >> 16n));
    expectIncreasing(maker.made());
  });

  it('is announced at once by a process that makes no ids, whether it is blocked or not', async () => {
    const store = await newStore('file');
    const file = join(newFolder(), 'go-on');
    const idle = startMaker(store, 'idle', { keeper: 'worker', file });
    await idle.waitForOutput(/version 1/, FIRST_ID_MS);
    await widen(store);
    await expect.poll(async () => (await lease(store)).idWidth).toBe(9);
  });
});

describe('the generator of a lease that a worker thread keeps', () => {
  // The thread is started from its compiled form.
  const acquireInWorker: typeof import('../../../../src/node/runtime/worker/worker-lease.js').acquireInWorker =
    async (options) => {
      const file = join(packageRoot, 'dist/node/runtime/worker/worker-lease.js');
      return (
        (await import(file)) as typeof import('../../../../src/node/runtime/worker/worker-lease.js')
      ).acquireInWorker(options);
    };
  const acquireThere = () =>
    acquireInWorker({
      settings: {
        store: `file:${newFolder()}`,
        taskId: 'task',
        nodes: 1,
        durationMs: DURATION_MS,
        killOnLoss: false,
      },
      ...{ clock: systemClock, random: systemRandom },
      session: () => Promise.reject(new Error('not used')),
      emit: () => undefined,
    });

  it('makes none from the moment on in which release() is called, before the thread has heard of it', async () => {
    const lease = await acquireThere();
    const ids = await uniqueIds(lease);
    ids.next();
    const releasing = lease.release();
    expect(() => ids.next()).toThrow(expect.objectContaining({ code: 'LEASE_RELEASED' }));
    await expect(ids.nextAsync()).rejects.toMatchObject({ code: 'LEASE_RELEASED' });
    await releasing;
    await expect(uniqueIds(lease)).rejects.toMatchObject({ code: 'LEASE_RELEASED' });
  });

  it('is had by all who ask at the same time, and by none who comes after the release was asked for', async () => {
    const lease = await acquireThere();
    const [one, other] = await Promise.all([uniqueIds(lease), uniqueIds(lease)]);
    expect(other).toBe(one);
    const another = await acquireThere();
    const asked = uniqueIds(another);
    const releasing = another.release();
    await expect(asked).rejects.toMatchObject({ code: 'LEASE_RELEASED' });
    await Promise.all([releasing, lease.release()]);
  });
});

describe('the generator of a lease', () => {
  const acquireHere = async () =>
    acquire({ store: `file:${newFolder()}`, nodes: 1, durationMs: DURATION_MS, onLost: 'signal' });

  it('makes ids ahead of the time until they are exhausted, says so, and waits for more where it may', async () => {
    await using lease = await acquireHere();
    const ids = await uniqueIds(lease);
    const made = new BigUint64Array(4_000_000);
    const error = (() => {
      try {
        ids.fill(made);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(IdsExhaustedError);
    const { filled, waitMs } = error as IdsExhaustedError;
    expect(filled).toBeGreaterThan(300_000);
    expect(waitMs).toBeGreaterThan(0);
    expect(() => ids.next()).toThrow(IdsExhaustedError);
    const next = await ids.nextAsync();
    expect(next).toBeGreaterThan(made[filled - 1] as bigint);
    expect(ids.decode(next)).toMatchObject({ nodeId: lease.id, group: 0, index: 8 });
  });

  it('makes none once the lease has been released', async () => {
    const lease = await acquireHere();
    const ids = await uniqueIds(lease, { advanceMs: 0 });
    ids.next();
    await lease.release();
    expect(() => ids.next()).toThrow(LeaseReleasedError);
    await expect(ids.nextAsync()).rejects.toThrow(LeaseReleasedError);
    expect(() => ids.fill(new BigUint64Array(1))).toThrow(LeaseReleasedError);
    await expect(uniqueIds(lease)).rejects.toThrow(LeaseReleasedError);
  });

  it('is one and the same however often it is asked for, and refused with other options', async () => {
    await using lease = await acquireHere();
    const [one, other] = await Promise.all([
      uniqueIds(lease, { lagMs: 100 }),
      uniqueIds(lease, { lagMs: 100 }),
    ]);
    expect(other).toBe(one);
    await expect(uniqueIds(lease, { lagMs: 200 })).rejects.toThrow(ConfigError);
  });

  it('is not to be had for a fixed node id', async () => {
    await expect(uniqueIds(staticLease({ id: 3, taskId: 'fixed' }))).rejects.toThrow(
      /^lease: expected .*standaloneIds/,
    );
  });
});
