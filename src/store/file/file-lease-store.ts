import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { orAborted } from '../../base/abort.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import {
  type CallOptions,
  type Interval,
  type LeaseStore,
  type ListedObject,
  type Listing,
  type ObjectChange,
  type StoredObject,
  StoreError,
  type WriteResult,
} from '../lease-store.js';
import { type BootClock, openBootClock } from './boot-clock.js';
import { DecisionChain, type Head } from './decision-chain.js';
import { toStoreError, unless } from './file-fault.js';
import { FolderWatch } from './folder-watch.js';
import { ObjectAges } from './object-ages.js';
import { Damage, readRegular } from './regular-file.js';
import type { SeatRecord } from './seat-record.js';

/** Settings of a {@link FileLeaseStore}. */
export interface FileLeaseStoreOptions {
  /** The folder, made at the first write. All who share it must run on one machine. */
  readonly directory: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** How long to wait between two looks where the folder cannot be watched, in milliseconds. @default 500 */
  readonly pollMs?: number;
  /** The clock that ages are measured on. @default that of this machine */
  readonly boot?: BootClock;
}

/** An object as it was at one moment. */
interface Observation {
  /** Undefined when the history is damaged. */
  readonly head: Head | undefined;
  /** Undefined when there is no object. */
  readonly body: Buffer | undefined;
  /** True when the body is the one that was decided on; false when somebody made, changed or removed the file by hand. */
  readonly decided: boolean;
  readonly metadata: SeatRecord['metadata'];
  readonly etag: string;
}

const KEY = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;

/** A writer or reader that starts over this often gives up: each time another write went through. */
const MAX_ROUNDS = 200;

/**
 * How many objects a listing looks at together: some more than node has threads for files. Still more of them would not make it faster, and would keep
 * waiting whatever else this process does with files, a renewal for one.
 */
const LIST_WIDTH = 8;

/**
 * Leases in a folder of this machine, for any number of processes and containers that share it. `<directory>/<key>` holds exactly the
 * body; what makes writes atomic is in `<directory>/.cas`, see `decision-chain.ts`. There are no locks: a process that dies or is
 * paused at any point blocks nobody. The folder must be on a file system that has hard links.
 *
 * A file that was made or changed by hand is read as it is, with an etag of its own, no metadata and an unknown age. One that was removed
 * by hand is absent. Changes by hand are not atomic: one that meets a write is lost. Where something else than a file stands, or the history is
 * damaged, the object's body says so in words that nobody takes for a lease, its metadata are the last ones known, and a write with its etag mends it.
 *
 * Ages come from the time since this machine started, so no change of the wall clock moves them. They are unknown (at least as long as
 * this instance has seen the object unchanged) across restarts of the machine, and where the system does not name its boots:
 * everywhere but on Linux.
 */
export class FileLeaseStore implements LeaseStore {
  readonly url: string;
  readonly remote = false;
  readonly pollMs: number;
  readonly timeStepMs = 0;
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #ages: ObjectAges;
  readonly #watch: FolderWatch;

  constructor({ directory, clock, random, pollMs = 500, boot = openBootClock({ clock, random }) }: FileLeaseStoreOptions) {
    this.url = `file:${directory}`;
    this.pollMs = pollMs;
    this.#directory = resolve(directory);
    this.#clock = clock;
    this.#random = random;
    this.#ages = new ObjectAges(boot, clock);
    this.#watch = new FolderWatch({ folder: this.#directory, clock, pollMs, isKey: (name) => KEY.test(name) });
  }

