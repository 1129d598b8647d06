import type { Clock, RandomSource } from '../clock.js';
import { type ListedObject, StoreError } from '../store/lease-store.js';
import type { Surveyed } from './lease-survey.js';
import type { StoreSession } from './store-session.js';

export interface WaitingRoomOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly taskId: string;
}

/** A mark as this task wrote it. */
interface Mark {
  readonly slot: number;
  readonly etag: string;
  /** On the monotonic clock. */
  readonly writtenAt: number;
}

/** How many can be told apart; more than that need not be. */
const SLOTS = 256;
/** How often a mark is written anew, and how long one counts, in milliseconds: whoever dies is counted a little longer. */
const RENEW_MS = 600_000;
const FRESH_MS = 720_000;
/** How long a write may take, in milliseconds. Nobody waits for it. */
const WRITE_TIMEOUT_MS = 2_000;

/** The key of a mark. No lease has it: those are numbers. */
function markKey(slot: number): string {
  return `waiting-${slot}.json`;
}

/** The first and the last of them in the order of the keys. */
const FIRST_MARK = markKey(0);
const LAST_MARK = markKey(99);

/** The slot of a mark, or undefined for every other object. */
function slotOf(key: string): number | undefined {
  const slot = Number(key.slice('waiting-'.length, -'.json'.length));
  return Number.isInteger(slot) && slot >= 0 && slot < SLOTS && markKey(slot) === key ? slot : undefined;
}

/**
 * Who else waits for a node id, on a store that tells of no changes: each writes a mark of its own beside the leases, which everybody's
 * listings show for nothing.
 *
 * A mark says nothing about any lease, and nobody's safety rests on it. One that cannot be written is missing in the count, one that is left
 * behind is in it for some minutes. All writes go on beside the waiting, and none is repeated at once.
 */
export class WaitingRoom {
  #mark: Mark | undefined;
  /** The write that is under way. */
  #writing: Promise<void> | undefined;
  /** Before that time of the monotonic clock no mark is written. */
  #notBefore = Number.NEGATIVE_INFINITY;
  #left = true;
  #others = 0;

  constructor(private readonly options: WaitingRoomOptions) {}

  /** Whether there is a mark of this task's. */
  get isMarked(): boolean {
    return this.#mark !== undefined;
  }

  /** How many wait, this task included, as far as a listing tells, or else the last one that showed it. */
  count(listing: Surveyed): number {
    if (showsMarks(listing)) {
      this.#others = listing.objects.filter((row) => isMark(row) && isFresh(row) && slotOf(row.key) !== this.#mark?.slot).length;
    }
    return this.#others + 1;
  }

  /** Makes this task one of those who are counted, and keeps it so; at most one write, which is not waited for. */
  enter(listing: Surveyed): void {
    const { clock, random } = this.options;
    this.#left = false;
    const now = clock.monotonic();
    if (this.#writing !== undefined || now < this.#notBefore) return;
    if (this.#mark !== undefined) {
      if (now - this.#mark.writtenAt >= RENEW_MS) this.#write(this.#mark.slot, this.#mark.etag);
      return;
    }
    if (!showsMarks(listing)) return;
    const rows = new Map(listing.objects.filter(isMark).map((row) => [slotOf(row.key), row]));
    const free = Array.from({ length: SLOTS }, (_, slot) => slot).filter((slot) => {
      const row = rows.get(slot);
      return row === undefined || !isFresh(row);
    });
    const slot = free[Math.floor(random.next() * free.length)];
    if (slot !== undefined) this.#write(slot, rows.get(slot)?.etag);
  }

  /** Takes the mark away, as far as that can be done; not waited for. Idempotent. */
  leave(): void {
    if (this.#left) return;
    this.#left = true;
    if (this.#writing === undefined) this.#wipe();
  }

  #write(slot: number, etag: string | undefined): void {
    const { session, clock, random, taskId } = this.options;
    const writtenAt = clock.monotonic();
    const body = JSON.stringify({ waiting: taskId, mark: random.hex(6) });
    this.#mark = undefined;
    const write = session.write(markKey(slot), { body, metadata: {} }, etag, { timeoutMs: WRITE_TIMEOUT_MS });
    this.#writing = write
      .then(
        (result) => {
          if (result.status === 'written') this.#mark = { slot, etag: result.etag, writtenAt };
        },
        (error: unknown) => {
          const forGood = error instanceof StoreError && !error.transient;
          this.#notBefore = forGood ? Number.POSITIVE_INFINITY : writtenAt + RENEW_MS;
        },
      )
      .then(() => {
        this.#writing = undefined;
        if (this.#left) this.#wipe();
      });
  }

  /** There is no delete: a mark that is empty does not count. */
  #wipe(): void {
    const mark = this.#mark;
    this.#mark = undefined;
    if (mark === undefined) return;
    const call = { timeoutMs: WRITE_TIMEOUT_MS };
    // Left as it is, it goes out of date.
    this.options.session.write(markKey(mark.slot), { body: '', metadata: {} }, mark.etag, call).catch(() => undefined);
  }
}

/** Whether all of the marks are in what a listing shows. */
function showsMarks(listing: Surveyed): boolean {
  return listing.covers?.(FIRST_MARK) !== false && listing.covers?.(LAST_MARK) !== false;
}

function isMark(row: ListedObject): boolean {
  return slotOf(row.key) !== undefined;
}

function isFresh({ size, age }: ListedObject): boolean {
  return size > 0 && age.min <= FRESH_MS;
}
