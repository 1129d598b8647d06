import type { BoundSession } from '../../src/zookeeper/client/bound-session.js';
import { SessionActivity } from '../../src/zookeeper/client/connection/session-activity.js';
import { checkOperations } from '../../src/zookeeper/client/operation-check.js';
import type { SessionState } from '../../src/zookeeper/client/session-state.js';
import {
  type CallOptions,
  type CreatedZnode,
  type MultiOperation,
  type ReadingWatch,
  type Znode,
  type ZnodeData,
  type ZooKeeper,
  ZooKeeperError,
  type ZooKeeperFault,
} from '../../src/zookeeper/client/zookeeper.js';
import { keepGroups } from '../../src/zookeeper/discovery/allocation/id-groups.js';
import { groupPath, hexPair } from '../../src/zookeeper/discovery/layout.js';
import { seededRandom, type VirtualClock } from './virtual-clock.js';

/** The time-out of its sessions, in milliseconds. */
export const SESSION_MS = 12_000;
/** The leader's clock at the beginning: a day from the one of this host. */
export const LEADER_EPOCH = 1_700_086_400_000;

/** What a call is, and how to have it carried out; throws what the call is to fail with. */
export type Fault = (operation: string, path: string, apply: () => void) => Promise<void>;

/** What a call fails with. */
export const fails = (fault: ZooKeeperFault, outcome: 'unknown' | 'not-applied') =>
  new ZooKeeperError(fault, fault, outcome);

/** Where a cluster node id is claimed. */
export const pathOf = (clusterNodeId: number) =>
  `${groupPath(clusterNodeId >> 8)}/${hexPair(clusterNodeId & 0xff)}`;

/** Maintains the groups of node ids once, as a holder does about once a minute. */
export async function tendGroups(session: BoundSession, maxGroups: number): Promise<void> {
  const over = new AbortController();
  const clock = { sleep: async () => over.abort() };
  await keepGroups({ nodeId: 200, session }, maxGroups, {
    clock,
    random: seededRandom(1),
    ending: over.signal,
  });
}

/** A tree in memory, and a network whose behaviour can be set. Watches report nothing by themselves. */
export class ScriptedZooKeeper implements ZooKeeper {
  readonly description = 'scripted';
  readonly znodes: Map<string, Znode>;
  readonly calls: string[] = [];
  readonly listeners = new Set<(state: SessionState) => void>();
  readonly watches = new Map<ReadingWatch, () => void>();
  fault: Fault | undefined;
  /** Znodes that this session may not change. */
  readonly denied = new Set<string>();
  state: SessionState = { status: 'connected', sessionId: 'a', timeoutMs: SESSION_MS, server: 'x:1' };
  zxid = 100n;
  /** Of the leader, in milliseconds since the Unix epoch. */
  leaderTime = () => LEADER_EPOCH + this.clock.monotonic();
  readonly activity = new SessionActivity();
  #others = 0;
  /** The number of the next sequential znode. */
  readonly sequence: { next: number };

