import { orAborted, timeoutSignal } from '../../core/base/abort.js';
import { checked } from '../../core/base/arguments.js';
import { retrying } from '../../core/base/retry.js';
import { BoundSession } from '../client/bound-session.js';
import { catchUp } from '../client/retry.js';
import {
  CALL_TIMEOUT_MS,
  type CallOptions,
  isFault,
  isUnknown,
  type MultiOperation,
  OVERTAKEN,
  TRANSIENT,
  type Znode,
  type ZooKeeperContext,
  ZooKeeperError,
} from '../client/zookeeper.js';
import { bareScalar, type DatumRecord, decodeRecord, encodeRecord, isBlank } from './entry.js';
import { dataFolder, isIndex, type PathStrategy, placeName, titleOf } from './layout.js';
import { checkListing, checkRequest } from './limits.js';
import { SharedDataError } from './shared-data-error.js';

/** How long a call may take, and what gives it up. */
export interface DataCall {
  /** In milliseconds, the wait for a connection included. @default 5000 */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What all shared data of one root has in common. */
export interface DataContext extends ZooKeeperContext {
  readonly root: string;
  readonly paths: PathStrategy;
}

/** Between two attempts, in milliseconds. */
const RETRY_MS = { first: 10, max: 500, atOnce: 1 };
/** The attempt has to be made again, on what can be read by now. */
const STALE = new Error('what was read may be out of date');

/** What a step works with: one session, so that what it reads is never older than what it has read before. */
export interface Step {
  readonly session: BoundSession;
  readonly call: CallOptions;
}

/** A step that is made again where its reply is lost, or others have changed what it read. */
export interface RepeatedStep extends Step {
  /** Whether an earlier attempt may have been carried out: its reply was lost. */
  readonly mayBeDone: boolean;
  /**
   * Resolves to an answer for which nothing is written. Where what was read may be older than the call, the
   * server catches up, and the attempt is made again.
   */
  answer<T>(value: T): Promise<T>;
  /** Makes a write that is not to be made twice. Where its reply is lost, or late, the call fails with `unknown`. */
  once(write: Promise<void>, unknown: (cause: unknown) => Error): Promise<void>;
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
    return titleOf(this.record.address);
  }

  /**
   * What its own znode is. Other implementations of Monastery write no record: their scalars are a type and a
   * value alone, and a znode without data is of the kind as which it is opened.
   *
   * @throws {SharedDataError} `foreign-znode`
   */
  found({ data, stat }: Znode): Pick<DatumRecord, 'kind' | 'lifespan'> {
    const record = decodeRecord(data);
    if (record) return record;
    const owned = stat.owner === undefined ? undefined : ({ lifespan: 'ephemeral' } as const);
    if (bareScalar(data)) return { kind: 'scalar', lifespan: 'persistent', ...owned };
    const { kind } = this.record;
    if (isBlank(data) && (kind !== 'scalar' || stat.childCount === 0)) return { ...this.record, ...owned };
    throw this.foreign();
  }

  /** @throws {SharedDataError} `kind-clash`, with both kinds, or `foreign-znode` */
  check(znode: Znode | undefined): void {
    if (znode === undefined) return;
    const { kind, lifespan } = this.record;
    const found = this.found(znode);
    if (found.kind === kind && found.lifespan === lifespan) return;
    const expected = `it is a ${found.lifespan} ${found.kind}, and not a ${lifespan} ${kind}`;
    throw new SharedDataError(`${this.title}: ${expected}`, 'kind-clash', this.path);
  }

  /**
   * The collection's own znode, whose version shows whether an element was removed since; undefined for none.
   */
  async collection({ session, call }: Step): Promise<Znode | undefined> {
    const znode = await session.read(this.path, call);
    this.check(znode);
    return znode;
  }

  /** The same; where there is none it is made, and the attempt is made again. */
  async ensured(attempt: RepeatedStep): Promise<Znode> {
    const znode = await this.collection(attempt);
    if (znode !== undefined) return znode;
    await this.make(attempt);
    throw STALE;
  }

  /** Makes the collection's own znode. */
  async make({ session, call }: Step): Promise<void> {
    await session.createWithParents(this.path, encodeRecord(this.record), 'shared', call);
  }

  /**
   * The name of an element's znode.
   * @param hash of a set's or map's element; a list has none
   * @param n the place in its chain or list
   */
  nameAt(hash: string, n: number): string {
    return this.record.kind === 'list' ? String(n) : placeName(hash, n);
  }

