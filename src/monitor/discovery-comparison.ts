import { orAborted } from '../base/abort.js';
import type { Clock } from '../clock.js';
import { decodeAssignment } from '../discovery/assignment.js';
import { DISCOVERY_PATH, entryPath } from '../discovery/tree-paths.js';
import { explain, NodeLeaseError } from '../errors.js';
import { concurrently } from '../lease/concurrently.js';
import type { ClusterStatus, NodeStatus } from '../lease/inspect.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault } from '../zookeeper/zookeeper-error.js';
import { type DiscoveryReport, discoveryReport } from './discovery-report.js';
import { type DiscoveryEntry, readDiscovery } from './discovery-snapshot.js';

/** How the discovery tree shows a node id that is held. */
export type NodeDiscovery =
  /** Under the version that the lease has. */
  | { readonly state: 'ok'; readonly version: number }
  | { readonly state: 'missing' }
  /** Under another one: the tree lags behind, or a znode is left over. */
  | { readonly state: 'other-version'; readonly version: number }
  /** Something stands there that tells no version, or that may not be read. */
  | { readonly state: 'unreadable' }
  /** ZooKeeper gave no answer. */
  | { readonly state: 'unknown' };

/** How far the discovery tree agrees with the leases. */
export interface DiscoveryStatus {
  /** Why discovery is degraded; undefined while it is not. */
  readonly problem: string | undefined;
  /** Of every node id that is held. */
  readonly nodes: ReadonlyMap<number, NodeDiscovery>;
}

/** How long a look waits for ZooKeeper in all, in milliseconds. */
const LIMIT_MS = 2_000;
/** The same after a look that was in vain, so that those of a watch do not become rare. */
const LIMIT_AFTER_FAILURE_MS = 500;
/** Reads under way at once. */
const READS = 64;

/** Looks at how the discovery tree shows the node ids that are held, and never holds up anybody who is more interested in the leases. */
export class DiscoveryComparison {
  #limitMs = LIMIT_MS;

  constructor(
    private readonly zookeeper: ZooKeeper,
    private readonly clock: Clock,
  ) {}

  /** Resolves within about two seconds; no answer is one, too. */
  async look(status: ClusterStatus | undefined): Promise<DiscoveryStatus> {
    const held = status?.nodes.filter(({ state }) => state === 'held') ?? [];
    try {
      const begun = this.clock.monotonic();
      await this.zookeeper.whenConnected({ timeoutMs: this.#limitMs });
      const leftMs = () => Math.max(1, this.#limitMs - (this.clock.monotonic() - begun));
      const found = await concurrently(held, READS, async (node) => [node.id, await this.#find(node, leftMs())] as const);
      this.#limitMs = LIMIT_MS;
      return discoveryStatus(found);
    } catch (error) {
      if (!(error instanceof NodeLeaseError)) throw error;
      this.#limitMs = LIMIT_AFTER_FAILURE_MS;
      return unknownDiscovery(held, explain(error));
    }
  }

  async close(): Promise<void> {
    await this.zookeeper.close();
  }

  async #find({ id, version }: NodeStatus, timeoutMs: number): Promise<NodeDiscovery> {
    try {
      const znode = await this.zookeeper.read(entryPath({ kind: 'node' }, id), { timeoutMs });
      if (znode === undefined) return { state: 'missing' };
      const shown = decodeAssignment(znode.data)?.version;
      if (shown === undefined) return { state: 'unreadable' };
      return { state: shown === version ? 'ok' : 'other-version', version: shown };
    } catch (error) {
      if (isFault(error, 'no-auth')) return { state: 'unreadable' };
      throw error;
    }
  }
}

/** How far the tree agrees with the node ids that are held, of which each was looked for. */
export function discoveryStatus(found: readonly (readonly [id: number, node: NodeDiscovery])[]): DiscoveryStatus {
  return { problem: disagreement(found.map(([, node]) => node)), nodes: new Map(found) };
}

/** The same when nobody could be asked. */
export function unknownDiscovery(held: readonly { readonly id: number }[], problem: string): DiscoveryStatus {
  return { problem, nodes: new Map(held.map(({ id }) => [id, { state: 'unknown' }])) };
}

/** What is wrong with the tree, as a clause; undefined when nothing is. */
function disagreement(nodes: readonly NodeDiscovery[]): string | undefined {
  const count = (state: NodeDiscovery['state']) => nodes.filter((node) => node.state === state).length;
  const clauses = [
    [count('missing'), 'missing'],
    [count('other-version'), 'shown with another version'],
    [count('unreadable'), 'unreadable'],
  ] as const;
  const told = clauses.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`);
  return told.length === 0 ? undefined : `of ${nodes.length} held node ids ${told.join(', ')}`;
}

/** How long a look waits for a connection, in milliseconds; less after one that waited in vain. */
const CONNECTED_WITHIN_MS = { first: 2_000, again: 500 };
/** From one look to the next, in milliseconds, at the least. */
const LEAST_PAUSE_MS = 2_000;
/** So many times as long as a look took nobody looks again: the tree is one request for each znode. */
const REST = 4;

/** The discovery tree as it was seen last. Looks at it never reject: that it cannot be read is something to show. */
export class ClusterTree {
  /** Null while it cannot be read. */
  report: DiscoveryReport | null = null;
  /** How far it agrees with the node ids that are held; undefined before the first look has ended. */
  status: DiscoveryStatus | undefined;

  constructor(
    private readonly zookeeper: Pick<ZooKeeper, 'whenConnected' | 'children' | 'read'>,
    /** The connect string. */
    private readonly where: string,
    private readonly clock: Clock,
  ) {}

  /**
   * Looks once. Resolves with the pause after it, in milliseconds.
   *
   * @param held the node ids that are held, as of now
   * @throws `signal.reason`
   */
  async look(held: () => readonly NodeStatus[], signal: AbortSignal): Promise<number> {
    const begun = this.clock.monotonic();
    // As of before: a task that takes an id meanwhile may well be announced only after this look.
    const before = held();
    const timeoutMs = this.report === null && this.status !== undefined ? CONNECTED_WITHIN_MS.again : CONNECTED_WITHIN_MS.first;
    try {
      await this.zookeeper.whenConnected({ timeoutMs, signal });
      const snapshot = await orAborted(readDiscovery(this.zookeeper, DISCOVERY_PATH, signal), signal);
      const after = held();
      this.report = discoveryReport(this.where, DISCOVERY_PATH, snapshot);
      this.status = agreement(before.length === 0 ? after : before, snapshot?.entries ?? []);
    } catch (error) {
      signal.throwIfAborted();
      this.report = null;
      this.status = unknownDiscovery(held(), explain(error));
    }
    return Math.max(LEAST_PAUSE_MS, REST * (this.clock.monotonic() - begun));
  }
}

/** Whether the tree shows the node ids that are held under the versions of their leases. */
function agreement(held: readonly NodeStatus[], entries: readonly DiscoveryEntry[]): DiscoveryStatus {
  const shown = new Map(entries.flatMap((entry) => (entry.parsed.kind === 'node' ? [[entry.parsed.nodeId, entry] as const] : [])));
  return discoveryStatus(held.map((node) => [node.id, nodeDiscovery(node, shown.get(node.id))]));
}

function nodeDiscovery({ version }: NodeStatus, entry: DiscoveryEntry | undefined): NodeDiscovery {
  if (entry === undefined) return { state: 'missing' };
  const shown = entry.assignment?.version;
  if (shown === undefined) return { state: 'unreadable' };
  return { state: shown === version ? 'ok' : 'other-version', version: shown };
}
