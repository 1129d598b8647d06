import {
  checkArguments,
  checked,
  checkKnown,
  FLAG,
  FUNCTION,
  type Kinds,
  kind,
  maybe,
  OBJECT,
  TEXT,
  whole,
} from '../../core/base/arguments.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import { type Call, CallQueue } from './call-queue.js';
import { type ConnectString, parseAuth, parseConnectString } from './connect-string.js';
import type { OpenSession, Session } from './connection/library-session.js';
import { prepareTls, type ZooKeeperTls } from './connection/tls.js';
import { ZNODE_ARGUMENTS as ARGUMENTS, checkOperations } from './operation-check.js';
import { SessionKeeper } from './session-keeper.js';
import type { ConnectedState, SessionState } from './session-state.js';
import {
  CHILDREN,
  DATA,
  REMOVAL,
  StandingWatches,
  type Watched,
  type WatchListener,
} from './standing-watches.js';
import { parentOf, pathProblem, withinChroot } from './znode-path.js';
import {
  CALL_TIMEOUT_MS,
  type CallOptions,
  type ChildrenListener,
  type CreatedZnode,
  type CreateMode,
  ignoring,
  isFault,
  type MultiOperation,
  type ReadingWatch,
  type TimeOptions,
  type Watch,
  type Znode,
  type ZnodeData,
  type ZnodeListener,
  type ZnodeStat,
  type ZooKeeper,
  ZooKeeperError,
} from './zookeeper.js';

/** How to reach ZooKeeper. */
export interface ZooKeeperOptions extends TimeOptions {
  /** `HOST:PORT[,HOST:PORT]…[/CHROOT]`, or the result of {@link parseConnectString}. */
  readonly connect: string | ConnectString;
  /**
   * How long the session outlives its connection, 1,000 to 600,000 milliseconds; the servers may grant
   * another time.
   * @default 20000
   */
  readonly sessionTimeoutMs?: number | undefined;
  /** How long a call may take that says nothing else, in milliseconds, 1 to 86,400,000. @default 5000 */
  readonly operationTimeoutMs?: number | undefined;
  /**
   * `digest:USER:PASSWORD`. Without it all users may do anything with the znodes made here. With it only this
   * user may change them, and all users may read them; in shared ones, such as parents, all users may make
   * and remove znodes, too. Wrong credentials are not refused as such: operations that they do not allow fail
   * as `no-auth`.
   *
   * @default none
   */
  readonly auth?: string | undefined;
  /**
   * Whether and how the connection is encrypted: `true` trusts the CAs that Node trusts. Its content is read
   * once.
   * @default false
   */
  readonly tls?: boolean | ZooKeeperTls | undefined;
}

/** The default of {@link ZooKeeperOptions.sessionTimeoutMs}: a lock outlasts an outage of a quarter of it. */
export const DEFAULT_SESSION_TIMEOUT_MS = 20_000;
/** The default of discovery's sessions: a dead node's entries go after it. */
export const DISCOVERY_SESSION_TIMEOUT_MS = 10_000;

/**
 * Begins to connect, in the background; the client can be used at once.
 * @throws {ConfigError} when an option is wrong
 */
export function openZooKeeper(options: ZooKeeperOptions): ZooKeeperClient {
  // A misspelt `auth` would leave all znodes open.
  checkKnown(options, [...Object.keys(OPTIONS), 'auth', 'clock', 'random']);
  return new ZooKeeperClient(options);
}

const OPTIONS: Kinds = {
  connect: kind('HOST:PORT[,HOST:PORT]...[/CHROOT], or what parseConnectString() returns', (value) =>
    TEXT.is(Array.isArray(Object(value).servers) ? Object(value).chroot : value),
  ),
  tls: maybe(kind('true, false or an object', (value) => FLAG.is(value) || OBJECT.is(value))),
  sessionTimeoutMs: maybe(milliseconds(1_000, 600_000)),
  operationTimeoutMs: maybe(milliseconds(1, 86_400_000)),
};
const CALL: Kinds = { sessionId: maybe(TEXT), reconnectOnTimeout: maybe(FLAG) };

/** Programs that only could use ZooKeeper do not load the library: it takes 12 MiB. */
const openLibrarySession: OpenSession = async (options) => {
  const { LibrarySession } = await import('./connection/library-session.js');
  return new LibrarySession(options);
};

