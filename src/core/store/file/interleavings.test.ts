import { AsyncLocalStorage } from 'node:async_hooks';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { seededRandom } from '../../../../test/support/virtual-clock.js';
import { systemClock, systemRandom } from '../../base/system.js';
import { type LeaseStore, StoreError, type WriteResult } from '../lease-store.js';
import { FileLeaseStore } from './file-lease-store.js';

// Processes in slow motion: every file operation waits for the scheduler below, which lets them pass one at a
// time in an order drawn from a seed, keeps some processes waiting for long (SIGSTOP), and never lets others
// continue (SIGKILL).

/** Runs an operation when its turn has come; replaced for each schedule. */
let turn: <T>(operation: () => Promise<T>, step?: Step) => Promise<T> = (operation) => operation();

/** The steps that others can see. */
type Step = 'link' | 'rename' | 'rmdir';

vi.mock('node:fs/promises', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:fs/promises')>();
  const stepped =
    <A extends unknown[], R>(operation: (...args: A) => Promise<R>, step?: Step) =>
    (...args: A) =>
      turn(() => operation(...args), step);
  return {
    ...real,
    access: stepped(real.access),
    mkdir: stepped(real.mkdir),
    lstat: stepped(real.lstat),
    readdir: stepped(real.readdir),
    rename: stepped(real.rename, 'rename'),
    rmdir: stepped(real.rmdir, 'rmdir'),
    unlink: stepped(real.unlink),
    // No power is lost here: a sync is but a step.
    open: stepped(async (path: string, flags: string | number) => {
      const file = await real.open(path, flags);
      handles.add(file);
      return {
        stat: stepped(() => file.stat()),
        read: stepped((buffer: Buffer, offset: number, length: number, position: number) =>
          file.read(buffer, offset, length, position),
        ),
        writeFile: stepped((content: Buffer) => file.writeFile(content)),
        sync: stepped(async () => {}),
        close: stepped(() => file.close()),
      };
    }),
    // The kernel finds the folder first and links into it later; in between the folder may be renamed and
    // emptied.
    link: async (from: string, to: string) => {
      const parent = await turn(() => real.open(join(to, '..'), 'r'));
      handles.add(parent);
      await turn(
        () => real.link(from, `/proc/self/fd/${parent.fd}/${basename(to)}`).finally(() => parent.close()),
        'link',
      );
    },
  };
});

/** Everything that was opened: the killed ones do not close it. */
const handles = new Set<FileHandle>();

interface Waiting {
  readonly process: number;
  readonly step: Step | undefined;
  readonly go: () => void;
}

const processOf = new AsyncLocalStorage<number>();

/** Lets one process at a time pass one operation. `run` resolves when no process can continue. */
class Scheduler {
  readonly killed = new Set<number>();
  readonly #stoppedUntil = new Map<number, number>();
  #waiting: Waiting[] = [];
  #running = 0;

  constructor(
    private readonly chance: () => number,
    private readonly faults: { readonly stop: number; readonly kill: number },
  ) {
    turn = (operation, step) =>
      new Promise((resolve, reject) => {
        const go = () => {
          this.#running += 1;
          operation()
            .then(resolve, reject)
            .finally(() => {
              this.#running -= 1;
            });
        };
        this.#waiting.push({ process: processOf.getStore() ?? 0, step, go });
      });
  }

