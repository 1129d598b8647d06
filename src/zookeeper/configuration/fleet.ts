import { isObject, objectIn } from '../../core/base/fields.js';
import { concurrentCalls } from '../client/call-limits.js';
import { type ReconcileCall, type Reconciled, ReconcileLoop } from '../client/reconcile-loop.js';
import { writeEphemeral } from '../client/retry.js';
import type { CallOptions, Znode, ZnodeReader } from '../client/zookeeper.js';
import type { FleetReport, NodeRevisions, Revisions } from './fleet-report.js';
import { contextsOf, contextsOfNode, rootOf, seenPath } from './layout.js';
import { type ConfigPlace, readHead, revisionIn } from './read-contexts.js';

/** Shows others, in an ephemeral znode, which revisions this node runs; again in each new session. */
export class SeenReporter implements Reconciled {
  readonly path: string;
  readonly blockedBy = undefined;
  dirty = false;
  readonly #loop: ReconcileLoop;
  #data = '';

  constructor(
    private readonly place: ConfigPlace,
    context: string,
    nodeId: number,
  ) {
    this.path = `${seenPath(place.root, context)}/${nodeId}`;
    this.#loop = new ReconcileLoop({ ...place, name: 'configuration' });
  }

  /** What an earlier session of this node id has left is replaced: it would go with that one. */
  async step(call: ReconcileCall): Promise<boolean> {
    const { zookeeper } = this.place;
    await writeEphemeral(zookeeper, this.path, this.#data, await zookeeper.read(this.path, call), call);
    return true;
  }

  /** Another reader in this session removes it at its end: then it is made again. */
  expects(znode: Znode | undefined): boolean {
    return znode !== undefined;
  }

  report(revisions: Revisions): void {
    this.#data = JSON.stringify({ revisions, at: new Date(this.place.clock.now()).toISOString() });
    this.#loop.reconcile(this);
  }

  /** Ends it, and removes its znode where that works at once; not that of the next holder of the node id. */
  async close(): Promise<void> {
    const { zookeeper } = this.place;
    await this.#loop.close();
    const { state } = zookeeper;
    if (state.status !== 'connected') return;
    const { sessionId } = state;
    const { stat } = (await zookeeper.read(this.path, { sessionId }).catch(() => undefined)) ?? {};
    if (stat?.owner === sessionId)
      await zookeeper.remove(this.path, stat.version, { sessionId }).catch(() => undefined);
  }
}

/**
 * The configurations that nodes run, as the part `configurations` of a `ClusterFollower`.
 *
 * @param root the parent of all contexts, within the chroot
 * @throws {ConfigError} when it is not an absolute path
 */
export function followedConfigurations(root?: string) {
  const path = rootOf({ root });
  return (zookeeper: ZnodeReader, signal: AbortSignal): Promise<readonly FleetReport[]> =>
    readFleet(zookeeper, path, { signal });
}

/**
 * The configurations that nodes run, by their most specific contexts: those below a root, or one. Foreign
 * znodes are left out.
 *
 * @param listed what is below the root, where that is known
 */
export async function readFleet(
  zookeeper: ZnodeReader,
  root: string,
  call: CallOptions,
  only?: string,
  listed?: readonly string[],
): Promise<readonly FleetReport[]> {
  const all = only === undefined ? ((await zookeeper.children(seenPath(root), call)) ?? []) : [only];
  const followed = all.filter((name) => !/(^|,)(\.|,|$)|,.*,|@nodes=/.test(name)).sort();
  const names = listed ?? (await zookeeper.children(root, call)) ?? [];
  return Promise.all(
    followed.map(async (context) => {
      const [app = '', profile] = context.split(',');
      const contexts = contextsOf({ app, profile });
      const path = seenPath(root, context);
      const ids = ((await zookeeper.children(path, call)) ?? [])
        .filter((name) => /^\d{1,7}$/.test(name))
        .map(Number);
      const seen = await concurrentCalls(ids, async (nodeId) => {
        const report = decodeSeen((await zookeeper.read(`${path}/${nodeId}`, call))?.data);
        return report ? [{ nodeId, ...report, own: contextsOfNode(contexts, names, nodeId) }] : [];
      });
      const nodes = seen.flat().sort((a, b) => a.nodeId - b.nodeId);
      const read = [...new Set([...nodes.flatMap(({ own }) => own), ...contexts])];
      const revisions = Object.fromEntries(
        await concurrentCalls(
          read,
          async (each) => [each, revisionIn(await readHead(zookeeper, root, each, call))] as const,
        ),
      );
      return {
        context,
        revisions,
        nodes: nodes.map(({ own, ...node }) => ({
          ...node,
          behind: own.filter((each) => (node.revisions[each] ?? 0) < (revisions[each] ?? 0)),
        })),
      };
    }),
  );
}

function decodeSeen(data: Buffer | undefined) {
  const { revisions, at } = ((data && objectIn(data)) ?? {}) as Partial<NodeRevisions>;
  const isReport = isObject(revisions) && Object.values(revisions).every(Number.isSafeInteger);
  return isReport && typeof at === 'string' ? { revisions, at } : undefined;
}
