import type { Clock, RandomSource } from '../../clock.js';
import type { Lease } from '../../lease/lease.js';
import type { CreateMode, Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import type { ReconcileCall } from '../reconcile-loop.js';

/** What is to stand in ZooKeeper for an instance. A value: a change of the wish is another one. */
export interface Wish {
  /** Of a numbered znode what stands before its number. */
  readonly path: string;
  readonly data: string;
  readonly mode: CreateMode;
}

/** What becomes of a registration through others, for logs. */
export type RegistrationEvent =
  /** Another registrant has taken the place, after us: it is left alone, and the place taken again when it is free. */
  | {
      readonly type: 'superseded';
      readonly path: string;
      /** The session of the other, 16 hex digits; undefined where its znode is persistent. */
      readonly by: string | undefined;
    }
  /** Our znode was removed, or overwritten, by somebody else, and stands there again. `problem` is the rest of the sentence "<path> …". */
  | { readonly type: 'restored'; readonly path: string; readonly problem: string };

/** What places need to know and use. */
export interface PlaceContext {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly guard: WriteGuard;
  readonly emit: (event: RegistrationEvent) => void;
}

/** Where one instance is registered, and what is known of the znode there. */
export interface RegistrationPlace {
  /** The znode that is ours, or whose place we want; for a numbered one undefined until it has been made. */
  readonly path: string | undefined;
  /** Why the znode that stands there is left alone; undefined while nothing is in the way. */
  readonly blockedBy: string | undefined;
  /** For how long yet, in milliseconds, the empty place is left to others; undefined when it is not. */
  readonly pauseMs: number | undefined;
  /** Whether such a wish can be fulfilled here. */
  suits(wish: Wish): boolean;
  /** From now on until it has been done once, whatever stands there is replaced. */
  claim(): void;
  /** Goes a step towards the wish. True when nothing is left to do until something changes; false when it has to be looked at again. */
  establish(wish: Wish, call: ReconcileCall): Promise<boolean>;
  /** Goes a step towards nothing of ours being left. True when that is so. */
  clear(call: ReconcileCall): Promise<boolean>;
  /** Whether a znode that was seen there is just what is known and wanted. */
  expects(znode: Znode | undefined, wish: Wish, sessionId: string | undefined): boolean;
}

/** Whose a znode of a mode is when it was made in this session. */
export function ownerOf({ mode }: Wish, sessionId: string): string | undefined {
  return mode === 'persistent' || mode === 'persistent-sequential' ? undefined : sessionId;
}

/**
 * Has the server that answers know of every write that was made before: it may lag behind, after a change of servers. What was sent over a
 * lost connection is either to be seen from then on, or will never be.
 */
export async function catchUp(zookeeper: ZooKeeper, path: string, call: ReconcileCall): Promise<void> {
  try {
    // A transaction goes through the leader, even one that only looks.
    await zookeeper.multi([{ type: 'check', path }], call);
  } catch (error) {
    if (!isFault(error, 'no-node')) throw error;
  }
}

export interface WriteGuardOptions {
  readonly clock: Clock;
  /** Nothing is written while it is not valid. @default always */
  readonly lease: Pick<Lease, 'isValid'> | undefined;
}

/** How often a znode is written against others' changes: at most so many times within so many milliseconds. */
const MOST_WRITES = 20;
const WITHIN_MS = 5_000;

/** Stands before every write of one registration. */
export class WriteGuard {
  #writes: number[] = [];

  constructor(private readonly options: WriteGuardOptions) {}

  /** The wish or the session is another: what was written before does not count. */
  reset(): void {
    this.#writes = [];
  }

  /** @throws {ZooKeeperError} `refused` when it must not be written, or not yet */
  check(path: string): void {
    const { clock, lease } = this.options;
    // Between its loss and its withdrawal, or after a pause: the servers must not hear from it any more.
    if (lease?.isValid() === false)
      throw new ZooKeeperError(`${path}: the lease is not valid`, { fault: 'refused', outcome: 'not-applied', path });
    const now = clock.monotonic();
    this.#writes = this.#writes.filter((at) => now - at < WITHIN_MS);
    if (this.#writes.length >= MOST_WRITES) throw busy(path);
    this.#writes.push(now);
  }
}

/** The data that we have written to our znode, or may have: anything else there is somebody else's. */
export class OwnData {
  #written: string | undefined;
  #attempted: string | undefined;

  attempt(data: string): void {
    this.#attempted = data;
  }

  /** It is known to stand there. */
  confirm(data: string): void {
    this.#written = data;
  }

  includes(data: string): boolean {
    return data === this.#written || data === this.#attempted;
  }
}

/** Whether a write has certainly changed nothing. */
export function isNotApplied(error: unknown): boolean {
  return error instanceof ZooKeeperError && error.outcome === 'not-applied';
}

/** Of a znode that others change as often as it is put right. */
export function busy(path: string): ZooKeeperError {
  return new ZooKeeperError(`${path} is being changed by others all the time`, { fault: 'refused', outcome: 'not-applied', path });
}
