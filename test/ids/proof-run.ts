import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../../src/core/base/system.js';
import { cluster16, type IdLayout, idsPerMs, snowflake } from '../../src/core/id/index.js';
import { IdBitmap } from './id-bitmap.js';
import type { Plant } from './planted-ids.js';
import { Shared, type TenureReport, type ThreadSettings } from './proof-messages.js';

/** The layouts that the proof knows. */
export const LAYOUTS = {
  cluster16: () => cluster16(8),
  snowflake: () => snowflake(),
} as const satisfies Record<string, () => IdLayout>;

/** What a run is to do. */
export interface ProofOptions {
  /** How many ids and how many tenures there have to be before it ends. */
  readonly ids: number;
  readonly tenures: number;
  readonly threads: number;
  readonly nodes: number;
  /** How many times faster than the machine's the run's time passes. */
  readonly speed: number;
  readonly layout: keyof typeof LAYOUTS;
  readonly seed: number;
  readonly plant: Plant | undefined;
}

/** What came of it. */
export interface ProofResult {
  readonly ids: number;
  readonly tenures: readonly TenureReport[];
  /** Of real time. */
  readonly seconds: number;
  /** Of the run's own time. */
  readonly storeSeconds: number;
  readonly cpuSeconds: number;
  readonly bitmapBytes: number;
  readonly residentBytes: number;
}

const LEASE = { durationMs: 9_000, graceMs: 1_000 } as const;
/**
 * How much more time there is room for in the bitmap than the ids take where every millisecond is used up.
 */
const ROOM = 2;
/** How much time there is room for in it for each tenure, in milliseconds: many are under way at once. */
const TENURE_MS = 6_000;
const MARGIN_MS = 90_000;
const LOOK_MS = 10;
/** A run that makes no ids for so long has got stuck, in milliseconds. */
const STUCK_MS = 20_000;

/**
 * Lets threads acquire node ids, make unique ids and lose the node ids again, until there are enough ids.
 *
 * @throws Error when a thread fails, or no more ids are made
 */
export async function runProof(options: ProofOptions): Promise<ProofResult> {
  const { threads, nodes, speed, seed, plant } = options;
  const layout = LAYOUTS[options.layout]();
  const epochMs = Date.now();
  const usedMs = Math.ceil(
    Math.max((options.ids / (nodes * idsPerMs(layout))) * ROOM, options.tenures * TENURE_MS),
  );
  const spanMs = usedMs + 2 * MARGIN_MS;
  const bitmap = IdBitmap.create({ layout, nodes, fromMs: epochMs - MARGIN_MS, spanMs });
  const shared = new Shared();
  const directory = await mkdtemp(join(tmpdir(), 'nodelease-ids-'));
  const time = { speed, begunAt: systemClock.monotonic(), epochMs };
  const tenures: TenureReport[] = [];
  const settings: Omit<ThreadSettings, 'thread'> = {
    ...{
      seed,
      plant,
      directory,
      ...LEASE,
      time,
      shape: bitmap.shape,
      defaultLayout: options.layout === 'cluster16',
    },
    ...{ bitmap: bitmap.memory, shared: shared.memory },
  };
  const running = Array.from(
    { length: threads },
    (_, thread) => new ProofThread({ ...settings, thread }, tenures),
  );
  const done = new AbortController();
  try {
    const ended = Promise.all(running.map((thread) => thread.ended));
    await Promise.race([ended, enough(options, shared, tenures, usedMs / speed)]);
    shared.stop();
    await Promise.race([ended, stuck(done.signal)]);
    const realMs = systemClock.monotonic() - time.begunAt;
    const { user, system } = process.cpuUsage();
    return {
      ...{
        ids: shared.ids,
        tenures,
        seconds: realMs / 1_000,
        storeSeconds: (realMs * speed) / 1_000,
        cpuSeconds: (user + system) / 1e6,
      },
      ...{ bitmapBytes: bitmap.memory.byteLength, residentBytes: process.memoryUsage.rss() },
    };
  } finally {
    done.abort();
    await Promise.all(running.map((thread) => thread.terminate()));
    await rm(directory, { recursive: true, force: true });
  }
}

/** A thread, and what becomes of it. */
class ProofThread {
  /** Resolves when it has done its part. */
  readonly ended: Promise<void>;
  readonly #worker: Worker;

  constructor(settings: ThreadSettings, tenures: TenureReport[]) {
    const worker = new Worker(new URL('./proof-thread.js', import.meta.url), { workerData: settings });
    worker.on('message', (report: TenureReport) => tenures.push(report));
    this.#worker = worker;
    this.ended = new Promise((resolve, reject) => {
      worker.on('error', reject);
      worker.on('exit', (code) =>
        code === 0 ? resolve() : reject(new Error(`thread ${settings.thread} ended with exit code ${code}`)),
      );
    });
    // A caller that waits for all of them hears of the first failure only.
    this.ended.catch(() => undefined);
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** Resolves when there is as much as was asked for. */
async function enough(
  wanted: ProofOptions,
  shared: Shared,
  tenures: readonly TenureReport[],
  mostMs: number,
): Promise<void> {
  const begun = systemClock.monotonic();
  let [seen, since] = [0, begun];
  while (shared.ids < wanted.ids || tenures.length < wanted.tenures) {
    // What was planted has been found: there is nothing more to be learnt.
    if (wanted.plant !== undefined && tenures.some(({ faults }) => faults.repeated > 0)) return;
    await systemClock.sleep(LOOK_MS);
    const now = systemClock.monotonic();
    if (shared.ids > seen) [seen, since] = [shared.ids, now];
    const sofar = `${seen} ids and ${tenures.length} tenures`;
    if (now - since > STUCK_MS) throw new Error(`no more ids after ${sofar}`);
    if (now - begun > mostMs)
      throw new Error(
        `the time that the bitmap has room for is over after ${sofar}: a lower --speed makes more of it`,
      );
  }
}

async function stuck(done: AbortSignal): Promise<never> {
  await systemClock.sleep(STUCK_MS, done);
  throw new Error('the threads do not come to an end');
}