  /** The path of that: a scalar is its only element itself. */
  pathAt(hash: string, n: number): string {
    return this.record.kind === 'scalar' ? this.path : `${this.path}/${this.nameAt(hash, n)}`;
  }

  /** Which places a name may be: a strategy's hash may look like a place of another one. */
  placesOf(name: string): { readonly hash: string; readonly n: number }[] {
    if (this.record.kind === 'list') return isIndex(name) ? [{ hash: '', n: Number(name) }] : [];
    const [, hash, n] = /^(.+)-([1-9]\d*)$/.exec(name) ?? [];
    return [{ hash: name, n: 0 }, ...(hash === undefined ? [] : [{ hash, n: Number(n) }])];
  }

  /**
   * Makes an element: its listing and its data have to fit in ZooKeeper's packets.
   * @throws {SharedDataError} `too-large`
   */
  creation(hash: string, n: number, document: string, collection: Znode): MultiOperation {
    checkListing(this.path, this.nameAt(hash, n), collection.stat.childCount + 1);
    const mode = this.record.lifespan === 'ephemeral' ? 'ephemeral' : 'shared';
    return { type: 'create', path: this.pathAt(hash, n), data: document, mode };
  }

  /** As {@link attempted}. @param what could not be done, as a clause */
  attempted<T>(what: string, call: DataCall, attempt: (attempt: RepeatedStep) => Promise<T>): Promise<T> {
    return attempted(this.context, this.path, `${this.title}: ${what}`, call, attempt);
  }

  /** To be thrown where another node contributes an element. @param session that it goes with */
  ownedByOther(session = 'none'): SharedDataError {
    const text = `${this.title}: another node contributes this entry, in session ${session}`;
    return new SharedDataError(text, 'owned-by-other', this.path);
  }

  /** To be thrown where another program's znode is. */
  foreign(): SharedDataError {
    return new SharedDataError(`${this.path} holds no shared data`, 'foreign-znode', this.path);
  }

  /** Carries out what fits in one request. @throws {SharedDataError} `too-large` */
  async multi({ session, call }: Step, operations: readonly MultiOperation[]): Promise<void> {
    checkRequest(this.path, operations);
    await session.multi(operations, call);
  }

  /** To be thrown where a write that is not to be made twice has got no reply. */
  outcomeUnknown(what: string, cause?: unknown): SharedDataError {
    return new SharedDataError(
      `${this.title}: whether ${what} is unknown: the reply was lost`,
      'outcome-unknown',
      this.path,
      cause,
    );
  }
}

/**
 * Attempts until one settles: again with another session or connection, and where others have changed what it
 * read.
 *
 * @param failure for the message of a time-out
 * @throws {ZooKeeperError} `timeout`; access denied; client closed @throws {SharedDataError} @throws
 * `signal.reason`
 */
export async function attempted<T>(
  { zookeeper, clock, random }: DataContext,
  path: string,
  failure: string,
  options: DataCall,
  attempt: (attempt: RepeatedStep) => Promise<T>,
): Promise<T> {
  const { timeoutMs: ms = CALL_TIMEOUT_MS, signal } = checked(options);
  let cause: unknown;
  let mayBeDone = false;
  let fresh: string | undefined;
  let unknown: ((cause: unknown) => Error) | undefined;
  const late = () =>
    unknown?.(cause) ?? new ZooKeeperError(`${failure} within ${ms} ms`, 'timeout', 'unknown', path, cause);
  const once: RepeatedStep['once'] = async (write, whenUnknown) => {
    unknown = whenUnknown;
    try {
      await write;
    } catch (error) {
      throw isUnknown(error) ? whenUnknown(error) : error;
    } finally {
      unknown = undefined;
    }
  };
  const limit = timeoutSignal(clock, ms, late, signal);
  const call = { signal: limit.signal, timeoutMs: ms };
  const retry = retrying({
    ...{ clock, random, signal: limit.signal, backoff: RETRY_MS },
    mayPass: (error) => error === STALE || isFault(error, ...TRANSIENT, ...OVERTAKEN),
    onFailure: (error) => {
      if (error === STALE) return;
      mayBeDone ||= isUnknown(error);
      cause = error;
    },
  });
  try {
    return await retry(async () => {
      const { sessionId } = await zookeeper.whenConnected(call);
      const session = new BoundSession(zookeeper, sessionId);
      const answer = async <A>(value: A) => {
        if (fresh === sessionId) return value;
        await catchUp(session, path, call);
        fresh = sessionId;
        throw STALE;
      };
      return orAborted(attempt({ session, call, mayBeDone, answer, once }), limit.signal);
    });
  } finally {
    limit.release();
  }
}
