import { isSessionOver } from './session-state.js';
import type { CallOptions, ZooKeeper } from './zookeeper.js';

/**
 * A client in one session: every call fails as `session-expired` in any other one, so that nothing decided in
 * one session is done in the next.
 */
export class BoundSession {
  /**
   * @param requests the number of calls, also in earlier sessions; a call that makes parents counts as one
   */
  constructor(
    private readonly zookeeper: ZooKeeper,
    readonly sessionId: string,
    public requests = 0,
  ) {}

  readonly createWithZxid: ZooKeeper['createWithZxid'] = (path, data, mode, call) =>
    this.zookeeper.createWithZxid(path, data, mode, this.#bound(call));
  readonly createWithParents: ZooKeeper['createWithParents'] = (path, data, mode, call) =>
    this.zookeeper.createWithParents(path, data, mode, this.#bound(call));
  readonly ensurePath: ZooKeeper['ensurePath'] = (path, call) =>
    this.zookeeper.ensurePath(path, this.#bound(call));
  readonly read: ZooKeeper['read'] = (path, call) => this.zookeeper.read(path, this.#bound(call));
  readonly children: ZooKeeper['children'] = (path, call) => this.zookeeper.children(path, this.#bound(call));
  readonly setData: ZooKeeper['setData'] = (path, data, version, call) =>
    this.zookeeper.setData(path, data, version, this.#bound(call));
  readonly remove: ZooKeeper['remove'] = (path, version, call) =>
    this.zookeeper.remove(path, version, this.#bound(call));
  readonly multi: ZooKeeper['multi'] = (operations, call) =>
    this.zookeeper.multi(operations, this.#bound(call));

  /** Whether the session has ended, or the client has been closed. */
  get isOver(): boolean {
    return isSessionOver(this.zookeeper.state, this.sessionId);
  }

  /** As that of the client, of this session only. */
  heardBy(at: number): number {
    const { state } = this.zookeeper;
    return 'sessionId' in state && state.sessionId === this.sessionId
      ? this.zookeeper.heardBy(at)
      : Number.NEGATIVE_INFINITY;
  }

  #bound(call: CallOptions | undefined) {
    this.requests += 1;
    return { ...call, sessionId: this.sessionId };
  }
}