/**
 * A client of ZooKeeper over `node-zookeeper-client`.
 *
 * A call is sent once, or not at all: whether to repeat it is for the caller to decide, by the error's
 * `fault` and `outcome`. Calls that are made while there is no connection wait for one until their deadline.
 */
export class ZooKeeperClient implements ZooKeeper {
  readonly description: string;
  readonly #chroot: string;
  readonly #keeper: SessionKeeper;
  readonly #calls: CallQueue;
  readonly #watches: StandingWatches;

  /** @see openZooKeeper @internal */
  constructor(options: ZooKeeperOptions, openSession: OpenSession = openLibrarySession) {
    const {
      clock = systemClock,
      random = systemRandom,
      sessionTimeoutMs = DEFAULT_SESSION_TIMEOUT_MS,
      operationTimeoutMs = CALL_TIMEOUT_MS,
    } = checked(options, OPTIONS);
    const connect =
      typeof options.connect === 'string' ? parseConnectString(options.connect, 'connect') : options.connect;
    const auth = options.auth === undefined ? undefined : parseAuth(options.auth, 'auth');
    const tls = options.tls ? prepareTls(options.tls === true ? {} : options.tls) : undefined;
    this.description = `zookeeper ${connect.text}`;
    this.#chroot = connect.chroot;
    const onChanged = (full: string, isGone: boolean) =>
      this.#watches.onChanged(full.slice(connect.chroot.length) || '/', isGone);
    const keeper = new SessionKeeper({
      connect,
      sessionTimeoutMs,
      auth,
      tls,
      clock,
      random,
      openSession,
      onChanged,
    });
    this.#keeper = keeper;
    this.#calls = new CallQueue(keeper, clock, operationTimeoutMs, this.description);
    this.#watches = new StandingWatches({
      clock,
      random,
      isConnected: () => keeper.state.status === 'connected',
      send: (operation, path, request) => this.#call(operation, path, false, {}, request),
    });
    keeper.onState(({ status }) => {
      if (status === 'connected') this.#watches.onConnected();
      if (status === 'closed') this.#watches.close();
    });
  }

  get state(): SessionState {
    return this.#keeper.state;
  }

  heardBy(at: number): number {
    return this.#keeper.heardBy(at);
  }

  /** How many watches are open. */
  get openWatches(): number {
    return this.#watches.size;
  }

  onState(listener: (state: SessionState) => void): () => void {
    checkArguments({ listener });
    return this.#keeper.onState(listener);
  }

  async whenConnected(options: Omit<CallOptions, 'sessionId'> = {}): Promise<ConnectedState> {
    checked(options);
    return this.#calls.whenConnected(options);
  }

  async create(path: string, data: ZnodeData, mode: CreateMode, options: CallOptions = {}): Promise<string> {
    checkArguments({ data, mode }, ARGUMENTS);
    return this.#call('create', path, true, options, async (session, full) => {
      const made = await session.create(full, Buffer.from(data), mode);
      return made.slice(this.#chroot.length) || '/';
    });
  }

  async createWithZxid(
    path: string,
    data: ZnodeData,
    mode: CreateMode,
    options: CallOptions = {},
  ): Promise<CreatedZnode> {
    checkArguments({ data, mode }, ARGUMENTS);
    return this.#call('create', path, true, options, async (session, full) => {
      const made = await session.createWithZxid(full, Buffer.from(data), mode);
      return { ...made, path: made.path.slice(this.#chroot.length) || '/' };
    });
  }

  async createWithParents(
    path: string,
    data: ZnodeData,
    mode: CreateMode,
    options: CallOptions = {},
  ): Promise<string> {
    checkArguments({ path });
    const full = withinChroot(this.#chroot, path);
    return this.#withParents(full, path, this.#share(options), (call) => this.create(path, data, mode, call));
  }

  async ensurePath(path: string, options: CallOptions = {}): Promise<void> {
    const call = this.#share(options);
    // Where it exists no right to make it may be at hand, nor any to make its parents.
    if (await this.#call('exists', path, false, call(), (session, full) => session.exists(full, false)))
      return;
    await this.#ensure(withinChroot(this.#chroot, path), path, call);
  }

  read(path: string, options: CallOptions = {}): Promise<Znode | undefined> {
    const reading = this.#call('read', path, false, options, (session, full) => session.read(full, false));
    return reading.catch(ignoringAbsent);
  }

  children(path: string, options: CallOptions = {}): Promise<readonly string[] | undefined> {
    const listing = this.#call('children', path, false, options, (session, full) =>
      session.children(full, false),
    );
    return listing.catch(ignoringAbsent);
  }

  async setData(path: string, data: ZnodeData, version = -1, options: CallOptions = {}): Promise<ZnodeStat> {
    checkArguments({ data, version }, ARGUMENTS);
    return this.#call('setData', path, true, options, (session, full) =>
      session.setData(full, Buffer.from(data), version),
    );
  }

  async remove(path: string, version = -1, options: CallOptions = {}): Promise<boolean> {
    checkArguments({ version }, ARGUMENTS);
    const removing = this.#call('remove', path, true, options, (session, full) =>
      session.remove(full, version).then(() => true),
    );
    return (await removing.catch(ignoringAbsent)) ?? false;
  }

  async multi(operations: readonly MultiOperation[], options: CallOptions = {}): Promise<void> {
    checkOperations(operations);
    checked(options, CALL);
    if (operations.length === 0) return;
    const paths = operations.map(({ path }) => path);
    const within = operations.map((operation) => ({
      ...operation,
      path: this.#check('multi', operation.path),
    }));
    const writes = operations.some(({ type }) => type !== 'check');
    const call = { operation: `multi of ${operations.length}`, paths, writes };
    await this.#calls.call(call, options, (session) => session.multi(within));
  }

  watchChildren(path: string, listener: ChildrenListener, onRefused?: (path: string) => void): ReadingWatch {
    return this.#watch(CHILDREN, path, listener, onRefused);
  }

  watchData(path: string, listener: ZnodeListener, onRefused?: (path: string) => void): ReadingWatch {
    return this.#watch(DATA, path, listener, onRefused);
  }

  watchRemoval(path: string, listener: () => void): Watch {
    return this.#watch(REMOVAL, path, listener);
  }

  #watch<S>(
    watched: Watched<S>,
    path: string,
    listener: WatchListener<S>,
    onRefused?: (path: string) => void,
  ): ReadingWatch {
    checkArguments({ listener, onRefused }, { onRefused: maybe(FUNCTION) });
    this.#check(watched.operation, path);
    return this.#watches.add(watched, path, listener, onRefused);
  }

  close(): Promise<void> {
    return this.#keeper.close();
  }

  /**
   * Runs `make` until it does not fail for want of a parent, and makes the parents in between; to the call's
   * deadline, where they are removed all the time.
   *
   * @param full the path on the servers
   */
  async #withParents<T>(
    full: string,
    path: string,
    call: () => CallOptions,
    make: (call: CallOptions) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      try {
        return await make(call());
      } catch (error) {
        if (!isFault(error, 'no-node')) throw error;
      }
      const parent = parentOf(full);
      if (parent !== '/') await this.#ensure(parent, path, call);
    }
  }

  /**
   * Makes a znode by its path on the servers, and before it the parents that turn out to be missing: existing
   * ones need not be writable.
   */
  #ensure(full: string, path: string, call: () => CallOptions): Promise<unknown> {
    const request: Call = { operation: 'create', path, writes: true };
    const create = (session: Session) => session.create(full, Buffer.alloc(0), 'shared');
    return this.#withParents(full, path, call, (options) =>
      this.#calls.call(request, options, create).catch(ignoring('node-exists')),
    );
  }

  async #call<T>(
    operation: string,
    path: string,
    writes: boolean,
    options: CallOptions,
    send: (session: Session, full: string) => Promise<T>,
  ): Promise<T> {
    checked(options, CALL);
    const full = this.#check(operation, path);
    return this.#calls.call({ operation, path, writes }, options, (session) => send(session, full));
  }

  /** The path on the servers. */
  #check(operation: string, path: string): string {
    checkArguments({ path });
    const problem = pathProblem(path);
    if (problem === undefined) return withinChroot(this.#chroot, path);
    throw new ZooKeeperError(
      `${this.description}: ${operation} ${JSON.stringify(path)}: ${problem} (refused)`,
      'refused',
      'not-applied',
      path,
    );
  }

  #share(given: CallOptions) {
    return this.#calls.oneCall(checked(given, CALL));
  }
}

/** An absent znode as a value. */
const ignoringAbsent = ignoring('no-node');

function milliseconds(min: number, max: number) {
  return kind(`a whole number of milliseconds, ${min} to ${max}`, whole(min, max).is);
}
