import { withTimeout } from '../../core/base/abort.js';
import { Listeners } from '../../core/base/listeners.js';
import { BoundSession } from '../client/bound-session.js';
import { concurrentCalls } from '../client/call-limits.js';
import { catchUp, erase } from '../client/retry.js';
import { isSessionOver, type SessionState } from '../client/session-state.js';
import { nameAt } from '../client/znode-path.js';
import { type CallOptions, ignoring, type Watch, type Znode } from '../client/zookeeper.js';
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
    await withTimeout(this.context.clock, 1_000, erase(this.context, session, this.path));
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

/** Which nodes this client has. */
export interface OwnNodes {
  /** Resolves when none is being announced. */
  readonly earlier: Promise<unknown>;
  /** By their paths. */
  readonly known: Pick<ReadonlySet<string>, 'has'>;
  /** The data of nodes that may be announced, and are not known: the reply was lost. */
  readonly lost: Set<string>;
  /** Once it has aborted no znode is made any more. */
  readonly stopping: AbortSignal | undefined;
}

/**
 * Announces a node, once: where the reply is lost, its znode is found by its session, in a later call, too.
 *
 * @throws {ZooKeeperError} `timeout`; access denied; client closed @throws `signal.reason`
 */
export async function announceNode(
  context: DataContext,
  data: string,
  { earlier, known, lost, stopping }: OwnNodes,
  options: DataCall,
): Promise<AnnouncedNode> {
  const folder = nodesFolder(context.root);
  const announce = async ({ session, call }: RepeatedStep) => {
    await earlier;
    const found = lost.has(data) ? await findOwn(session, folder, data, known, call) : undefined;
    if (found === undefined) stopping?.throwIfAborted();
    lost.add(data);
    const path =
      found ?? (await session.createWithParents(`${folder}/node-`, data, 'ephemeral-sequential', call));
    return { path, sessionId: session.sessionId };
  };
  const { path, sessionId } = await attempted(
    context,
    folder,
    'the node is not announced',
    options,
    announce,
  );
  lost.delete(data);
  return new AnnouncedNode(context, path, sessionId);
}

async function findOwn(
  session: BoundSession,
  folder: string,
  data: string,
  known: OwnNodes['known'],
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