  /** @param other another session with the same tree */
  constructor(
    private readonly clock: VirtualClock,
    other?: ScriptedZooKeeper,
  ) {
    this.znodes = other?.znodes ?? new Map();
    this.sequence = other === undefined ? { next: 1 } : other.sequence;
    if (other === undefined) return;
    this.#others = other.#others + 1;
    this.zxid = other.zxid + 1_000n;
    this.state = { ...this.state, sessionId: String.fromCharCode(97 + this.#others) } as SessionState;
  }

  /** Of a client whose pings are all answered. */
  heardBy = (at: number): number => Math.max(at - SESSION_MS / 3, this.activity.heardBy(at));

  become(state: SessionState): void {
    this.state = state;
    if (state.status === 'connected') this.activity.begin(this.clock.monotonic(), state.timeoutMs);
    for (const listener of [...this.listeners]) listener(state);
  }

  put(path: string, data: ZnodeData, owner: string | undefined): void {
    this.zxid += 1n;
    const createdZxid = this.zxid;
    const at = Math.floor(this.leaderTime());
    const times = { createdZxid, modifiedZxid: createdZxid, createdAt: at, modifiedAt: at };
    this.znodes.set(path, {
      data: Buffer.from(data as string),
      stat: { version: 0, childrenVersion: 0, ...times, owner, childCount: 0 },
    });
  }

  /** The servers end the session, and notify no client. */
  endSession(): void {
    const own = 'sessionId' in this.state ? this.state.sessionId : undefined;
    for (const [path, { stat }] of this.znodes) if (stat.owner === own) this.znodes.delete(path);
  }

  fireWatches(): void {
    for (const fire of [...this.watches.values()]) fire();
  }

  onState(listener: (state: SessionState) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async whenConnected(): Promise<SessionState & { status: 'connected' }> {
    if (this.state.status !== 'connected') throw fails('timeout', 'not-applied');
    return this.state;
  }

  create(path: string, data: ZnodeData, mode: string, call: CallOptions = {}): Promise<string> {
    return this.#call('create', path, call, () => this.#create(path, data, mode, call));
  }

  createWithZxid(path: string, data: ZnodeData, mode: string, call: CallOptions = {}): Promise<CreatedZnode> {
    return this.#call('create', path, call, () => {
      const made = this.#create(path, data, mode, call);
      return { path: made, createdZxid: this.znodes.get(made)?.stat.createdZxid };
    });
  }

  createWithParents(path: string, data: ZnodeData, mode: string, call: CallOptions = {}): Promise<string> {
    return this.create(path, data, mode, call);
  }

  ensurePath(path: string, call: CallOptions = {}): Promise<void> {
    return this.#call('ensurePath', path, call, () => {
      const ends = [...path.matchAll(/(?<=.)\/|$/g)].map(({ index }) => index);
      for (const above of ends.map((end) => path.slice(0, end)))
        if (!this.znodes.has(above)) this.put(above, '', undefined);
    });
  }

  read(path: string, call: CallOptions = {}): Promise<Znode | undefined> {
    return this.#call('read', path, call, () => this.znodes.get(path));
  }

  children(path: string, call: CallOptions = {}): Promise<readonly string[] | undefined> {
    return this.#call('children', path, call, () => this.#children(path));
  }

  setData(path: string, data: ZnodeData, version = -1, call: CallOptions = {}): Promise<Znode['stat']> {
    return this.#call('setData', path, call, () => {
      this.#expect(path, version);
      return this.overwrite(path, data);
    });
  }

  /** Replaces the data, whatever its version. */
  overwrite(path: string, data: ZnodeData): Znode['stat'] {
    const { stat: before } = this.znodes.get(path) as Znode;
    this.zxid += 1n;
    const stat = {
      ...before,
      version: before.version + 1,
      modifiedZxid: this.zxid,
      modifiedAt: Math.floor(this.leaderTime()),
    };
    this.znodes.set(path, { data: Buffer.from(data as string), stat });
    return stat;
  }

  #expect(path: string, version = -1): void {
    const znode = this.znodes.get(path);
    if (znode === undefined) throw fails('no-node', 'not-applied');
    if (version !== -1 && version !== znode.stat.version) throw fails('bad-version', 'not-applied');
  }

  remove(path: string, _version?: number, call: CallOptions = {}): Promise<boolean> {
    return this.#call('remove', path, call, () => this.znodes.delete(path));
  }

  multi(operations: readonly MultiOperation[], call: CallOptions = {}): Promise<void> {
    checkOperations(operations);
    return this.#call('multi', operations[0]?.path ?? '', call, () => {
      for (const operation of operations) {
        if (operation.type !== 'check' && this.denied.has(operation.path))
          throw fails('no-auth', 'not-applied');
        if (operation.type === 'create' && this.znodes.has(operation.path))
          throw fails('node-exists', 'not-applied');
        if (operation.type === 'create')
          this.#expect(operation.path.slice(0, operation.path.lastIndexOf('/')));
        if (operation.type !== 'create') this.#expect(operation.path, operation.version);
      }
      for (const operation of operations) {
        if (operation.type === 'create') this.#create(operation.path, operation.data, operation.mode, call);
        else if (operation.type === 'set') this.overwrite(operation.path, operation.data);
        else if (operation.type === 'remove') this.znodes.delete(operation.path);
      }
    });
  }

  watchChildren(
    path: string,
    listener: (children: readonly string[] | undefined, path: string) => void,
  ): ReadingWatch {
    return this.#watch(() => listener(this.#children(path), path));
  }

  watchData(path: string, listener: (znode: Znode | undefined, path: string) => void): ReadingWatch {
    return this.#watch(() => listener(this.znodes.get(path), path));
  }

  watchRemoval(path: string, listener: () => void): ReadingWatch {
    return this.#watch(() => !this.znodes.has(path) && listener());
  }

  async close(): Promise<void> {
    this.become({ status: 'closed' });
  }

  #watch(notify: () => void): ReadingWatch {
    const watch = {
      first: Promise.resolve(),
      isRefused: false,
      close: () => void this.watches.delete(watch),
    };
    this.watches.set(watch, notify);
    return watch;
  }

  #create(path: string, data: ZnodeData, mode: string, { sessionId }: CallOptions): string {
    const full =
      mode === 'ephemeral-sequential' ? `${path}${String(this.sequence.next++).padStart(10, '0')}` : path;
    if (this.znodes.has(full)) throw fails('node-exists', 'not-applied');
    this.put(full, data, mode.startsWith('ephemeral') ? sessionId : undefined);
    return full;
  }

  #children(path: string): string[] {
    const below = `${path}/`;
    return [...this.znodes.keys()]
      .filter((key) => key.startsWith(below) && !key.slice(below.length).includes('/'))
      .map((key) => key.slice(below.length));
  }

  async #call<T>(
    operation: string,
    path: string,
    { timeoutMs = 5_000, sessionId, signal }: CallOptions,
    act: () => T,
  ): Promise<T> {
    this.calls.push(`${operation} ${path}`);
    if (!('sessionId' in this.state) || this.state.sessionId !== sessionId)
      throw fails('session-expired', 'not-applied');
    let result: { readonly value: T } | undefined;
    const apply = () => {
      result ??= { value: act() };
    };
    const sentAt = this.clock.monotonic();
    const over = new AbortController();
    const onAbort = () => over.abort(fails('aborted', 'unknown'));
    signal?.addEventListener('abort', onAbort, { once: true });
    const late = this.clock
      .sleep(timeoutMs, over.signal)
      .then(() => Promise.reject(fails('timeout', 'unknown')));
    try {
      await Promise.race([this.fault?.(operation, path, apply), late]);
      apply();
      this.activity.answered(sentAt, this.clock.monotonic());
      return (result as unknown as { value: T }).value;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      late.catch(() => undefined);
      over.abort();
    }
  }
}