  async run(): Promise<void> {
    for (let step = 0; step < 20_000; step += 1) {
      await this.#settle();
      this.#waiting = this.#waiting.filter(({ process }) => !this.killed.has(process));
      const awake = this.#waiting.filter(({ process }) => (this.#stoppedUntil.get(process) ?? 0) <= step);
      const next = (awake.length > 0 ? awake : this.#waiting)[
        Math.floor(this.chance() * (awake.length || this.#waiting.length))
      ];
      if (next === undefined) return;
      // Pauses and deaths fall more often where they hurt.
      const weight = next.step === undefined ? 1 : 8;
      if (this.chance() < this.faults.kill * weight) this.killed.add(next.process);
      else if (this.chance() < this.faults.stop * weight)
        this.#stoppedUntil.set(next.process, step + Math.floor(this.chance() * 300));
      else {
        this.#waiting.splice(this.#waiting.indexOf(next), 1);
        next.go();
      }
    }
    throw new Error('the processes never came to an end');
  }

  /** Until the running operation is done and all that follows from it waits for its turn. */
  async #settle(): Promise<void> {
    do await new Promise((resolve) => setImmediate(resolve));
    while (this.#running > 0);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** What the object holds: how often each process has counted. */
type Tally = Readonly<Record<string, number>>;
const tallyOf = (body: string): Tally => JSON.parse(body);

/** One process: counts `times` times by read and replace, and settles unknown outcomes by reading back. */
async function count(
  store: LeaseStore,
  name: string,
  times: number,
  confirm: (etag: string | undefined) => void,
): Promise<void> {
  for (let done = 0; done < times; ) {
    const object = await store.read('0.json');
    const before = object === undefined ? {} : tallyOf(object.body);
    const after = JSON.stringify({ ...before, [name]: done + 1 });
    let result: WriteResult | undefined;
    try {
      result =
        object === undefined
          ? await store.create('0.json', after, {})
          : await store.replace('0.json', after, {}, object.etag);
    } catch (error) {
      if (!(error instanceof StoreError) || error.outcome !== 'unknown') throw error;
    }
    const readBack = result === undefined ? await store.read('0.json') : undefined;
    if (
      result?.status === 'written' ||
      (readBack !== undefined && tallyOf(readBack.body)[name] === done + 1)
    ) {
      done += 1;
      confirm(result?.status === 'written' ? result.etag : undefined);
    }
  }
}

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodelease-steps-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Four processes, one of them a reader, under one schedule. What went wrong, or undefined. */
async function schedule(seed: number, faults: { stop: number; kill: number }): Promise<string | undefined> {
  const chance = seededRandom(seed).next;
  const directory = join(folder, `${seed}-${faults.stop}-${faults.kill}`);
  const scheduler = new Scheduler(chance, faults);
  const confirmed = [0, 0, 0];
  const etags: string[] = [];
  const problems: string[] = [];
  const open = () => new FileLeaseStore({ directory, clock: systemClock, random: systemRandom });
  const start = (process: number, work: () => Promise<void>) =>
    processOf.run(
      process,
      () => void work().catch((error: unknown) => problems.push(`process ${process}: ${String(error)}`)),
    );

  for (const writer of [0, 1, 2]) {
    start(writer, () =>
      count(open(), `${writer}`, 4, (etag) => {
        confirmed[writer] = (confirmed[writer] ?? 0) + 1;
        if (etag !== undefined) etags.push(etag);
      }),
    );
  }
  start(3, async () => {
    const store = open();
    let last: Tally = {};
    for (let look = 0; look < 12; look += 1) {
      const object = await store.read('0.json');
      const seen = object === undefined ? {} : tallyOf(object.body);
      for (const [name, times] of Object.entries(last))
        if ((seen[name] ?? 0) < times) problems.push(`a reader saw ${name} go back`);
      if (object !== undefined && !/^[0-9]+-[0-9a-f]{24}$/.test(object.etag))
        problems.push(`taken for a change by hand: ${object.etag}`);
      last = seen;
    }
  });
  await scheduler.run();

  // The remaining processes continue at once, whatever the others left behind.
  const calm = new Scheduler(chance, { stop: 0, kill: 0 });
  let final: Tally = {};
  start(4, async () => {
    const store = open();
    await count(store, 'survivor', 1, () => {});
    final = tallyOf((await store.read('0.json'))?.body ?? '{}');
    const listed = (await store.list()).objects;
    if (listed.length !== 1) problems.push(`listed: ${JSON.stringify(listed)}`);
  });
  await calm.run();
  await Promise.all([...handles].map((handle) => handle.close()));
  handles.clear();

  for (const writer of [0, 1, 2]) {
    const counted = final[`${writer}`] ?? 0;
    const sure = confirmed[writer] ?? 0;
    const most = scheduler.killed.has(writer) ? sure + 1 : sure;
    if (counted < sure || counted > most)
      problems.push(`writer ${writer}: ${sure} confirmed, ${counted} counted`);
  }
  if (final.survivor !== 1) problems.push('the survivor could not write');
  if (new Set(etags).size !== etags.length) problems.push('an etag was given twice');
  const file = join(directory, '0.json');
  if (!existsSync(file) || readFileSync(file, 'utf8') !== JSON.stringify(final))
    problems.push('the public file is not the last state');
  const seats = readdirSync(join(directory, '.cas', '0.json')).length;
  if (seats > 12) problems.push(`${seats} seats were left behind`);
  return problems.length === 0 ? undefined : `seed ${seed}: ${problems.join('; ')}`;
}

const SEEDS = Number(process.env.NODELEASE_SEEDS ?? 12);
const FIRST = Number(process.env.NODELEASE_FIRST_SEED ?? 1);

describe('processes that share a folder, one file operation at a time', { timeout: 600_000 }, () => {
  it.each([
    ['run freely', { stop: 0, kill: 0 }],
    ['are paused at any operation and continue later', { stop: 0.02, kill: 0 }],
    ['are killed at any operation', { stop: 0.01, kill: 0.002 }],
  ])('lose no update and never go back when they %s', async (_, faults) => {
    for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1)
      expect(await schedule(seed, faults)).toBeUndefined();
  });
});

it('processes that mend a damaged object at the same time: one writes, the others do not', {
  timeout: 600_000,
}, async () => {
  for (let seed = FIRST; seed < FIRST + 4 * SEEDS; seed += 1) {
    const directory = mkdtempSync(join(folder, 'damaged-'));
    const open = () => new FileLeaseStore({ directory, clock: systemClock, random: systemRandom });
    turn = (operation) => operation();
    await open().create('0.json', 'x', {});
    rmSync(join(directory, '.cas/0.json/0'), { recursive: true });
    writeFileSync(join(directory, '.cas/0.json/0'), '');
    const etag = (await open().read('0.json'))?.etag ?? '';
    const scheduler = new Scheduler(seededRandom(seed).next, { stop: 0.01, kill: 0 });
    const results = Promise.allSettled(
      [0, 1, 2].map((process) =>
        processOf.run(process, () => open().replace('0.json', `${process}`, {}, etag)),
      ),
    );
    await scheduler.run();
    turn = (operation) => operation();
    const ends = (await results).map((each) =>
      each.status === 'fulfilled' ? each.value.status : each.reason,
    );
    const won = ends.indexOf('written');
    const others = ends.filter((_, process) => process !== won);
    const refused = others.filter((end) => end === 'conflict' || end.outcome === 'unknown');
    expect(refused, `seed ${seed}`).toEqual(others);
    if (won >= 0) expect((await open().read('0.json'))?.body, `seed ${seed}`).toBe(`${won}`);
  }
});

describe('a decision that lands in a folder which another process is just removing', () => {
  const write = (store: LeaseStore, body: string, from: WriteResult) =>
    store.replace('0.json', body, {}, from.status === 'written' ? from.etag : '');

  /** A folder with a first state, and a write of A on it that waits before or after it has linked. */
  async function startA(wait: 'before' | 'after') {
    const directory = mkdtempSync(join(folder, 'trash-'));
    const open = () => new FileLeaseStore({ directory, clock: systemClock, random: systemRandom });
    turn = (operation) => operation();
    const first = await open().create('0.json', 'first', {});
    let go = () => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    const reached = new Promise<void>((resolve) => {
      turn = async (operation, step) => {
        if (step !== 'link') return operation();
        const meet = async () => {
          resolve();
          await held;
        };
        if (wait === 'before') await meet();
        const result = await operation();
        if (wait === 'after') await meet();
        return result;
      };
    });
    const a = write(open(), 'of A', first);
    await reached;
    turn = (operation) => operation();
    return { directory, first, a, go, b: open() };
  }

  it('is a conflict', async () => {
    const { directory, first, a, go, b } = await startA('before');
    const second = await write(b, 'second', first);
    const removing = new Promise<void>((resolve) => {
      turn = (operation, step) => (step === 'rmdir' ? new Promise(() => resolve()) : operation());
    });
    void write(b, 'third', second);
    await removing;
    turn = (operation) => operation();
    go();
    expect(await a).toEqual({ status: 'conflict' });
    expect((await b.read('0.json'))?.body).toBe('third');
    expect(readFileSync(join(directory, '0.json'), 'utf8')).toBe('third');
  });

  it('looks like a decision that others have long succeeded: the outcome is unknown', async () => {
    const { directory, a, go, b } = await startA('after');
    for (const body of ['second', 'third', 'fourth']) {
      const { etag } = (await b.read('0.json')) ?? { etag: '' };
      expect((await b.replace('0.json', body, {}, etag)).status).toBe('written');
    }
    go();
    await expect(a).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      fault: 'unavailable',
      outcome: 'unknown',
    });
    expect(readFileSync(join(directory, '0.json'), 'utf8')).toBe('fourth');
  });
});
