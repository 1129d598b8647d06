import { orAborted, timeoutSignal } from '../base/abort.js';
import { backoffMs } from '../base/backoff.js';
import type { Clock, RandomSource } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import { BoundSession } from '../zookeeper/bound-session.js';
import type { CallOptions, MultiOperation, Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { type DatumRecord, decodeRecord, encodeRecord } from './datum-record.js';
import { dataFolder, type PathStrategy } from './layout.js';
import { checkListing, checkRequest } from './limits.js';
import { SharedDataError } from './shared-data-error.js';

/** How long a call may take, and what gives it up. */
export interface DataCall {
  /** In milliseconds, the wait for a connection included. @default 5000 */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What all shared data of one root has in common. */
export interface DataContext {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly root: string;
  readonly paths: PathStrategy;
}

export const CALL_TIMEOUT_MS = 5_000;
/** Between two attempts, in milliseconds. */
const RETRY_MS = { first: 10, max: 500 };

/** @throws {ConfigError} where a time-out is negative, or no number */
export function checkTimeout(timeoutMs = CALL_TIMEOUT_MS): number {
  if (timeoutMs >= 0) return timeoutMs;
  throw new ConfigError('timeoutMs', timeoutMs, 'a number of milliseconds of at least 0');
}

/** What one attempt works with: one session, so that what it reads is never older than what it has read before. */
export interface Attempt {
  readonly session: BoundSession;
  readonly call: CallOptions;
  /** Whether an earlier attempt may have been carried out: its reply was lost. */
  readonly mayBeDone: boolean;
  /**
   * Whether what was read is no older than the call, as an answer must be that nothing is written for. Else the server has caught up by then, and the
   * attempt is to be made again.
   */
  isFresh(): Promise<boolean>;
}

/** One datum: a scalar or a collection, and what is written there under conditions. */
export class Datum {
  readonly path: string;

  constructor(
    readonly context: DataContext,
    readonly record: DatumRecord,
  ) {
    this.path = `${dataFolder(context.root)}/${context.paths.datum(record.address, record.kind)}`;
  }

  /** For messages. */
  get title(): string {
    const { name, scope } = this.record.address;
    return `shared data ${JSON.stringify(name)}${scope === '' ? '' : ` of scope ${JSON.stringify(scope)}`}`;
  }

  /** @throws {SharedDataError} `kind-clash`, with both kinds, or `foreign-znode` */
  check(znode: Znode | undefined): void {
    if (znode === undefined) return;
    const { kind, lifespan } = this.record;
    const found = decodeRecord(znode.data);
    if (found === undefined) throw new SharedDataError(`${this.path} holds no shared data`, 'foreign-znode', this.path);
    if (found.kind === kind && found.lifespan === lifespan) return;
    const expected = `it is a ${found.lifespan} ${found.kind}, and not a ${lifespan} ${kind}`;
    throw new SharedDataError(`${this.title}: ${expected}`, 'kind-clash', this.path);
  }

  /** The collection's own znode, whose version tells whether an element was removed since; undefined for none. */
  async collection({ session, call }: Pick<Attempt, 'session' | 'call'>): Promise<Znode | undefined> {
    const znode = await session.read(this.path, call);
    this.check(znode);
    return znode;
  }

  /** The same; where there is none it is made, to be read anew. */
  async ensured({ session, call }: Pick<Attempt, 'session' | 'call'>): Promise<Znode | undefined> {
    const znode = await this.collection({ session, call });
    if (znode === undefined) await session.createWithParents(this.path, encodeRecord(this.record), 'shared', call);
    return znode;
  }

  /** Makes a child: its listing and its data have to fit in ZooKeeper's packets. @throws {SharedDataError} `too-large` */
  creation(name: string, document: string, collection: Znode): MultiOperation {
    checkListing(this.path, name, collection.stat.childCount + 1);
    const mode = this.record.lifespan === 'ephemeral' ? 'ephemeral' : 'shared';
    return { type: 'create', path: `${this.path}/${name}`, data: document, mode };
  }

  /**
   * Attempts until one settles: again with another session or connection, and where others have changed what it read.
   *
   * @param attempt resolves to undefined to be made again
   * @throws {ZooKeeperError} `timeout`; access denied; client closed @throws {SharedDataError} @throws `signal.reason`
   */
  async attempted<T>(what: string, { timeoutMs, signal }: DataCall, attempt: (attempt: Attempt) => Promise<T | undefined>): Promise<T> {
    const { zookeeper, clock, random } = this.context;
    const ms = checkTimeout(timeoutMs);
    let cause: unknown;
    const late = () => {
      const text = `${this.title}: ${what} within ${ms} ms`;
      return new ZooKeeperError(text, { fault: 'timeout', outcome: 'unknown', path: this.path, cause });
    };
    const limit = timeoutSignal(clock, ms, late, signal);
    const call = { signal: limit.signal, timeoutMs: ms };
    try {
      let fresh: string | undefined;
      for (let failures = 0, mayBeDone = false; ; failures += 1) {
        try {
          if (failures > 1) await clock.sleep(backoffMs(RETRY_MS, failures - 1, random), limit.signal);
          const { sessionId } = await zookeeper.whenConnected(call);
          const session = new BoundSession(zookeeper, sessionId);
          const isFresh = async () => {
            if (fresh === sessionId) return true;
            await caughtUp(session, this.path, call);
            fresh = sessionId;
            return false;
          };
          const done = await orAborted(attempt({ session, call, mayBeDone, isFresh }), limit.signal);
          if (done !== undefined) return done;
        } catch (error) {
          if (limit.signal.aborted || !isFault(error, ...REPEATED)) throw error;
          mayBeDone ||= error.outcome === 'unknown';
          cause = error;
        }
      }
    } catch (error) {
      if (isFault(error, 'aborted')) limit.signal.throwIfAborted();
      throw error;
    } finally {
      limit.release();
    }
  }

  /** Carries out what fits in one request. @throws {SharedDataError} `too-large` */
  async multi({ session, call }: Pick<Attempt, 'session' | 'call'>, operations: readonly MultiOperation[]): Promise<void> {
    checkRequest(this.path, operations);
    await session.multi(operations, call);
  }

  /** To be thrown where a write that is not to be made twice has got no reply. */
  outcomeUnknown(what: string, cause?: unknown): SharedDataError {
    return new SharedDataError(`${this.title}: whether ${what} cannot be told: the reply was lost`, 'outcome-unknown', this.path, cause);
  }
}

/** Has the server of the session catch up with all that was written before: it may lag behind until it has answered a write. */
export async function caughtUp(session: BoundSession, path: string, call: CallOptions): Promise<void> {
  try {
    await session.multi([{ type: 'check', path }], call);
  } catch (error) {
    if (!isFault(error, 'no-node')) throw error;
  }
}

/** Lost replies and sessions, and what another has written since it was read. */
const REPEATED = ['connection-loss', 'timeout', 'session-expired', 'bad-version', 'node-exists', 'no-node', 'not-empty'] as const;
