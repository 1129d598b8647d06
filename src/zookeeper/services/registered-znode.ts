import type { Lease } from '../../core/lease/model/lease.js';
import type { ReconcileCall } from '../client/reconcile-loop.js';
import { busy } from '../client/retry.js';
import type { CreateMode, Znode, ZooKeeperContext } from '../client/zookeeper.js';
import { ZooKeeperError } from '../client/zookeeper-error.js';
import { withEnabled } from './instance/instance-codec.js';
import type { ServiceInstance } from './instance/service-instance.js';

/** The znode that is wanted for an instance. A value: it is replaced, never changed. */
export interface WantedZnode {
  readonly instance: ServiceInstance;
  /** Without the number that the servers append to a sequential znode's name. */
  readonly path: string;
  readonly data: string;
  readonly mode: CreateMode;
}

/** The effects of other registrants on a registration, for logs. */
export type RegistrationEvent =
  /**
   * Another registrant has replaced our znode: its znode is left alone, and ours is made again when that has
   * gone.
   */
  | {
      readonly type: 'superseded';
      readonly path: string;
      /** The session of the other, 16 hex digits; undefined where its znode is persistent. */
      readonly by: string | undefined;
    }
  /**
   * Our znode was removed, or overwritten, by another client, and has been restored. `problem` is the rest of
   * the sentence "<path> …".
   */
  | { readonly type: 'restored'; readonly path: string; readonly problem: string }
  /**
   * The service at `path` has an instance whose payload is of another class, so that Java programs cannot
   * read the service. `problem` is the rest of the sentence "<path> …".
   */
  | { readonly type: 'mixed-payloads'; readonly path: string; readonly problem: string };

/** The context of a registration. */
export interface RegistrationContext extends ZooKeeperContext {
  /** Nothing is written while it is not valid. @default always valid */
  readonly lease: Pick<Lease, 'isValid'> | undefined;
  readonly emit: (event: RegistrationEvent) => void;
}

/** The bound on writes against others' changes: that many in that many milliseconds. */
const MAX_WRITES = 20;
const WRITES_WINDOW_MS = 5_000;

/** A znode of ours. */
export interface OwnZnode {
  readonly path: string;
  /** The session that it goes with; undefined for a persistent one. */
  readonly owner: string | undefined;
  /** The transaction that created it; undefined until it has been read. */
  readonly createdZxid: bigint | undefined;
}

/** The znode of one registered instance, and its known state. A subclass finds and makes it. */
export abstract class RegisteredZnode {
  /** Why a foreign znode at the path is left alone; undefined while there is none. */
  blockedBy: string | undefined;
  /** The data that our znode is known to have. */
  #confirmed: string | undefined;
  /** When it was written lately, on the monotonic clock. */
  #writes: number[] = [];

  protected own: OwnZnode | undefined;

  /** @param wantedPath without the number of a sequential one */
  constructor(
    protected readonly wantedPath: string,
    protected readonly context: RegistrationContext,
  ) {}

  get path(): string {
    return this.own?.path ?? this.wantedPath;
  }

  /** Goes a step towards what is wanted, as `Reconciled.step` does. */
  abstract register(wanted: WantedZnode, call: ReconcileCall): Promise<boolean | number>;
  /** Removes what is left of ours. */
  abstract unregister(call: ReconcileCall): Promise<void>;

  /** Lets the next {@link register} replace a foreign znode, once, where one may be in the way. */
  takeOver(): void {}

  /** Whether a znode at the path has the known and wanted state; its data are then known. */
  expects(znode: Znode | undefined, wanted: WantedZnode, sessionId: string): boolean {
    if (znode === undefined || znode.stat.createdZxid !== this.own?.createdZxid) return false;
    return znode.stat.owner === ownerOf(wanted, sessionId) && this.#isAsWanted(znode, wanted);
  }

  /** Counts its writes from 0 again: another znode is wanted, or there is another session. */
  forgetWrites(): void {
    this.#writes = [];
  }

  /**
   * Called before every write.
   *
   * @throws {ZooKeeperError} `refused` without a valid lease, `contended` after too many writes
   */
  protected checkWrite(): void {
    const { path } = this;
    const { clock, lease } = this.context;
    checkLease(lease, path);
    const now = clock.monotonic();
    this.#writes = this.#writes.filter((at) => now - at < WRITES_WINDOW_MS);
    if (this.#writes.length >= MAX_WRITES) throw busy(path);
    this.#writes.push(now);
  }

  /**
   * Writes the wanted data into our znode unless it has them. True when it has them; false when it must be
   * read again.
   */
  protected async correct(znode: Znode, wanted: WantedZnode, call: ReconcileCall): Promise<boolean> {
    const { zookeeper, emit } = this.context;
    const { path } = this;
    if (this.#isAsWanted(znode, wanted)) return true;
    this.checkWrite();
    if (this.#confirmed !== wanted.data) this.#confirmed = undefined;
    // The state before the write: what is written here may be seen, and confirmed, before its reply.
    const isRestored = this.#confirmed !== undefined;
    await zookeeper.setData(path, wanted.data, znode.stat.version, call);
    if (isRestored) emit({ type: 'restored', path, problem: 'was overwritten' });
    return false;
  }

  /**
   * Whether our znode has the wanted data. An operator's change of enabled or disabled stays, as in Curator.
   */
  #isAsWanted({ data }: Znode, { data: wanted, instance }: WantedZnode): boolean {
    const text = data.toString('utf8');
    if (text === wanted) this.#confirmed = wanted;
    return text === wanted || (this.#confirmed === wanted && text === withEnabled(wanted, !instance.enabled));
  }
}

/** The owner of a znode that this session makes; undefined for a persistent one. */
export function ownerOf({ mode }: WantedZnode, sessionId: string): string | undefined {
  return mode === 'persistent' ? undefined : sessionId;
}

/**
 * Called before a write: the lease may have been lost, or the process may have paused.
 *
 * @throws {ZooKeeperError} `refused` if the lease is not valid
 */
export function checkLease(lease: Pick<Lease, 'isValid'> | undefined, path: string): void {
  if (lease?.isValid() !== false) return;
  const message = `${path}: the lease is not valid`;
  throw new ZooKeeperError(message, 'refused', 'not-applied', path);
}
