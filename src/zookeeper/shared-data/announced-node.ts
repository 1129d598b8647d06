import { withTimeout } from '../../core/base/abort.js';
import { Listeners } from '../../core/base/listeners.js';
import { BoundSession } from '../client/bound-session.js';
import { concurrentCalls } from '../client/call-limits.js';
import { catchUp, erase } from '../client/retry.js';
import { isSessionOver, type SessionState } from '../client/session-state.js';
import { nameAt } from '../client/znode-path.js';
import { type CallOptions, ignoring, type Watch, type Znode, type ZooKeeper } from '../client/zookeeper.js';
import { attempted, type DataCall, type DataContext, type RepeatedStep } from './datum.js';
import { versionOf } from './entry.js';
import { nodesFolder } from './layout.js';
import type { Replicated } from './replica.js';

/**
 * `joined`: it is there. `suspended`: there is no connection, and it may be gone already. `disconnected`:
 * it is gone, and stays so; another node may be announced.
 */
export type NodeState =
  | { readonly status: 'joined' }
  | { readonly status: 'suspended' }
  | { readonly status: 'disconnected'; readonly reason: DisconnectReason };

/** How long the end of a node is waited for, in milliseconds. */
export const LEAVE_TIMEOUT_MS = 1_000;
/** How long a node is looked for whose reply was lost, in milliseconds: most sessions end before. */
const LOST_TIMEOUT_MS = 60_000;

/** Why a node is gone. */
export type DisconnectReason = 'session-expired' | 'removed' | 'left' | 'closed';

/** A node as others see it. Its id is the last path element: `node-0000000007`. */
export interface KnownNode extends Replicated {
  /** The session that it goes with, 16 hex digits. */
  readonly sessionId: string;
  /** What it says of itself; the specification knows of nothing. */
  readonly data: Buffer;
  /** When it was announced, in milliseconds since the Unix epoch, by the servers' clock. */
  readonly announcedAt: number;
}

/** Undefined for a znode that is no node. */
export function decodeNode(name: string, { data, stat }: Znode): KnownNode | undefined {
  if (!/^node-\d{10}$/.test(name) || stat.owner === undefined) return undefined;
  const { owner: sessionId, createdAt: announcedAt, createdZxid } = stat;
  return { id: name, name, sessionId, data, announcedAt, version: versionOf(stat), createdZxid };
}

/** A node that this client has announced: an ephemeral znode, whose name is its id, written once. */
export class AnnouncedNode {
  #state: NodeState = { status: 'joined' };
  readonly #listeners = new Listeners<NodeState>();
  readonly #watch: Watch;
  readonly #forgetSession: () => void;

  /** @internal */
  constructor(
    private readonly context: DataContext,
    readonly path: string,
    readonly sessionId: string,
  ) {
    const { zookeeper } = context;
    this.#forgetSession = zookeeper.onState((state) => this.#onSession(state));
    this.#watch = zookeeper.watchRemoval(path, () => {
      // What is read in the next session does not show why it is gone.
      const { state } = zookeeper;
      const isSame = state.status === 'connected' && state.sessionId === sessionId;
      this.#end(isSame ? 'removed' : 'session-expired');
    });
    this.#onSession(zookeeper.state);
  }

  /** The last path element: `node-0000000007`. */
  get id(): string {
    return nameAt(this.path);
  }

  /** Whether it is announced. */
  get state(): NodeState {
    return this.#state;
  }

  /** Calls `listener` with every new state, until the returned function is called. It must not throw. */
  onState(listener: (state: NodeState) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Takes the node away. Resolves when it is gone, or within a second: then it goes with the next connection,
   * or with its session. Never rejects. Idempotent.
   */
  async leave(): Promise<void> {
    if (this.#state.status === 'disconnected') return;
    this.#end('left');
    const session = new BoundSession(this.context.zookeeper, this.sessionId);
    await withTimeout(this.context.clock, LEAVE_TIMEOUT_MS, erase(this.context, session, this.path));
  }

  #onSession(state: SessionState): void {
    if (state.status === 'closed') this.#end('closed');
    else if (isSessionOver(state, this.sessionId)) this.#end('session-expired');
    else this.#become({ status: state.status === 'connected' ? 'joined' : 'suspended' });
  }

  #end(reason: DisconnectReason): void {
    this.#become({ status: 'disconnected', reason });
    this.#forgetSession();
    this.#watch.close();
  }

  #become(state: NodeState): void {
    if (this.#state.status === 'disconnected' || this.#state.status === state.status) return;
    this.#state = state;
    this.#listeners.notify(state);
  }
}

