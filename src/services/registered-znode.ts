import type { Clock, RandomSource } from '../base/clock.js';
import type { Lease } from '../lease/model/lease.js';
import type { ReconcileCall } from '../zookeeper/reconcile-loop.js';
import type { CreateMode, Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../zookeeper/zookeeper-error.js';

/** What is to stand in ZooKeeper for an instance. A value: it is replaced, never changed. */
export interface WantedZnode {
  /** Without the number that the servers append to a sequential znode's name. */
  readonly path: string;
  readonly data: string;
  readonly mode: CreateMode;
}

/** What becomes of a registration through others, for logs. */
export type RegistrationEvent =
  /** Another registrant has replaced our znode: its znode is left alone, and ours is made again when that has gone. */
  | {
      readonly type: 'superseded';
      readonly path: string;
      /** The session of the other, 16 hex digits; undefined where its znode is persistent. */
      readonly by: string | undefined;
    }
  /** Our znode was removed, or overwritten, by somebody else, and stands there again. `problem` is the rest of the sentence "<path> …". */
  | { readonly type: 'restored'; readonly path: string; readonly problem: string };

/** What both kinds of registration work with. */
export interface RegistrationContext {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly guard: WriteGuard;
  readonly emit: (event: RegistrationEvent) => void;
}

/** The znode of one registered instance, and what is known of it. */
export interface RegisteredZnode {
  /** That of our znode, made or wanted; undefined for a sequential one until it has been made. */
  readonly path: string | undefined;
  /** Why another's znode at the path is left alone; undefined while there is none. */
  readonly blockedBy: string | undefined;
  /** How much longer a path without a znode is left to others, in milliseconds; undefined when it is not. */
  readonly pauseMs: number | undefined;
  /** Whether this can become what is wanted. */
  suits(wanted: WantedZnode): boolean;
  /** Lets the next {@link establish} replace whatever stands there, once. */
  claim(): void;
  /** Goes a step towards what is wanted. True when nothing is left to do until something changes; false when it has to be read again. */
  establish(wanted: WantedZnode, call: ReconcileCall): Promise<boolean>;
  /** Goes a step towards nothing of ours being left. True when that is so. */
  clear(call: ReconcileCall): Promise<boolean>;
  /** Whether a znode that was seen there is just what is known and wanted. */
  expects(znode: Znode | undefined, wanted: WantedZnode, sessionId: string | undefined): boolean;
}

/** The owner of a znode that this session makes; undefined for a persistent one. */
export function ownerOf({ mode }: WantedZnode, sessionId: string): string | undefined {
  return mode === 'persistent' || mode === 'persistent-sequential' ? undefined : sessionId;
}

/**
 * Brings the server up to date with every write made before: after a change of servers it may lag behind. Afterwards a write that was sent
 * over a lost connection is visible, or will never be applied.
 */
export async function catchUp(zookeeper: ZooKeeper, path: string, call: ReconcileCall): Promise<void> {
  try {
    // A transaction goes through the leader, even one that only checks.
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

/** The bound on writes of one registration against others' changes: so many in so many milliseconds. */
const MAX_WRITES = 20;
const WRITES_WINDOW_MS = 5_000;

/** Checks before every write of one registration that it is allowed now. */
export class WriteGuard {
  #writes: number[] = [];

  constructor(private readonly options: WriteGuardOptions) {}

  /** Starts counting anew, for another wanted znode or another session. */
  reset(): void {
    this.#writes = [];
  }

  /** @throws {ZooKeeperError} `refused` when it must not be written, or not yet */
  check(path: string): void {
    const { clock, lease } = this.options;
    // Between the loss of the lease and the withdrawal, or after a pause of the process.
    if (lease?.isValid() === false)
      throw new ZooKeeperError(`${path}: the lease is not valid`, { fault: 'refused', outcome: 'not-applied', path });
    const now = clock.monotonic();
    this.#writes = this.#writes.filter((at) => now - at < WRITES_WINDOW_MS);
    if (this.#writes.length >= MAX_WRITES) throw busy(path);
    this.#writes.push(now);
  }
}

/** The data that we have written to our znode, or may have written. Other data there were written by somebody else. */
export class OwnData {
  #written: string | undefined;
  #attempted: string | undefined;

  constructor(private readonly context: RegistrationContext) {}

  /** A write of these data begins. */
  attempt(data: string): void {
    this.#attempted = data;
  }

  /** These data are known to stand there. */
  confirm(data: string): void {
    this.#written = data;
  }

  /** Writes the wanted data into our znode. It has to be read again in any case. */
  async overwrite(path: string, { data, stat }: Znode, wanted: WantedZnode, call: ReconcileCall): Promise<void> {
    const { zookeeper, guard, emit } = this.context;
    guard.check(path);
    const before = data.toString('utf8');
    const isOthers = before !== this.#written && before !== this.#attempted;
    this.attempt(wanted.data);
    try {
      await zookeeper.setData(path, wanted.data, stat.version, call);
    } catch (error) {
      if (isFault(error, 'bad-version', 'no-node')) return;
      throw error;
    }
    if (isOthers) emit({ type: 'restored', path, problem: 'was overwritten' });
  }
}

/** Whether a write has certainly changed nothing. */
export function isNotApplied(error: unknown): boolean {
  return error instanceof ZooKeeperError && error.outcome === 'not-applied';
}

/** The failure of a znode that others change as often as it is restored. */
export function busy(path: string): ZooKeeperError {
  return new ZooKeeperError(`${path} is being changed by others all the time`, { fault: 'refused', outcome: 'not-applied', path });
}
