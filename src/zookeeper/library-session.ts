import { ACL, CreateMode, createClient, Id, Permission, type Stat } from 'node-zookeeper-client';
import { authData, type DigestAuth } from './connect-string.js';
import { LibraryConnection, type LibraryConnectionOptions } from './library-connection.js';
import type { LibraryClient, LibraryError, TransactionInternals } from './library-internals.js';
import { type CreatedZnode, LARGEST_DATA, type CreateMode as Mode, type MultiOperation, type Znode, type ZnodeStat } from './zookeeper.js';
import { RequestFailure } from './zookeeper-error.js';

export interface LibrarySessionOptions extends LibraryConnectionOptions {
  readonly auth: DigestAuth | undefined;
}

/** What the client needs of a session: the simulation has another one. */
export type Session = Pick<LibrarySession, keyof LibrarySession>;
export type OpenSession = (options: LibrarySessionOptions) => Session;

const MODES: Readonly<Record<Mode, number>> = {
  shared: CreateMode.PERSISTENT,
  persistent: CreateMode.PERSISTENT,
  ephemeral: CreateMode.EPHEMERAL,
  'persistent-sequential': CreateMode.PERSISTENT_SEQUENTIAL,
  'ephemeral-sequential': CreateMode.EPHEMERAL_SEQUENTIAL,
};

/**
 * The library wants a watcher to ask for a watch; what it would be told arrives by another way. Requests with one are the last of their turn: a caller
 * waits for an answer, and a watch for changes.
 */
const WATCH = () => undefined;

/**
 * One session with ZooKeeper: one client of the library.
 *
 * Paths are absolute on the servers. Requests may only be made while connected; they reject with a {@link RequestFailure}.
 */
export class LibrarySession extends LibraryConnection {
  readonly #own: ACL[];
  readonly #shared: ACL[];

  constructor({ auth, ...options }: LibrarySessionOptions) {
    // The connection finds its servers past the library's parser, which knows no IPv6.
    const client = createClient('127.0.0.1', { sessionTimeout: options.sessionTimeoutMs, retries: 0 }) as LibraryClient;
    if (auth) client.addAuthInfo(auth.scheme, authData(auth));
    super(client, options);
    const anyone = (permission: number) => new ACL(permission, new Id('world', 'anyone'));
    this.#own = [anyone(Permission.ALL)];
    this.#shared = this.#own;
    if (auth) {
      // "auth" stands for the user that the connection has authenticated as.
      const owner = new ACL(Permission.ALL, new Id('auth', ''));
      this.#own = [owner, anyone(Permission.READ)];
      // Who may change the rights could shut out all others.
      this.#shared = [owner, anyone(Permission.ALL & ~Permission.ADMIN)];
    }
  }

  async create(path: string, data: Buffer, mode: Mode): Promise<string> {
    checkSize(data.length);
    return this.request((done) => this.client.create(path, data, this.#accessTo(mode), MODES[mode], done));
  }

  /** The same by the operation that answers with a stat: the library does not know it. */
  async createWithZxid(path: string, data: Buffer, mode: Mode): Promise<CreatedZnode> {
    checkSize(data.length);
    return this.request<CreatedZnode>((done) => {
      const answered = (error: LibraryError | null, made: string) => done(error, { path: made, createdZxid: this.guard.createdZxid(made) });
      this.guard.askForStat(() => this.client.create(path, data, this.#accessTo(mode), MODES[mode], answered));
    });
  }

  remove(path: string, version: number): Promise<void> {
    return this.request((done) => this.client.remove(path, version, done));
  }

  async setData(path: string, data: Buffer, version: number): Promise<ZnodeStat> {
    checkSize(data.length);
    return toStat(await this.request<Stat>((done) => this.client.setData(path, data, version, done)));
  }

  /** @param watch whether the next change of the data is to be told */
  read(path: string, watch: boolean): Promise<Znode> {
    return this.request<Znode>((done) => {
      const answered = (error: LibraryError | null, data: Buffer | undefined, stat: Stat) =>
        error ? done(error) : done(null, { data: data ?? Buffer.alloc(0), stat: toStat(stat) });
      if (watch) this.client.getData(path, WATCH, answered);
      else this.client.getData(path, answered);
    }, watch);
  }

  /** @param watch whether the next change of the set of children is to be told */
  children(path: string, watch: boolean): Promise<readonly string[]> {
    return this.request<string[]>((done) => {
      const answered = (error: LibraryError | null, names: string[]) => done(error, names);
      if (watch) this.client.getChildren(path, WATCH, answered);
      else this.client.getChildren(path, answered);
    }, watch);
  }

  /** @param watch whether the making of the znode, or its next change, is to be told */
  async exists(path: string, watch: boolean): Promise<boolean> {
    const stat = await this.request<Stat | null>((done) => {
      if (watch) this.client.exists(path, WATCH, done);
      else this.client.exists(path, done);
    }, watch);
    return stat !== null;
  }

  async multi(operations: readonly MultiOperation[]): Promise<void> {
    checkSize(operations.reduce((sum, operation) => sum + ('data' in operation ? Buffer.byteLength(operation.data) : 0), 0));
    return this.request<void>((done) => {
      const transaction = this.client.transaction();
      const { ops } = transaction as unknown as TransactionInternals;
      for (const operation of operations) {
        const { path } = operation;
        if (operation.type === 'create')
          transaction.create(path, Buffer.from(operation.data), this.#accessTo(operation.mode), MODES[operation.mode]);
        else if (operation.type === 'set') transaction.setData(path, Buffer.from(operation.data));
        else if (operation.type === 'remove') transaction.remove(path);
        else transaction.check(path);
        // The library takes a version of 0 for none.
        const added = ops.at(-1);
        if (added && operation.type !== 'create') added.version = operation.version ?? -1;
      }
      transaction.commit((error, results: readonly { readonly err?: number }[] | undefined) => {
        // Those before the one that is refused are told to be fine, those after it to have been given up.
        const index = results?.findIndex(({ err = 0 }) => err !== 0);
        done(error, undefined, index === -1 ? undefined : index);
      });
    });
  }

  #accessTo(mode: Mode): ACL[] {
    return mode === 'shared' ? this.#shared : this.#own;
  }
}

/** A server closes the connection on a request that is too large, every time that it is sent. */
function checkSize(bytes: number): void {
  if (bytes > LARGEST_DATA) throw new RequestFailure('refused', false, `${bytes} bytes of data, where a request takes ${LARGEST_DATA}`);
}

function toStat(stat: Stat): ZnodeStat {
  const owner = stat.ephemeralOwner.toString('hex');
  return {
    version: stat.version,
    childrenVersion: stat.cversion,
    createdZxid: stat.czxid.readBigUInt64BE(),
    modifiedZxid: stat.mzxid.readBigUInt64BE(),
    createdAt: Number(stat.ctime.readBigInt64BE()),
    modifiedAt: Number(stat.mtime.readBigInt64BE()),
    owner: /^0+$/.test(owner) ? undefined : owner,
    childCount: stat.numChildren,
  };
}
