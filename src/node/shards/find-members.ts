import type { RandomSource } from '../../core/base/clock.js';
import { concurrently, REQUESTS_AT_ONCE } from '../../core/base/concurrently.js';
import { CLUSTER_KEY } from '../../core/lease/model/cluster-config.js';
import { nativeCodec } from '../../core/lease/model/lease-codec.js';
import {
  availability,
  type LeaseState,
  leaseKey,
  mayExceed,
  nodeIdOf,
} from '../../core/lease/model/lease-state.js';
import { leaseTiming } from '../../core/lease/model/lease-timing.js';
import { type LeaseReading, readingOf } from '../../core/lease/operate/inspect.js';
import { readExistingCluster, type StoredCluster } from '../../core/lease/session/cluster-store.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../../core/lease/session/store-session.js';
import type { Interval } from '../../core/store/lease-store.js';
import type { MapMember } from './shard-map.js';

/** The most leases that one search reads, and how many at a time. */
const MAX_READS = 100;
/** How many members a search reads although their leases are renewed. */
const DRAWN = 2;
/** Of a renewal period: a held lease that is older than that has probably lost its holder. */
const OVERDUE = 1.5;

/**
 * T6: whether a GET of its node id's lease object proves that a tenure is over. When it was read does not
 * matter, since what is over stays so (rule 3).
 */
export function isOver({ version }: MapMember, lease: LeaseState, age: Interval, graceMs: number): boolean {
  if (lease.kind === 'vacant' || lease.version < version) return false;
  if (lease.kind === 'held' && lease.version > version) return true;
  const state = lease.kind === 'retired' ? ({ ...lease, kind: 'released' } as const) : lease;
  return availability(state, age, graceMs).kind === 'free';
}

/** A lease, as one GET has shown it. */
export interface ShownLease {
  readonly id: number;
  readonly kind: LeaseReading['kind'];
  /** Vacant for an absent or unreadable object, which proves nothing. */
  readonly lease: LeaseState;
  readonly age: Interval;
}

/** Reads the lease objects of these node ids. @throws {StoreError} */
export function readLeases(
  session: StoreSession,
  ids: readonly number[],
  signal?: AbortSignal,
): Promise<ShownLease[]> {
  const read = async (id: number, own: AbortSignal): Promise<ShownLease> => {
    const object = await session.read(leaseKey(id), { signal: own });
    const reading = readingOf(object);
    const lease: LeaseState = reading.kind === 'lease' ? reading.lease : { kind: 'vacant' };
    return { id, kind: reading.kind, lease, age: object?.age ?? { min: 0, max: 0 } };
  };
  return concurrently(ids, REQUESTS_AT_ONCE, read, signal);
}

interface MemberSearch {
  readonly session: StoreSession;
  readonly random: RandomSource;
  /** The settings as they were read last. */
  readonly known: StoredCluster;
  /** The members of the map. */
  readonly members: readonly MapMember[];
  readonly me: MapMember;
  readonly signal: AbortSignal;
}

/**
 * The members from now on: those of the map whose tenures are not proven over, this one, and if this one
 * joins, all others that take part. One LIST, and a GET of each member whose lease is overdue or gone, and of
 * two drawn at random: the holder of their node ids may be another one, which does not take part.
 *
 * @returns also the settings, and in how many milliseconds a lease can be proven over that is overdue now; infinity where none is
 * @throws {StoreError}
 */
export async function findMembers({ session, random, known, members, me, signal }: MemberSearch) {
  const { objects } = await session.list({ signal, timeoutMs: UNHURRIED_LISTING_MS });
  const row = objects.find(({ key }) => key === CLUSTER_KEY);
  const isKnown = (row?.etag ?? known.etag) === known.etag;
  const cluster = isKnown ? known : await readExistingCluster(session, { signal });
  const { durationMs, graceMs } = cluster.config;
  const { timeStepMs } = session.store;
  const overdueMs = OVERDUE * leaseTiming(durationMs).renewEveryMs + timeStepMs;
  const renewed = objects.filter(
    ({ size, age }) => size > nativeCodec.tombstoneMaxBytes && !mayExceed(age, overdueMs),
  );
  const held = new Set(renewed.flatMap(({ key }) => nodeIdOf(key) ?? []));
  const first = Math.floor(random.next() * members.length);
  const isDrawn = (at: number) => (at - first + members.length) % members.length < DRAWN;
  const doubtful = members.filter(
    (member, at) => member !== me && (isDrawn(at) || member.id === me.id || !held.has(member.id)),
  );
  for (const { id } of members) held.delete(id);
  const joins = !members.includes(me);
  const ids = new Set([...doubtful.map(({ id }) => id), ...(joins ? held : [])]);
  const found = await readLeases(session, [...ids].slice(0, MAX_READS), signal);
  const stay = members.filter(
    (member) => !found.some(({ id, lease, age }) => id === member.id && isOver(member, lease, age, graceMs)),
  );
  if (joins) stay.push(me);
  let dueMs = Number.POSITIVE_INFINITY;
  for (const { id, lease, age } of found) {
    const state = availability(lease, age, graceMs);
    if (lease.kind !== 'held' || state.kind !== 'held') continue;
    if (age.min > overdueMs) dueMs = Math.min(dueMs, state.waitMs + timeStepMs);
    if (lease.shards && !stay.some((member) => member.id === id && member.version === lease.version))
      stay.push({ id, version: lease.version, address: lease.address });
  }
  return { members: stay, dueMs, cluster };
}
