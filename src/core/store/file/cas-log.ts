import { link, lstat, mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { RandomSource } from '../../base/clock.js';
import {
  codeOf,
  Damage,
  exists,
  kindOf,
  makeFolder,
  readRegular,
  syncFolder,
  unless,
  writeDurably,
} from '../../base/files.js';
import { type ObjectMetadata, StoreError } from '../lease-store.js';
import type { GenerationRecord } from './generation.js';
import {
  decodeRecord,
  encodeRecord,
  GENERATION_NAME,
  numberOf,
  removeGeneration,
  removeOldGenerations,
} from './generation.js';

// How processes agree on the next state of an object, without a lock.
//
// The folder `.cas/<key>` holds the states of the object, its generations, each in a folder named
// `<number>-<random>`, or `0` for the state before the first write. A generation holds
//   record   its own name, the SHA-256 of the body, the metadata, when
//   body     the bytes, until they are moved to `<directory>/<key>`, where people find them
//   next     once there is a successor: a hard link to the successor's record
// The head is the generation that is named by a `next` (or is `0`) and has no `next` itself.
//
// A writer prepares a generation, complete and synced. One step decides: link(own/record, head/next). It
// fails when the link of another writer is there, and when the head's folder is gone. Then the writer
// commits: rename(own/body, <directory>/<key>). Why this is safe:
//
// - One successor. link(2) never replaces a name, so exactly one of all contenders succeeds one head.
// - No stale writer. Names are random and never used again (`0` is never removed). A writer that was paused
//   since it saw its head finds that head's `next` taken, or the head gone; both are conflicts.
// - Old generations go by renaming the folder to `trash-<random>`, so no path ever shows one without its
//   `next`. A link(2) that has found the folder before may land in the trash. So a writer checks after its
//   link whether the head still exists. If it does, the link decides. If not, the log has moved on, and the
//   writer looks for its own generation in it.
// - The public file only moves forward. A body is moved at most once, and that of the head before a successor
//   is decided. So a process that is paused before its rename finds nothing to move when it continues.
// - A crash, or a pause, blocks no process. Before the link there is but an unused generation, which later
//   writers remove. After it the next writer moves the body, and readers take it from the generation. The
//   head, and the one that names it, stay.
// - Power loss. What the link needs is synced before it; the head's names, with `next`, after it, before
//   anything older is removed or success reported. The public name needs no sync: until the move is on the
//   disk, the body is in the generation.
// - Damage. Where something is not what a process can have put there, nothing shows which write was the last.
//   Then the whole folder is renamed to `.cas/<key>~<random>`, and a new log begins. A process that gets hold
//   of another's new log that way puts it back.

/** The last state of an object. */
export interface Head {
  /** The name of its generation; `0` before the first write. */
  readonly name: string;
  /** Undefined for generation `0`. */
  readonly record: GenerationRecord | undefined;
  /** The generation whose `next` names this one; undefined for generation `0`. */
  readonly namedBy: string | undefined;
}

/** Every round beyond the first means that another write went through in the meantime. */
const MAX_ROUNDS = 200;

/** More bytes than any object, and any record, of a store has: a body names at most 65,528 node ids. */
export const MAX_BODY = 8 * 2 ** 20;
const MAX_RECORD = 65_536;

/** The head of a log without any write. */
const EMPTY: Head = { name: '0', record: undefined, namedBy: undefined };

/** What link(2) answers on file systems without hard links. */
const NO_HARD_LINKS = ['EMLINK', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EPERM'];

/** What link(2) answers when it certainly has not been done; `EEXIST` and `ENOENT` are ordinary conflicts. */
const NOT_LINKED = ['EACCES', 'EDQUOT', 'ENOSPC', 'EROFS'];

/**
 * The generations of one object, see the head of this file. Throws the operating system's errors as they
 * come.
 */
export class CasLog {
  readonly #folder: string;
  readonly #publicPath: string;

  /** @param directory the store's folder, absolute */
  constructor(
    private readonly directory: string,
    key: string,
    private readonly random: RandomSource,
  ) {
    this.#folder = join(directory, '.cas', key);
    this.#publicPath = join(directory, key);
  }

  /**
   * The head at some moment during the call.
   * @throws {@link Damage}; {@link StoreError} `unavailable` when writes never ceased
   */
  async head(signal?: AbortSignal): Promise<Head> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      signal?.throwIfAborted();
      const head = await this.#seek();
      if (await this.isHead(head)) return head;
    }
    throw new StoreError(`${this.#folder}: it changed too often to be read`, {
      fault: 'unavailable',
      outcome: 'not-applied',
    });
  }

  /**
   * True when this generation, known to have been the head once, still was at some moment during the call.
   */
  async isHead({ name, namedBy }: Head): Promise<boolean> {
    if (await exists(this.#path(name, 'next'))) return false;
    if (namedBy === undefined) return true;
    // In this order: a folder that still exists was not trash a moment ago, when it had no `next`. The same
    // goes for the one that names it, whose `next` counts only if it was not read from the trash.
    return (await exists(this.#path(name))) && (await exists(this.#path(namedBy)));
  }

  /** The body of the head, or undefined when it has been moved to the public file. */
  async bodyOf({ name }: Head): Promise<Buffer | undefined> {
    return readRegular(this.#path(name, 'body'), MAX_BODY);
  }

  /**
   * The metadata of the youngest record that can be read, decided or not: what is left to be known of a
   * damaged log.
   */
  async lastMetadata(): Promise<ObjectMetadata> {
    const names = (await readdir(this.#folder).catch(() => [])).filter((name) => GENERATION_NAME.test(name));
    for (const name of names.sort((a, b) => numberOf(b) - numberOf(a))) {
      const record = await this.#record(this.#path(name, 'record'), numberOf(name)).catch(() => undefined);
      if (record !== undefined) return record.metadata;
    }
    return {};
  }

  /**
   * Moves a damaged log aside, for people to look into. Resolves to the head of a new one; to undefined when
   * the log is sound, or gone.
   */
  async restart(): Promise<Head | undefined> {
    const aside = new CasLog(
      this.directory,
      `${basename(this.#publicPath)}~${this.random.hex(4)}`,
      this.random,
    );
    try {
      await rename(this.#folder, aside.#folder);
      await aside.head();
      await rename(aside.#folder, this.#folder);
      return undefined;
    } catch (error) {
      if (error instanceof Damage) return EMPTY;
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /**
   * Makes a generation of this body the successor of `head`, unless there is one.
   *
   * @returns the new generation's name, or undefined when another writer was first
   * @throws {@link StoreError} of unknown outcome when something failed after the decision, or later writes
   * have hidden what was decided
   */
  async succeed(
    head: Head,
    body: Buffer,
    about: Omit<GenerationRecord, 'name'>,
    signal?: AbortSignal,
  ): Promise<string | undefined> {
    const name = `${numberOf(head.name) + 1}-${this.random.hex(12)}`;
    let decided = false;
    let isDeciding = false;
    try {
      if (head.namedBy === undefined) await this.#found();
      if (await this.#prepare(head, body, { name, ...about })) {
        await this.#moveBody(head.name);
        signal?.throwIfAborted();
        isDeciding = true;
        decided = await this.#decide(head, name);
      }
      if (!decided) {
        await removeGeneration(this.#path(name));
        return undefined;
      }
    } catch (error) {
      if (isDeciding && error instanceof StoreError && error.outcome === 'unknown') throw error;
      await removeGeneration(this.#path(name));
      // The folder vanishes only when another writer has got ahead, or moves a damaged log aside.
      if (codeOf(error) === 'ENOENT' && (await isFolder(dirname(this.#folder)))) return undefined;
      throw error;
    }
    try {
      await this.#moveBody(name);
      await unless(['ENOENT'], syncFolder(this.#path(head.name)));
    } catch (error) {
      throw unknownOutcome(`${this.#publicPath}: the write was decided but could not be completed`, error);
    }
    await removeOldGenerations(this.#folder, numberOf(head.name), this.random);
    return name;
  }

  /** Removes the object and its whole history. No process may be writing it. */
  async erase(): Promise<void> {
    await rm(this.#publicPath, { force: true });
    await rm(this.#folder, { recursive: true, force: true });
  }

  #path(name: string, file = ''): string {
    return join(this.#folder, name, file);
  }

  /** The record in a file; undefined where there is none. */
  async #record(path: string, number: number): Promise<GenerationRecord | undefined> {
    const text = await readRegular(path, MAX_RECORD);
    return text && decodeRecord(text, path, number);
  }

  /**
   * What seems to be the head: the end of the log from the oldest generation with a successor. Unused
   * generations are younger.
   */
  async #seek(): Promise<Head> {
    const [there, entries] = await Promise.all([
      unless(['ENOENT'], lstat(this.#folder)),
      unless(['ENOENT', 'ENOTDIR'], readdir(this.#folder, { withFileTypes: true })),
    ]);
    if (there !== undefined && !there.isDirectory()) throw new Damage(this.#folder, kindOf(there));
    const generations = (entries ?? []).filter(({ name }) => GENERATION_NAME.test(name));
    for (const entry of generations)
      if (!entry.isDirectory()) throw new Damage(this.#path(entry.name), kindOf(entry));
    const names = generations.map(({ name }) => name).filter((name) => name !== '0');
    for (const start of [...names.sort((a, b) => numberOf(a) - numberOf(b)), '0']) {
      let head = EMPTY;
      for (let namedBy = start; ; namedBy = head.name) {
        const record = await this.#nextOf(namedBy);
        if (record === undefined) break;
        head = { name: record.name, record, namedBy };
      }
      if (head !== EMPTY) return head;
    }
    return EMPTY;
  }

  #nextOf(name: string): Promise<GenerationRecord | undefined> {
    return this.#record(this.#path(name, 'next'), numberOf(name) + 1);
  }

  /** Makes generation 0 and every folder above it, and syncs their names, whichever process made them. */
  async #found() {
    await makeFolder(this.#path('0'));
    // The folder above may belong to another user, and be closed to this process.
    const above = unless(['EACCES'], syncFolder(dirname(this.directory)));
    await Promise.all([syncFolder(dirname(this.#folder)), syncFolder(this.directory), above]);
  }

  /** Makes the generation, complete and synced. False when it is too late for that already. */
  async #prepare(head: Head, body: Buffer, record: GenerationRecord): Promise<boolean> {
    const { name } = record;
    await mkdir(this.#path(name));
    // Spares the disk in a crowd; what decides is the link.
    if (await exists(this.#path(head.name, 'next'))) return false;
    await Promise.all([
      writeDurably(this.#path(name, 'body'), body),
      writeDurably(this.#path(name, 'record'), encodeRecord(record)),
    ]);
    await Promise.all([syncFolder(this.#path(name)), syncFolder(this.#folder)]);
    return true;
  }

  /** Moves the body to the public file, unless that has been done. A folder in its place is moved aside. */
  async #moveBody(name: string) {
    // A folder in place of a body cannot be moved onto a file, and is no body anyway.
    const move = (from: string, to: string) =>
      unless(
        ['ENOENT', 'ENOTDIR'],
        rename(from, to).then(() => true),
      );
    try {
      await move(this.#path(name, 'body'), this.#publicPath);
    } catch (error) {
      if (codeOf(error) !== 'EISDIR') throw error;
      const aside = `${this.#publicPath}~${this.random.hex(4)}`;
      await mkdir(aside);
      // Onto a folder only a folder can be renamed: a body that another process has moved here meanwhile
      // stays.
      if (!(await move(this.#publicPath, aside))) await rmdir(aside);
      await move(this.#path(name, 'body'), this.#publicPath);
    }
  }

  /** The one step that decides. True when this generation is the successor now. */
  async #decide(head: Head, name: string): Promise<boolean> {
    const next = this.#path(head.name, 'next');
    let failure: unknown;
    try {
      await link(this.#path(name, 'record'), next);
    } catch (error) {
      const code = codeOf(error) ?? '';
      if (code === 'ENOENT') return false;
      if (NO_HARD_LINKS.includes(code)) {
        const message = `${this.directory}: the file system refuses hard links, which the file store needs`;
        throw new StoreError(message, { fault: 'rejected', outcome: 'not-applied', cause: error });
      }
      if (NOT_LINKED.includes(code)) throw error;
      // A network file system may have done it and lost the reply, or may yet do it.
      if (code !== 'EEXIST') failure = error;
    }
    try {
      // Whatever link(2) said, the current `next` decides.
      const successor = await this.#nextOf(head.name);
      if (successor !== undefined) return successor.name === name;
      // The head is gone: the log has moved on. If it went over this generation, that one has a successor, or
      // is old enough to be gone too.
      if (await exists(this.#path(name, 'next'))) return true;
      if (failure === undefined && (await exists(this.#path(name)))) return false;
    } catch (error) {
      failure ??= error;
    }
    throw unknownOutcome(`${next}: nothing shows whether this write was decided`, failure);
  }
}

/** Not a link that leads nowhere. */
async function isFolder(path: string): Promise<boolean> {
  return (await unless(['ENOENT'], stat(path))) !== undefined;
}

function unknownOutcome(message: string, cause?: unknown): StoreError {
  return new StoreError(message, { fault: 'unavailable', outcome: 'unknown', cause });
}
