import { type Client, createClient } from 'node-zookeeper-client';
import { authData, type DigestAuth } from '../connect-string.js';
import {
  type CreatedZnode,
  type CreateMode,
  LARGEST_DATA,
  type MultiOperation,
  RequestFailure,
  type Znode,
  type ZnodeStat,
} from '../zookeeper.js';
import { LibraryConnection, type LibraryConnectionOptions } from './library-connection.js';
import type { LibraryClient } from './library-internals.js';
import { type Access, type AccessList, accessList, Op, Permission, Request } from './messages.js';

export interface LibrarySessionOptions extends LibraryConnectionOptions {
  readonly auth: DigestAuth | undefined;
}

/** The part of a session that the client needs: the simulation has another implementation. */
export type Session = Pick<LibrarySession, keyof LibrarySession>;
export type OpenSession = (options: LibrarySessionOptions) => Session | Promise<Session>;

/**
 * One session with ZooKeeper: one client of the library.
 *
 * Paths are absolute on the servers. Requests may only be made while connected; they reject with a
 * {@link RequestFailure}.
 */
export class LibrarySession extends LibraryConnection {
  readonly #own: AccessList;
  readonly #shared: AccessList;

  constructor({ auth, ...options }: LibrarySessionOptions) {
    // The connection finds its servers past the library's parser, which knows no IPv6.
    const client = createClient('127.0.0.1', {
      sessionTimeout: options.sessionTimeoutMs,
      retries: 0,
    }) as Client & LibraryClient;
    if (auth) client.addAuthInfo(auth.scheme, authData(auth));
    super(client, options);
    const anyone = (permissions: number): Access => [permissions, 'world', 'anyone'];
    this.#own = accessList([anyone(Permission.all)]);
    this.#shared = this.#own;
    if (auth) {
      // "auth" is the user that the connection has authenticated as.
      const owner: Access = [Permission.all, 'auth', ''];
      this.#own = accessList([owner, anyone(Permission.read)]);
      // Who may change the rights could shut out all others.
      this.#shared = accessList([owner, anyone(Permission.all & ~Permission.admin)]);
    }
  }

  async create(path: string, data: Buffer, mode: CreateMode): Promise<string> {
    checkSize(data.length);
    return this.requests.send(Request.create(Op.create, path, data, this.#accessTo(mode), mode), (answer) =>
      answer.text(),
    );
  }

  async createWithZxid(path: string, data: Buffer, mode: CreateMode): Promise<CreatedZnode> {
    checkSize(data.length);
    return this.requests.send(
      Request.create(Op.createWithStat, path, data, this.#accessTo(mode), mode),
      (answer) => ({ path: answer.text(), createdZxid: answer.long() }),
    );
  }

  async remove(path: string, version: number): Promise<void> {
    return this.requests.send(new Request(Op.delete, [path, version]), nothing);
  }

  async setData(path: string, data: Buffer, version: number): Promise<ZnodeStat> {
    checkSize(data.length);
    return this.requests.send(new Request(Op.setData, [path, data, version]), (answer) => answer.stat());
  }

  /** @param watch whether to report the next change of the data */
  read(path: string, watch: boolean): Promise<Znode> {
    return this.requests.send(
      new Request(Op.getData, [path, watch]),
      (answer) => ({ data: answer.data(), stat: answer.stat() }),
      watch,
    );
  }

  /** @param watch whether to report the next change of the set of children */
  children(path: string, watch: boolean): Promise<readonly string[]> {
    return this.requests.send(new Request(Op.getChildren, [path, watch]), (answer) => answer.texts(), watch);
  }

  /** @param watch whether to report the creation of the znode, or its next change */
  async exists(path: string, watch: boolean): Promise<boolean> {
    try {
      await this.requests.send(new Request(Op.exists, [path, watch]), nothing, watch);
      return true;
    } catch (error) {
      if (error instanceof RequestFailure && error.fault === 'no-node') return false;
      throw error;
    }
  }

  async multi(operations: readonly MultiOperation[]): Promise<void> {
    checkSize(
      operations.reduce(
        (sum, operation) => sum + ('data' in operation ? Buffer.byteLength(operation.data) : 0),
        0,
      ),
    );
    return this.requests.send(
      Request.multi(operations, (mode) => this.#accessTo(mode)),
      (answer) => answer.results(),
    );
  }

  #accessTo(mode: CreateMode) {
    return mode === 'shared' ? this.#shared : this.#own;
  }
}

/** The answer has no body, or no body of interest. */
const nothing = () => undefined;

/** A server closes the connection on a request that is too large, every time that it is sent. */
function checkSize(bytes: number) {
  if (bytes > LARGEST_DATA)
    throw new RequestFailure(
      'refused',
      false,
      `${bytes} bytes of data, where a request takes ${LARGEST_DATA}`,
    );
}