/** Of a client that names no session. */
export class AnySession extends ScriptedZooKeeper {
  protected inSession(call: CallOptions): CallOptions {
    return 'sessionId' in this.state ? { ...call, sessionId: call.sessionId ?? this.state.sessionId } : call;
  }

  override read(path: string, call: CallOptions = {}) {
    return super.read(path, this.inSession(call));
  }

  override children(path: string, call: CallOptions = {}) {
    return super.children(path, this.inSession(call));
  }

  override remove(path: string, version?: number, call: CallOptions = {}) {
    return super.remove(path, version, this.inSession(call));
  }

  override ensurePath(path: string, call: CallOptions = {}) {
    return super.ensurePath(path, this.inSession(call));
  }

  /** One after the other: an operation may create the parent of the next one. */
  override async multi(operations: readonly MultiOperation[], call: CallOptions = {}) {
    for (const each of operations) await super.multi([each], this.inSession(call));
  }
}

/** The same, whose server shows nothing until a transaction. */
export class LaggingServer extends AnySession {
  #isBehind = true;

  /** A new session, at another server of that kind. */
  nextSession(sessionId: string): void {
    this.#isBehind = true;
    this.become({ status: 'connected', sessionId, timeoutMs: SESSION_MS, server: 'y:1' });
  }

  override watchData(path: string, listener: (znode: Znode | undefined, path: string) => void) {
    return super.watchData(path, (znode) => listener(this.#isBehind ? undefined : znode, path));
  }

  override async read(path: string, call: CallOptions = {}) {
    const isBehind = this.#isBehind;
    const found = await super.read(path, call);
    return isBehind ? undefined : found;
  }

  override async children(path: string, call: CallOptions = {}) {
    const isBehind = this.#isBehind;
    const found = await super.children(path, call);
    return isBehind ? undefined : found;
  }

  override watchChildren(
    path: string,
    listener: (names: readonly string[] | undefined, path: string) => void,
  ) {
    return super.watchChildren(path, (names) => listener(this.#isBehind ? undefined : names, path));
  }

  override setData(path: string, data: ZnodeData, version?: number, call: CallOptions = {}) {
    return super.setData(path, data, version, this.inSession(call));
  }

  override multi(operations: readonly MultiOperation[], call: CallOptions = {}) {
    // A session's reads come after its writes.
    this.#isBehind = false;
    return super.multi(operations, call);
  }
}