  read(key: string, options?: CallOptions): Promise<StoredObject | undefined> {
    return this.#run('not-applied', options, async (signal) => {
      const lookedAt = this.#clock.monotonic();
      const { head, body, decided, metadata, etag } = await this.#observe(this.#chain(key), key, signal);
      if (body === undefined) return undefined;
      const age = this.#ages.of(key, etag, decided ? head?.record?.stamp : undefined, lookedAt);
      return { key, body: body.toString('utf8'), metadata, etag, age, storeTime: this.#now() };
    });
  }

  list(options?: CallOptions): Promise<Listing> {
    return this.#run('not-applied', options, async (signal) => {
      const keys = await this.#keys();
      const objects: ListedObject[] = [];
      const next = keys.values();
      const work = async () => {
        for (const key of next) {
          const lookedAt = this.#clock.monotonic();
          const { head, body, decided, etag } = await this.#observe(this.#chain(key), key, signal);
          if (body === undefined) continue;
          const age = this.#ages.of(key, etag, decided ? head?.record?.stamp : undefined, lookedAt);
          objects.push({ key, etag, size: body.length, age });
        }
      };
      await Promise.all(Array.from({ length: LIST_WIDTH }, work));
      return { objects, storeTime: this.#now() };
    });
  }

  create(key: string, body: string, metadata: Readonly<Record<string, string>>, options?: CallOptions): Promise<WriteResult> {
    return this.#write(key, body, metadata, (found) => found.body === undefined, options);
  }

  replace(
    key: string,
    body: string,
    metadata: Readonly<Record<string, string>>,
    etag: string,
    options?: CallOptions,
  ): Promise<WriteResult> {
    return this.#write(key, body, metadata, (found) => found.body !== undefined && found.etag === etag, options);
  }

  /** Resolves when a file in the folder has changed that `heed` wants; rejects with `signal.reason` when `signal` aborts. */
  changed(signal: AbortSignal, heed?: (change: ObjectChange) => boolean): Promise<void> {
    return this.#watch.next(signal, heed);
  }

  discardProbe(key: string, options?: CallOptions): Promise<void> {
    return this.#run('unknown', options, async () => {
      if (!key.startsWith('probe-')) throw refused(`${this.url}: ${key} is not a scratch object of a probe`);
      await this.#chain(key).erase();
    });
  }

  /** Gives the watcher up. Other calls go on working. */
  async close(): Promise<void> {
    this.#watch.close();
  }

  #write(
    key: string,
    body: string,
    metadata: Readonly<Record<string, string>>,
    condition: (found: Observation) => boolean,
    options: CallOptions | undefined,
  ): Promise<WriteResult> {
    return this.#run('not-applied', options, async (signal): Promise<WriteResult> => {
      const chain = this.#chain(key);
      const found = await this.#observe(chain, key, signal);
      if (!condition(found)) return { status: 'conflict' };
      const bytes = Buffer.from(body, 'utf8');
      const record = { sha256: sha256(bytes), metadata, stamp: this.#ages.stamp() };
      const head = found.head ?? (await chain.restart());
      const seat = head && (await chain.succeed(head, { body: bytes, record }, signal));
      return seat === undefined ? { status: 'conflict' } : { status: 'written', etag: seat, storeTime: this.#now() };
    });
  }

  /**
   * The object at some moment during the call. Changes nothing.
   *
   * Whenever head and file do not match, the head's body may not have been moved yet, or a later one may have been. Only a file that was read after the
   * one and before the other can be excluded was changed by hand.
   */
  async #observe(chain: DecisionChain, key: string, signal: AbortSignal | undefined): Promise<Observation> {
    try {
      return await this.#observeSound(chain, key, signal);
    } catch (error) {
      if (!(error instanceof Damage)) throw error;
      const body = this.#tell(error);
      const metadata = await chain.lastMetadata();
      const etag = `damaged+${sha256(Buffer.from(`${body}${JSON.stringify(metadata)}`))}`;
      return { head: undefined, body, decided: false, metadata, etag };
    }
  }

  /** @throws {@link Damage} when its history is damaged */
  async #observeSound(chain: DecisionChain, key: string, signal: AbortSignal | undefined): Promise<Observation> {
    let moved: string | undefined;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const head = await chain.head(signal);
      const known = head.record?.metadata ?? {};
      const { file, isDamaged } = await this.#file(key);
      const digest = file && sha256(file);
      if (digest !== undefined && digest === head.record?.sha256)
        return { head, body: file, decided: true, metadata: known, etag: head.seat };
      if (head.record === undefined || moved === head.seat) {
        if (!(await chain.isHead(head))) continue;
        return { head, body: file, decided: false, metadata: isDamaged ? known : {}, etag: `${head.seat}+${digest ?? 'absent'}` };
      }
      const body = await chain.bodyOf(head);
      if (body !== undefined) return { head, body, decided: true, metadata: known, etag: head.seat };
      moved = head.seat;
    }
    throw new StoreError(`${this.url}: ${key} changed too often to be read`, { fault: 'unavailable', outcome: 'not-applied' });
  }

  /** What stands at the place where people find the object. */
  async #file(key: string): Promise<{ readonly file: Buffer | undefined; readonly isDamaged: boolean }> {
    try {
      return { file: await readRegular(join(this.#directory, key)), isDamaged: false };
    } catch (error) {
      if (!(error instanceof Damage)) throw error;
      return { file: this.#tell(error), isDamaged: true };
    }
  }

  /** Damage as the body of an object: none that anybody can have written on purpose, so that it is reported for this object alone. */
  #tell({ path, what }: Damage): Buffer {
    return Buffer.from(`<${relative(this.#directory, path)}: ${what}>`);
  }

  /** The names of all objects, those included whose first body has not been moved to its place yet. */
  async #keys(): Promise<string[]> {
    const [files, chains] = await Promise.all(
      [this.#directory, join(this.#directory, '.cas')].map((folder) => unless(['ENOENT'], readdir(folder, { withFileTypes: true }))),
    );
    const names = new Set([
      // People may keep folders of their own here, but none by the name of a lease.
      ...(files ?? []).filter((entry) => entry.isFile() || entry.name.endsWith('.json')).map(({ name }) => name),
      ...(chains ?? []).map(({ name }) => name),
    ]);
    return [...names].filter((name) => KEY.test(name)).sort();
  }

  #chain(key: string): DecisionChain {
    if (!KEY.test(key)) throw refused(`${this.url}: ${JSON.stringify(key)} cannot be a key: letters, digits and ._- only, no dot in front`);
    return new DecisionChain(this.#directory, key, this.#random);
  }

  #now(): Interval {
    const now = Math.floor(this.#clock.now());
    return { min: now, max: now + 1 };
  }

  async #run<T>(
    outcome: 'unknown' | 'not-applied',
    options: CallOptions | undefined,
    work: (signal: AbortSignal | undefined) => Promise<T>,
  ): Promise<T> {
    const signal = options?.signal;
    signal?.throwIfAborted();
    try {
      return await orAborted(work(signal), signal);
    } catch (error) {
      throw toStoreError(error, this.url, outcome);
    }
  }
}

function refused(message: string): StoreError {
  return new StoreError(message, { fault: 'rejected', outcome: 'not-applied' });
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
