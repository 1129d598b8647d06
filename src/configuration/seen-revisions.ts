import { concurrently } from '../base/concurrently.js';
import { type Reconciled, ReconcileLoop } from '../zookeeper/reconcile-loop.js';
import { seenPath } from './layout.js';
import { type ConfigPlace, type ReadWait, repeated } from './read-contexts.js';

/** What a node says of the configuration that it runs. */
export interface SeenRevisions {
  readonly nodeId: number;
  /** By context. */
  readonly revisions: Readonly<Record<string, number>>;
  /** When the node had them, ISO 8601, by its clock. */
  readonly at: string;
}

const READ_AT_ONCE = 64;

/** Tells others, in an ephemeral znode, which revisions this node runs; again in each new session. */
export class SeenReporter {
  readonly #path: string;
  readonly #item: Reconciled;
  readonly #loop: ReconcileLoop<Reconciled>;
  #data: string | undefined;

  constructor(
    private readonly place: ConfigPlace,
    context: string,
    nodeId: number,
  ) {
    this.#path = `${seenPath(place.root, context)}/${nodeId}`;
    this.#item = { path: this.#path, dirty: false, blockedBy: undefined };
    this.#loop = new ReconcileLoop({
      ...{ zookeeper: place.zookeeper, clock: place.clock, random: place.random, name: 'configuration' },
      items: () => [this.#item],
      settle: async (item, call) => {
        item.dirty = false;
        if (this.#data === undefined) return;
        const { zookeeper } = place;
        const standing = await zookeeper.read(this.#path, call);
        if (standing?.stat.owner === call.sessionId) return void (await zookeeper.setData(this.#path, this.#data, undefined, call));
        // What an earlier session of this node id has left would go with that one.
        if (standing) await zookeeper.remove(this.#path, standing.stat.version, call);
        await zookeeper.createWithParents(this.#path, this.#data, 'ephemeral', call);
      },
    });
  }

  tell(revisions: Readonly<Record<string, number>>): void {
    this.#data = JSON.stringify({ revisions, at: new Date(this.place.clock.now()).toISOString() });
    this.#loop.touched(this.#item);
  }

  /** Ends it, and removes the znode where that works at once. */
  async close(): Promise<void> {
    const { zookeeper } = this.place;
    await this.#loop.close();
    if (zookeeper.state.status === 'connected') await zookeeper.remove(this.#path).catch(() => undefined);
  }
}

/** What the nodes say that watch a context as their own; in the order of their ids. Foreign znodes are left out. */
export async function readSeen(place: ConfigPlace, context: string, wait: ReadWait = {}): Promise<readonly SeenRevisions[]> {
  const { zookeeper, root } = place;
  return repeated(place, wait, async (call) => {
    const path = seenPath(root, context);
    const names = ((await zookeeper.children(path, call)) ?? []).filter((name) => /^\d{1,7}$/.test(name));
    const seen = await concurrently(names, READ_AT_ONCE, async (name) => {
      const znode = await zookeeper.read(`${path}/${name}`, call);
      return znode && decodeSeen(Number(name), znode.data);
    });
    return seen.filter((each) => each !== undefined).sort((a, b) => a.nodeId - b.nodeId);
  });
}

function decodeSeen(nodeId: number, data: Buffer): SeenRevisions | undefined {
  try {
    const { revisions, at } = JSON.parse(data.toString('utf8')) as Partial<SeenRevisions>;
    return typeof revisions === 'object' && typeof at === 'string' ? { nodeId, revisions, at } : undefined;
  } catch {
    return undefined;
  }
}
