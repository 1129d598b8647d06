import type { CallOptions, CreateMode, MultiOperation, Znode, ZnodeStat, ZooKeeper } from '../../zookeeper/zookeeper.js';

/** What every call here may be given: the session is settled. */
export type BoundCall = Omit<CallOptions, 'sessionId'>;

/**
 * A ZooKeeper client in one session: every call fails as `session-expired` in any other one, so that nothing which was decided in one
 * session is done in the next. Counts its calls.
 */
export class BoundSession {
  #requests = 0;

  constructor(
    private readonly zookeeper: ZooKeeper,
    readonly sessionId: string,
  ) {}

  /** The calls so far; one that makes parents counts as one. */
  get requests(): number {
    return this.#requests;
  }

  create(path: string, data: string, mode: CreateMode, call?: BoundCall): Promise<string> {
    return this.zookeeper.create(path, data, mode, this.#bound(call));
  }

  createWithParents(path: string, data: string, mode: CreateMode, call?: BoundCall): Promise<string> {
    return this.zookeeper.createWithParents(path, data, mode, this.#bound(call));
  }

  ensurePath(path: string, call?: BoundCall): Promise<void> {
    return this.zookeeper.ensurePath(path, this.#bound(call));
  }

  read(path: string, call?: BoundCall): Promise<Znode | undefined> {
    return this.zookeeper.read(path, this.#bound(call));
  }

  children(path: string, call?: BoundCall): Promise<readonly string[] | undefined> {
    return this.zookeeper.children(path, this.#bound(call));
  }

  setData(path: string, data: string, version: number, call?: BoundCall): Promise<ZnodeStat> {
    return this.zookeeper.setData(path, data, version, this.#bound(call));
  }

  remove(path: string, version?: number, call?: BoundCall): Promise<boolean> {
    return this.zookeeper.remove(path, version, this.#bound(call));
  }

  multi(operations: readonly MultiOperation[], call?: BoundCall): Promise<void> {
    return this.zookeeper.multi(operations, this.#bound(call));
  }

  #bound(call: BoundCall | undefined): CallOptions {
    this.#requests += 1;
    return { ...call, sessionId: this.sessionId };
  }
}