/** The nodes that one client has announced below one root. */
interface ClientNodes {
  /** Their paths. */
  readonly known: Set<string>;
  /** The data of nodes that may be announced, and are not known: the reply was lost. */
  readonly lost: Set<string>;
  /** Resolves after the last call that announces one: of two at once, one would find the other's znode. */
  last: Promise<unknown>;
}

const ofClients = new WeakMap<ZooKeeper, Map<string, ClientNodes>>();

function nodesOf({ zookeeper, root }: DataContext): ClientNodes {
  const ofRoots = ofClients.get(zookeeper) ?? new Map<string, ClientNodes>();
  ofClients.set(zookeeper, ofRoots);
  const nodes = ofRoots.get(root) ?? { known: new Set(), lost: new Set(), last: Promise.resolve() };
  ofRoots.set(root, nodes);
  return nodes;
}

/**
 * Announces a node, once: where the reply is lost, its znode is found by its session, in a later call, too.
 *
 * @param stopping once it has aborted no znode is made any more
 * @throws {ZooKeeperError} `timeout`; access denied; client closed @throws `signal.reason`
 */
export function announceNode(
  context: DataContext,
  data: string,
  options: DataCall,
  stopping?: AbortSignal,
): Promise<AnnouncedNode> {
  const nodes = nodesOf(context);
  const { known, lost, last } = nodes;
  const folder = nodesFolder(context.root);
  const announce = async ({ session, call }: RepeatedStep) => {
    await last;
    const found = lost.has(data) ? await findOwn(session, folder, data, known, call) : undefined;
    if (found === undefined) stopping?.throwIfAborted();
    lost.add(data);
    const path =
      found ?? (await session.createWithParents(`${folder}/node-`, data, 'ephemeral-sequential', call));
    return { path, sessionId: session.sessionId };
  };
  const announcing = attempted(context, folder, 'the node is not announced', options, announce).then(
    ({ path, sessionId }) => {
      lost.delete(data);
      known.add(path);
      const node = new AnnouncedNode(context, path, sessionId);
      node.onState(({ status }) => status === 'disconnected' && known.delete(path));
      return node;
    },
  );
  nodes.last = announcing.catch(() => undefined);
  return announcing;
}

/**
 * Takes nodes away that could not be announced, where they are all the same, since the reply was lost. Never
 * rejects.
 *
 * @param data of which. @default all of this client below the root
 */
export async function leaveLost(context: DataContext, data?: string): Promise<void> {
  const { lost, last } = nodesOf(context);
  await last;
  const leave = async (each: string) => {
    const finding = announceNode(context, each, { timeoutMs: LOST_TIMEOUT_MS }, AbortSignal.abort());
    await (await finding.catch(() => undefined))?.leave();
  };
  await Promise.all([...lost].filter((each) => each === (data ?? each)).map(leave));
}

async function findOwn(
  session: BoundSession,
  folder: string,
  data: string,
  known: ClientNodes['known'],
  call: CallOptions,
): Promise<string | undefined> {
  await catchUp(session, folder, call);
  const names = (await session.children(folder, call)) ?? [];
  const others = names.map((name) => `${folder}/${name}`).filter((path) => !known.has(path));
  const found = await concurrentCalls(others, async (path) => {
    // One that may not be read is not ours.
    const znode = await session.read(path, call).catch(ignoring('no-auth'));
    return znode?.stat.owner === session.sessionId && znode.data.toString() === data ? path : [];
  });
  return found.flat()[0];
}
