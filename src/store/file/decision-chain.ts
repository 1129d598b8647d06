import { link, lstat, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { RandomSource } from '../../base/clock.js';
import { StoreError } from '../lease-store.js';
import { makeFolder, syncFolder, syncParents, writeDurably } from './durable.js';
import { codeOf, exists, unless } from './file-fault.js';
import { Damage, kindOf, readRegular } from './regular-file.js';
import { decodeRecord, encodeRecord, generationOf, SEAT_NAME, type SeatRecord } from './seat-record.js';
import { removeOldSeats, removeSeat } from './seat-removal.js';

// How processes agree on the next state of an object, without a lock.
//
// The folder `.cas/<key>` holds a chain of decisions, each made once. A decision has a seat: a folder named
// `<generation>-<random>`, or `0` for the state before the first one. A seat holds
//   record   what was decided: the seat's own name, the SHA-256 of the body, the metadata, when
//   body     the bytes, until they are moved to `<directory>/<key>`, where people find them
//   next     once there is a successor: a hard link to the successor's record
// The head is the seat that is named by a `next` (or is `0`) and has no `next` of its own.
//
// To write, a process prepares a seat of its own, complete and synced, and then makes the one step that decides:
// link(own/record, head/next). It fails when somebody else's link is there, and when the head's folder is gone. Then it
// commits: rename(own/body, <directory>/<key>). Why this is safe:
//
// - One successor. link(2) never replaces a name, so of all who want to succeed one head exactly one does.
// - No return of a stale writer. Seats have random names and are never made anew (`0` is never removed), so a writer that
//   was paused since it saw its head finds that head's `next` taken, or the head gone; both are conflicts.
// - Old seats are removed by first renaming the whole folder to `trash-<random>`, so no path ever shows a decided seat that has lost
//   its `next`. A link(2) that has already found the folder when it is renamed could still land in the trash, after `next` has been
//   unlinked there. So a writer looks after its link whether the seat still stands at its place: if it does, it never left, and the
//   link is the decision. If not, the chain has moved on, and the writer looks for its own seat in it.
// - The public file only moves forward. A body has one name at any time, so it is moved there at most once, whoever does it. Before
//   anybody decides a successor of the head, the head's body has been moved, by that writer if need be; so when a later body
//   is moved no earlier one is left, and a process that is paused before its rename finds nothing to move when it goes on.
// - A crash, or a pause, blocks nobody. Before the link there is but an unused seat, which the writers after it remove; after
//   it the next writer moves the body, and readers take it from the seat. Nobody waits for anybody.
// - Power loss. Before the link, body, record, the seat's names and the chain's names are synced; after it and before anything
//   older is removed or success is reported, the head's names, `next` being one of them. The public name needs no sync: as long as
//   the move is not on the disk the body is still in the seat. So what was reported stays, and what stays is whole.
// - Seats of the last two generations stay: the head and the one whose `next` names it, so that readers find it.
// - Damage. Where something in the chain is not what a process can have put there, nothing tells which decision was the last. Then the whole folder is
//   renamed to `.cas/<key>~<random>`, and a new chain begins. Of two who do so, one may get hold of the other's new chain: a chain that is sound goes back.

/** The last decision about an object. */
export interface Head {
  /** The name of its seat; `0` when nothing was decided yet. */
  readonly seat: string;
  /** Undefined at seat `0`. */
  readonly record: SeatRecord | undefined;
  /** The seat whose `next` names this one; undefined at seat `0`. */
  readonly namedBy: string | undefined;
}

/** What a writer wants to become the next state. */
export interface Proposal {
  readonly body: Buffer;
  /** Everything but the seat, which is not chosen yet. */
  readonly record: Omit<SeatRecord, 'seat'>;
}

/** Every round beyond the first means that another write went through in the meantime. */
const MAX_ROUNDS = 200;

/** The head of a chain without any decision. */
const NO_DECISION: Head = { seat: '0', record: undefined, namedBy: undefined };

/** What link(2) answers on file systems without hard links. */
const NO_HARD_LINKS = ['EMLINK', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EPERM'];

/** What link(2) answers when it certainly has not been done; `EEXIST` and `ENOENT` are ordinary conflicts. */
const NOT_LINKED = ['EACCES', 'EDQUOT', 'ENOSPC', 'EROFS'];

/** The decisions about one object, see the head of this file. Throws the operating system's errors as they come. */
export class DecisionChain {
  readonly #directory: string;
  readonly #folder: string;
  readonly #publicPath: string;
  readonly #random: RandomSource;

  /**
   * @param directory the store's folder, absolute
   * @param key of the object, validated
   * @param random for the names of seats
   */
  constructor(directory: string, key: string, random: RandomSource) {
    this.#directory = directory;
    this.#folder = join(directory, '.cas', key);
    this.#publicPath = join(directory, key);
    this.#random = random;
  }

  /**
   * The head at some moment during the call.
   *
   * @throws {@link Damage} when the chain is damaged
   * @throws {@link StoreError} `unavailable` when writes never ceased
   */
  async head(signal?: AbortSignal): Promise<Head> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      signal?.throwIfAborted();
      const head = await this.#seek();
      if (await this.isHead(head)) return head;
    }
    throw new StoreError(`${this.#folder}: it changed too often to be read`, { fault: 'unavailable', outcome: 'not-applied' });
  }

  /** True when this seat, known to have been the head once, still was at some moment during the call. */
  async isHead({ seat, namedBy }: Head): Promise<boolean> {
    if (await exists(join(this.#folder, seat, 'next'))) return false;
    if (namedBy === undefined) return true;
    // In this order: a seat that still stands was not trash a moment ago, when it had no `next`. The same goes for the one
    // that names it, whose `next` counts only if it was not read from the trash.
    return (await exists(join(this.#folder, seat))) && (await exists(join(this.#folder, namedBy)));
  }

  /** The body of the seat, or undefined when it has been moved to the public file. */
  async bodyOf({ seat }: Head): Promise<Buffer | undefined> {
    return readRegular(join(this.#folder, seat, 'body'));
  }

  /** The metadata of the youngest record that can be read, decided or not: what is left to be known of a damaged chain. */
  async lastMetadata(): Promise<SeatRecord['metadata']> {
    const names = (await readdir(this.#folder).catch(() => [])).filter((name) => SEAT_NAME.test(name));
    for (const name of names.sort((a, b) => generationOf(b) - generationOf(a))) {
      const path = join(this.#folder, name, 'record');
      const record = await readRegular(path)
        .then((text) => text && decodeRecord(text.toString('utf8'), path, generationOf(name)))
        .catch(() => undefined);
      if (record !== undefined) return record.metadata;
    }
    return {};
  }

  /**
   * Moves a damaged chain out of the way, so that a new one can begin, and leaves it to people to look into.
   *
   * @returns the head of the new one, or undefined when the chain is sound by now, or gone
   */
  async restart(): Promise<Head | undefined> {
    const aside = new DecisionChain(this.#directory, `${basename(this.#publicPath)}~${this.#random.hex(4)}`, this.#random);
    try {
      await rename(this.#folder, aside.#folder);
      await aside.head();
      await rename(aside.#folder, this.#folder);
      return undefined;
    } catch (error) {
      if (error instanceof Damage) return NO_DECISION;
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /**
   * Makes the proposal the successor of `head`, unless there is one.
   *
   * @returns the new seat, or undefined when somebody else was first
   * @throws {@link StoreError} of unknown outcome when other writes went by so fast that ours cannot be told from a failed one, or
   * when something failed after the decision
   */
  async succeed(head: Head, proposal: Proposal, signal?: AbortSignal): Promise<string | undefined> {
    const seat = `${generationOf(head.seat) + 1}-${this.#random.hex(12)}`;
    if (head.namedBy === undefined) await this.#found();
    let decided = false;
    try {
      if (await this.#prepare(head, seat, proposal)) {
        await this.#moveBody(head.seat);
        signal?.throwIfAborted();
        decided = await this.#decide(head, seat);
      }
      if (!decided) {
        await removeSeat(join(this.#folder, seat));
        return undefined;
      }
    } catch (error) {
      if (error instanceof StoreError && error.outcome === 'unknown') throw error;
      await removeSeat(join(this.#folder, seat));
      // Our own folders vanish only when somebody has got ahead of us, or has removed the store.
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
    try {
      await this.#moveBody(seat);
      await unless(['ENOENT'], syncFolder(join(this.#folder, head.seat)));
    } catch (error) {
      throw unknownOutcome(`${this.#publicPath}: the write was decided but could not be completed`, error);
    }
    await removeOldSeats(this.#folder, generationOf(head.seat), this.#random);
    return seat;
  }

  /** Removes the object and its whole history. Nobody may be writing it. */
  async erase(): Promise<void> {
    await rm(this.#publicPath, { force: true });
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Who seems to be the head: from the oldest seat that has a successor along the chain to its end. A crowd that writes has younger seats. */
  async #seek(): Promise<Head> {
    const [there, entries] = await Promise.all([
      unless(['ENOENT'], lstat(this.#folder)),
      unless(['ENOENT', 'ENOTDIR'], readdir(this.#folder, { withFileTypes: true })),
    ]);
    if (there !== undefined && !there.isDirectory()) throw new Damage(this.#folder, kindOf(there));
    const seats: string[] = [];
    for (const entry of entries ?? []) {
      if (!SEAT_NAME.test(entry.name)) continue;
      if (!entry.isDirectory()) throw new Damage(join(this.#folder, entry.name), kindOf(entry));
      if (entry.name !== '0') seats.push(entry.name);
    }
    seats.sort((a, b) => generationOf(a) - generationOf(b));
    for (const start of [...seats, '0']) {
      let head: Head | undefined;
      for (let namedBy = start, record = await this.#nextOf(start); record !== undefined; record = await this.#nextOf(namedBy)) {
        head = { seat: record.seat, record, namedBy };
        namedBy = record.seat;
      }
      if (head !== undefined) return head;
    }
    return NO_DECISION;
  }

  async #nextOf(seat: string): Promise<SeatRecord | undefined> {
    const path = join(this.#folder, seat, 'next');
    const text = await readRegular(path);
    return text && decodeRecord(text.toString('utf8'), path, generationOf(seat) + 1);
  }

  /** Makes the first seat and every folder above it, and syncs their names, whoever made them. The seat's own is synced with the next one's. */
  async #found(): Promise<void> {
    const made = await makeFolder(join(this.#folder, '0'));
    const folders = [dirname(this.#folder), this.#directory];
    await Promise.all([...folders.map(syncFolder), syncParents(this.#directory, made)]);
  }

  /** Makes the seat, complete and synced. False when it is too late for that already. */
  async #prepare(head: Head, seat: string, { body, record }: Proposal): Promise<boolean> {
    const folder = join(this.#folder, seat);
    await mkdir(folder);
    // Spares the disk in a crowd; what decides is the link.
    if (await exists(join(this.#folder, head.seat, 'next'))) return false;
    await Promise.all([
      writeDurably(join(folder, 'body'), body),
      writeDurably(join(folder, 'record'), Buffer.from(encodeRecord({ seat, ...record }))),
    ]);
    await Promise.all([syncFolder(folder), syncFolder(this.#folder)]);
    return true;
  }

  /** Moves the body to the public file, unless that has been done. A folder in its place is moved aside. */
  async #moveBody(seat: string): Promise<void> {
    // A folder that stands in place of a body cannot be moved onto a file, and is none anyway.
    const move = () => unless(['ENOENT', 'ENOTDIR'], rename(join(this.#folder, seat, 'body'), this.#publicPath));
    try {
      await move();
    } catch (error) {
      if (codeOf(error) !== 'EISDIR') throw error;
      const aside = `${this.#publicPath}~${this.#random.hex(4)}`;
      await mkdir(aside);
      // Onto a folder only a folder can be renamed: a body that somebody else has moved here meanwhile stays.
      if (
        (await unless(
          ['ENOENT', 'ENOTDIR'],
          rename(this.#publicPath, aside).then(() => true),
        )) === undefined
      )
        await rmdir(aside);
      await move();
    }
  }

  /** The one step that decides. True when our seat is the successor now. */
  async #decide(head: Head, seat: string): Promise<boolean> {
    const next = join(this.#folder, head.seat, 'next');
    let failure: unknown;
    try {
      await link(join(this.#folder, seat, 'record'), next);
    } catch (error) {
      const code = codeOf(error) ?? '';
      if (code === 'ENOENT') return false;
      if (NO_HARD_LINKS.includes(code)) throw withoutHardLinks(this.#directory, error);
      if (NOT_LINKED.includes(code)) throw error;
      // A network file system may have done it and lost the reply, or may yet do it.
      if (code !== 'EEXIST') failure = error;
    }
    try {
      // Whatever link(2) said, what stands there decides.
      const successor = await this.#nextOf(head.seat);
      if (successor !== undefined) return successor.seat === seat;
      // The head is gone: the chain has moved on. If it went over our seat, that one has a successor, or is old enough to be gone too.
      if (await exists(join(this.#folder, seat, 'next'))) return true;
      if (failure === undefined && (await exists(join(this.#folder, seat)))) return false;
    } catch (error) {
      failure ??= error;
    }
    throw unknownOutcome(`${next}: nothing tells whether this write was decided`, failure);
  }
}

function unknownOutcome(message: string, cause?: unknown): StoreError {
  return new StoreError(message, { fault: 'unavailable', outcome: 'unknown', cause });
}

function withoutHardLinks(directory: string, cause: unknown): StoreError {
  const message = `${directory}: the file system refuses hard links, which the file store needs`;
  return new StoreError(message, { fault: 'rejected', outcome: 'not-applied', cause });
}
