import { createHash } from 'node:crypto';
import { lstat, readdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { orAborted } from '../../base/abort.js';
import { checkArguments, checked, NAME } from '../../base/arguments.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import { concurrently } from '../../base/concurrently.js';
import { codeOf, Damage, kindOf, makeFolder, readRegular, unless } from '../../base/files.js';
import type { Heed } from '../changes.js';
import {
  type Interval,
  type LeaseStore,
  type Listing,
  type ListOptions,
  type ObjectMetadata,
  type StoreCallOptions,
  type StoredObject,
  StoreError,
  type StoreFault,
  type WriteResult,
} from '../lease-store.js';
import { type ConditionalWrite, StoreDriver } from '../store-driver.js';
import type { StoreRequest } from '../store-request.js';
import { CasLog, type Head, MAX_BODY } from './cas-log.js';
import { FolderWatch } from './folder-watch.js';
import { type BootClock, ObjectAges, openBootClock, type Stamp } from './object-ages.js';

/** Settings of a {@link FileLeaseStore}. */
export interface FileLeaseStoreOptions {
  /** The folder, made at the first write. All who share it must run on one machine. */
  readonly directory: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** The pause between two polls if the folder cannot be watched, in milliseconds. @default 500 */
  readonly pollMs?: number | undefined;
  /** The clock that ages are measured on. @default that of this machine */
  readonly boot?: BootClock | undefined;
}

/** An object as it was at one moment. */
interface Observation {
  /** Undefined when the history is damaged. */
  readonly head?: Head;
  /** Undefined when there is no object. */
  readonly body: Buffer | undefined;
  /** When the body was written; undefined when the file was made, changed or removed by hand. */
  readonly stamp?: Stamp | undefined;
  readonly metadata: ObjectMetadata;
  readonly etag: string;
}

const KEY = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;
/** Of an object here, or in a folder, where it is only read. */
const READABLE = /^([A-Za-z0-9_-][A-Za-z0-9._-]{0,199}\/)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;

/** A reader that starts over this often gives up: each time another write went through. */
const MAX_ROUNDS = 200;

/**
 * How many objects a listing reads at once: some more than node has threads for files. More would not be
 * faster, and delay a renewal.
 */
const LIST_WIDTH = 8;

/**
 * Leases in a folder of this machine, for any number of processes and containers that share it.
 * `<directory>/<key>` holds exactly the body; what makes writes atomic is in `<directory>/.cas`, see
 * `cas-log.ts`. There are no locks: a process that dies or is paused at any point blocks no other. The folder
 * must be on a file system that has hard links.
 *
 * A file that was made or changed by hand is read as it is, with a separate etag, the last metadata that were
 * written and an unknown age. One that was removed by hand is absent. Changes by hand are not atomic: one that meets a write
 * is lost. If there is something other than a file, or the history is damaged, the object's body says so and
 * is no lease, its metadata are the last ones known, and a write with its etag mends it.
 *
 * Ages come from the time since this machine started, so no change of the wall clock moves them. They are
 * unknown (at least as long as this instance has seen the object unchanged) across restarts of the machine,
 * and where the system does not name its boots: everywhere but on Linux.
 */
export class FileLeaseStore extends StoreDriver implements LeaseStore {
  override readonly remote = false;
  override readonly timeStepMs = 0;
  readonly pollMs: number;
  readonly #directory: string;
  readonly #ages: ObjectAges;
  readonly #watch: FolderWatch;

  constructor(private readonly options: FileLeaseStoreOptions) {
    const { directory, clock, random, pollMs = 500, boot } = checked(options, { directory: NAME });
    checkArguments({ clock, random });
    super(`file:${directory}`, '');
    this.pollMs = pollMs;
    try {
      this.#directory = resolve(directory);
    } catch (error) {
      // The working directory has been removed.
      throw toStoreError(error, this.url, 'not-applied');
    }
    this.#ages = new ObjectAges(boot ?? openBootClock({ clock, random }), clock);
    this.#watch = new FolderWatch(this.#directory, clock, pollMs, (name) => KEY.test(name));
  }

  read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    return this.#run('not-applied', options, async (signal) => {
      const found = await this.#object(key, signal);
      return found && { key, ...found, body: found.body.toString('utf8'), storeTime: this.#now() };
    });
  }

  list(options?: ListOptions): Promise<Listing> {
    return this.#run('not-applied', options, async (signal) => {
      const found = await concurrently(await this.#keys(options?.folders), LIST_WIDTH, async (key) => ({
        key,
        object: await this.#object(key, signal),
      }));
      const objects = found.flatMap(({ key, object }) =>
        object === undefined ? [] : [{ key, etag: object.etag, size: object.body.length, age: object.age }],
      );
      return { objects, storeTime: this.#now() };
    });
  }

  /** The identity of a file that is made once: a copy is another file. */
  epoch(options?: StoreCallOptions): Promise<string> {
    return this.#run('not-applied', options, async () => {
      const path = join(this.#directory, '.cas', '.epoch');
      await makeFolder(dirname(path));
      await unless(['EEXIST'], writeFile(path, '', { flag: 'wx' }));
      const { ino, birthtimeNs } = await stat(path, { bigint: true });
      return `${ino}-${birthtimeNs}`;
    });
  }

  /**
   * Resolves when a file in the folder has changed that `heed` wants; rejects with `signal.reason` when
   * `signal` aborts.
   */
  changed(signal: AbortSignal, heed?: Heed): Promise<void> {
    return this.#watch.next(signal, heed);
  }

  protected discard(request: StoreRequest, key: string): Promise<void> {
    return this.#run('unknown', request, () => this.#log(key).erase());
  }

  /** Gives the watcher up. Other calls still work. */
  async close(): Promise<void> {
    this.#watch.close();
  }

  protected write(
    request: StoreRequest,
    { key, body, metadata, etag: expected }: ConditionalWrite,
  ): Promise<WriteResult> {
    return this.#run('not-applied', request, async (signal): Promise<WriteResult> => {
      const log = this.#log(key);
      const found = await this.#observe(log, key, signal);
      // The etag of an object that is absent is no etag of an object.
      const current = found.body === undefined ? undefined : found.etag;
      if (current !== expected) return { status: 'conflict' };
      const bytes = Buffer.from(body, 'utf8');
      const record = { sha256: sha256(bytes), metadata, stamp: this.#ages.stamp() };
      const head = found.head ?? (await log.restart());
      const etag = head && (await log.succeed(head, bytes, record, signal));
      return etag === undefined
        ? { status: 'conflict' }
        : { status: 'written', etag, storeTime: this.#now() };
    });
  }

  async #object(key: string, signal: AbortSignal | undefined) {
    const lookedAt = this.options.clock.monotonic();
    const { body, metadata, etag, stamp } = await this.#observe(this.#log(key, READABLE), key, signal);
    return body && { body, metadata, etag, age: this.#ages.of(key, etag, stamp, lookedAt) };
  }

  /**
   * The object at some moment during the call. Changes nothing.
   *
   * Where head and file do not match, the head's body may not have been moved yet, or a later one may have
   * been. The file was changed by hand only if it was read after the one and before the other.
   */
  async #observe(log: CasLog, key: string, signal: AbortSignal | undefined): Promise<Observation> {
    const found = await this.#observeSound(log, key, signal).catch(damageOf);
    if (!(found instanceof Damage)) return found;
    const body = this.#bodyFor(found);
    const metadata = await log.lastMetadata();
    const etag = `damaged+${sha256(Buffer.from(`${body}${JSON.stringify(metadata)}`))}`;
    return { body, metadata, etag };
  }

  /** @throws {@link Damage} when its history is damaged */
  async #observeSound(log: CasLog, key: string, signal: AbortSignal | undefined): Promise<Observation> {
    let moved: string | undefined;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const head = await log.head(signal);
      const { name, record } = head;
      const written = { head, stamp: record?.stamp, metadata: record?.metadata ?? {}, etag: name };
      const file = await readRegular(join(this.#directory, key), MAX_BODY).catch(damageOf);
      const body = file instanceof Damage ? this.#bodyFor(file) : file;
      const digest = body && sha256(body);
      if (digest !== undefined && digest === record?.sha256) return { ...written, body };
      if (record === undefined || moved === name) {
        if (!(await log.isHead(head))) continue;
        return { head, body, metadata: written.metadata, etag: `${name}+${digest ?? 'absent'}` };
      }
      const unmoved = await log.bodyOf(head);
      if (unmoved !== undefined) return { ...written, body: unmoved };
      moved = name;
    }
    throw new StoreError(`${this.url}: ${key} changed too often to be read`, {
      fault: 'unavailable',
      outcome: 'not-applied',
    });
  }

  /**
   * Damage as the body of an object: one that no person writes on purpose, so that it is reported for this
   * object alone.
   */
  #bodyFor({ path, what }: Damage): Buffer {
    return Buffer.from(`<${relative(this.#directory, path)}: ${what}>`);
  }

  /** The names of all objects, those included whose first body has not been moved to its place yet. */
  async #keys(folders = false, folder = ''): Promise<string[]> {
    const [files, logs] = await Promise.all(
      [folder, join(folder, '.cas')].map((name) =>
        unless(['ENOENT'], readdir(join(this.#directory, name), { withFileTypes: true })),
      ),
    );
    const names = new Set([
      // People may keep their own folders here, but none by the name of a lease.
      ...(files ?? [])
        .filter((entry) => entry.isFile() || entry.name.endsWith('.json'))
        .map(({ name }) => name),
      ...(logs ?? []).map(({ name }) => name),
    ]);
    const deeper = (files ?? []).filter((entry) => folders && entry.isDirectory() && KEY.test(entry.name));
    const below = await Promise.all(deeper.map(({ name }) => this.#keys(false, name)));
    const keys = [...names].filter((name) => KEY.test(name)).map((name) => join(folder, name));
    return [...keys.sort(), ...below.flat()];
  }

  #log(key: string, allowed = KEY): CasLog {
    if (!allowed.test(key)) {
      const message = `${JSON.stringify(key)} cannot be a key: letters, digits and ._- only, no dot in front`;
      throw new StoreError(`${this.url}: ${message}`, { fault: 'rejected', outcome: 'not-applied' });
    }
    const path = join(this.#directory, key);
    return new CasLog(dirname(path), basename(path), this.options.random);
  }

  /** A link to other logs, of another store perhaps, would decide about the leases of this one. */
  async #checkHistory() {
    const there = await unless(['ENOENT', 'ENOTDIR'], lstat(join(this.#directory, '.cas')));
    if (there === undefined || there.isDirectory()) return;
    throw new StoreError(`${this.url}: .cas is a ${kindOf(there)}, and has to be a directory`, {
      fault: 'rejected',
      outcome: 'not-applied',
    });
  }

  #now(): Interval {
    const now = Math.floor(this.options.clock.now());
    return { min: now, max: now + 1 };
  }

  async #run<T>(
    outcome: 'unknown' | 'not-applied',
    options: StoreCallOptions | undefined,
    work: (signal: AbortSignal | undefined) => Promise<T>,
  ): Promise<T> {
    const signal = options?.signal;
    signal?.throwIfAborted();
    try {
      return await orAborted(
        this.#checkHistory().then(() => work(signal)),
        signal,
      );
    } catch (error) {
      throw toStoreError(error, this.url, outcome);
    }
  }
}

/** Damage as a value; every other error is thrown. */
function damageOf(error: unknown): Damage {
  if (error instanceof Damage) return error;
  throw error;
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** By the operating system's code; every other code is `rejected`. */
const FAULTS: Readonly<Record<string, StoreFault>> = {
  ENOENT: 'missing',
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
  EAGAIN: 'unavailable',
  EBUSY: 'unavailable',
  EIO: 'unavailable',
  EINTR: 'unavailable',
  EMFILE: 'unavailable',
  ENFILE: 'unavailable',
  ENOMEM: 'unavailable',
  ESTALE: 'unavailable',
  ETIMEDOUT: 'unavailable',
};

/**
 * A failed file operation as the store contract has it. Other errors (a reason to abort, a
 * {@link StoreError}) come back as they are.
 */
function toStoreError(error: unknown, url: string, outcome: 'unknown' | 'not-applied'): unknown {
  const code = codeOf(error);
  if (code === undefined) return error;
  const { message } = error as Error;
  return new StoreError(`${url}: ${message}`, { fault: FAULTS[code] ?? 'rejected', outcome, cause: error });
}
