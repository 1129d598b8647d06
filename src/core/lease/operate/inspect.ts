import { checkArguments } from '../../base/arguments.js';
import { concurrently, REQUESTS_AT_ONCE } from '../../base/concurrently.js';
import { explain } from '../../base/errors.js';
import type { Interval, StoredObject } from '../../store/lease-store.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import type { NodeIdState } from '../model/lease-state.js';
import {
  availability,
  type KnownNodes,
  type LeaseState,
  leaseKey,
  revived,
  timestampOf,
  versionOf,
} from '../model/lease-state.js';
import type { TenureHistory } from '../model/tenure-history.js';
import { readCluster } from '../session/cluster-store.js';
import type { StoreSession } from '../session/store-session.js';

/** The status of one node id, from its lease object. */
export interface NodeStatus {
  readonly id: number;
  readonly state: NodeIdState;
  /** The highest version used so far; 0 for none. */
  readonly version: number;
  readonly taskId: string | undefined;
  /** Milliseconds since the last write, by the store's clock. */
  readonly age: Interval | undefined;
  /** The duration in a held lease or an eviction, in milliseconds. */
  readonly durationMs: number | undefined;
  /** Store time, milliseconds since the Unix epoch. */
  readonly timestamp: number | undefined;
  readonly knownNodes: KnownNodes;
  /**
   * How many bits a node id takes in the unique ids that its holder makes, 8 … 16; undefined where no task
   * holds it, or the holder does not say.
   */
  readonly idWidth: number | undefined;
  /** The mark of the last holder's sticky key. */
  readonly sticky?: string | undefined;
  /** Where the holder is reached, as it says itself. */
  readonly address?: string | undefined;
  /** When the tenure of a lease that is held or expired began, in store time. */
  readonly acquiredAt?: number | undefined;
  /** The tenures before. */
  readonly history?: TenureHistory | undefined;
  readonly problem: string | undefined;
}

/** A cluster and all of its node ids, in ascending order. */
export interface ClusterStatus {
  readonly cluster: ClusterConfig;
  readonly nodes: readonly NodeStatus[];
}

/** A holder whose lease has another duration than the settings: it has not followed yet (rule 14). */
export interface LateHolder {
  readonly id: number;
  readonly taskId: string | undefined;
  /** The duration in its lease, in milliseconds. */
  readonly durationMs: number;
}

/** In ascending order of the ids. */
export function lateHolders({ cluster, nodes }: ClusterStatus): LateHolder[] {
  return nodes.flatMap(({ id, state, taskId, durationMs = 0 }) =>
    state === 'held' && durationMs !== cluster.durationMs ? [{ id, taskId, durationMs }] : [],
  );
}

/**
 * Reads every lease object, and changes nothing.
 *
 * @returns undefined when there is no cluster yet
 * @throws {StoreUnusableError} when `cluster.json` is unreadable
 * @throws {StoreError}
 */
export async function inspectCluster(session: StoreSession): Promise<ClusterStatus | undefined> {
  checkArguments({ session });
  const cluster = await readCluster(session);
  if (cluster === undefined) return undefined;
  const ids = Array.from({ length: cluster.config.size }, (_, id) => id);
  const knowledge = new SharedKnowledge();
  const nodes = await concurrently(ids, REQUESTS_AT_ONCE, (id) =>
    inspectNode(session, id, cluster.config, knowledge),
  );
  return { cluster: cluster.config, nodes };
}

/** Reads the lease object of one node id. @throws {StoreError} */
export async function inspectNode(
  session: StoreSession,
  id: number,
  cluster: ClusterConfig,
  knowledge?: SharedKnowledge,
): Promise<NodeStatus> {
  const object = await session.read(leaseKey(id));
  return nodeStatus(id, readingOf(object, knowledge), object?.age, cluster);
}

/**
 * Minimum number of entries that are shared, and maximum number of different known nodes that are remembered.
 */
const FEWEST = 16;
const REMEMBERED = 16;

/**
 * Keeps equal known nodes once. In a large cluster most nodes know the same versions, and separate copies
 * take memory by the square of their number.
 */
export class SharedKnowledge {
  /** By their text, in order of last use. */
  readonly #known = new Map<string, KnownNodes>();

  /** The known nodes themselves, or the equal ones of an earlier call. */
  shared(knownNodes: KnownNodes): KnownNodes {
    if (Object.keys(knownNodes).length < FEWEST) return knownNodes;
    const text = JSON.stringify(knownNodes);
    const same = this.#known.get(text) ?? knownNodes;
    this.#known.delete(text);
    this.#known.set(text, same);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= REMEMBERED) break;
      this.#known.delete(oldest);
    }
    return same;
  }
}

/** The content of a lease object, which stays the same until the next write. */
export type LeaseReading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'lease'; readonly lease: LeaseState }
  /** It cannot be understood; `problem` says why. */
  | { readonly kind: 'unreadable'; readonly problem: string };

/** Decodes a lease object; equal known nodes are kept once in `knowledge`. Never throws. */
export function readingOf(
  object: Pick<StoredObject, 'body' | 'metadata'> | undefined,
  knowledge?: SharedKnowledge,
): LeaseReading {
  if (object === undefined) return { kind: 'absent' };
  try {
    const lease = nativeCodec.decode(object.body, object.metadata);
    if (lease.kind !== 'held' || knowledge === undefined) return { kind: 'lease', lease };
    return { kind: 'lease', lease: { ...lease, knownNodes: knowledge.shared(lease.knownNodes) } };
  } catch (error) {
    return { kind: 'unreadable', problem: explain(error) };
  }
}

/**
 * The status of a node id from an earlier reading and the current age of its lease object.
 *
 * @param age undefined without an object
 * @param cluster `bootstrapped`: whether there must be one
 */
export function nodeStatus(
  id: number,
  reading: LeaseReading,
  age: Interval | undefined,
  { graceMs, bootstrapped, generation }: Pick<ClusterConfig, 'graceMs' | 'bootstrapped' | 'generation'>,
): NodeStatus {
  const nothing = {
    taskId: undefined,
    age: undefined,
    durationMs: undefined,
    timestamp: undefined,
    idWidth: undefined,
    problem: undefined,
  };
  const none = { id, version: 0, knownNodes: {}, ...nothing };
  if (reading.kind === 'absent' || age === undefined)
    return { ...none, state: bootstrapped ? 'absent' : 'vacant' };
  if (reading.kind === 'unreadable') return { ...none, state: 'unreadable', age, problem: reading.problem };
  const lease = revived(reading.lease, generation);
  const facts = {
    ...none,
    age,
    version: versionOf(lease),
    timestamp: timestampOf(lease) || undefined,
    ...(lease.kind !== 'vacant' && { sticky: lease.sticky, history: lease.history }),
  };
  const free = availability(lease, age, graceMs).kind === 'free';
  if (lease.kind === 'released' && !free) return { ...facts, state: 'evicted', durationMs: lease.durationMs };
  if (lease.kind !== 'held') return { ...facts, state: lease.kind };
  const { taskId, durationMs, knownNodes } = lease;
  return {
    ...facts,
    state: free ? 'expired' : 'held',
    taskId,
    durationMs,
    knownNodes,
    idWidth: lease.idWidth || undefined,
    acquiredAt: lease.acquiredAt || undefined,
    address: lease.address,
  };
}
