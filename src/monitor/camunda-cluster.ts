import { concurrently } from '../base/concurrently.js';
import { explain } from '../base/errors.js';
import { CAMUNDA_MARKER, type CamundaLease, decodeCamundaLease, decodeCamundaRestore } from '../lease/model/camunda-codec.js';
import type { ClusterConfig } from '../lease/model/cluster-config.js';
import { LeaseUnreadableError } from '../lease/model/lease-codec.js';
import { nodeIdOf } from '../lease/model/lease-state.js';
import { type NodeStatus, nodeStatus } from '../lease/operate/inspect.js';
import type { StoreSession } from '../lease/session/store-session.js';
import type { Interval, ListedObject, StoredObject } from '../store/lease-store.js';

/** A restore from a backup, as its object tells. */
export interface RestoreReport {
  readonly restoreId: string;
  /** The node ids that have been restored; empty where the object cannot be read. */
  readonly restoredNodes: readonly number[];
  readonly problem: string | null;
}

/** What is known of a cluster of Camunda 8 besides its leases. */
export interface CamundaReport {
  readonly restores: readonly RestoreReport[];
}

/** What a lease object of Camunda 8 says, and when its holder wrote it. */
export interface CamundaReading {
  readonly kind: 'camunda';
  readonly lease: CamundaLease;
  /** How long after its writing, by the store's time, it is to expire by the holder's clock, in milliseconds: duration plus clock offset. */
  readonly claimMs: number | undefined;
}

/** Holders' clocks that differ by more than this disagree, in milliseconds: requests take time, and S3 tells whole seconds. */
const CLOCK_TOLERANCE_MS = 3_000;
/** From a holder's look at its clock to the store's time of the write, in milliseconds. */
const WRITE_MS = 100;
const RESTORES = 'restore/';
/** Maximum number of restores that are read. */
const MAX_RESTORES = 20;

/** Settings under which the leases of Camunda 8 are shown as those of nodelease. They have no grace, and tell no unique ids. */
export function camundaConfig(objects: readonly ListedObject[], durationMs: number): ClusterConfig {
  const size = 1 + Math.max(-1, ...objects.map(({ key }) => nodeIdOf(key) ?? -1));
  const bootstrapped = objects.some(({ key }) => key === CAMUNDA_MARKER);
  return { size, durationMs, graceMs: 0, idWidth: 0, idFloor: 0, bootstrapped, generation: 0, peak: size, proven: true };
}

/** Understands a lease object. Never throws. */
export function camundaReadingOf(
  object: StoredObject | undefined,
): CamundaReading | { readonly kind: 'absent' } | { readonly kind: 'unreadable'; readonly problem: string } {
  if (object === undefined) return { kind: 'absent' };
  const { body, metadata, age, storeTime } = object;
  try {
    const lease = decodeCamundaLease(body, metadata);
    // Half of what the store's times are cut by: that late it was written on average.
    const writtenAt = storeTime.max - age.max + (storeTime.max - storeTime.min) / 2;
    const claimMs = (lease.timestamp ?? Number.NaN) - writtenAt;
    return { kind: 'camunda', lease, claimMs: Number.isFinite(claimMs) ? claimMs : undefined };
  } catch (error) {
    return { kind: 'unreadable', problem: explain(error) };
  }
}

/**
 * The duration that most holders renew by, in whole seconds, since none writes it: the median of what they claim. Undefined before there were any.
 *
 * @param before what it was before; it stays so while that is true within a second
 */
export function camundaDurationMs(
  readings: readonly { readonly kind: string; readonly claimMs?: number | undefined }[],
  before = 0,
): number | undefined {
  const claims = readings.flatMap(({ claimMs = 0 }) => (claimMs > 0 ? [claimMs] : [])).sort((a, b) => a - b);
  const median = claims[(claims.length - 1) >> 1];
  if (median === undefined || Math.abs(median - before) < 1_000) return before || undefined;
  return Math.max(1_000, Math.round((median + WRITE_MS) / 1_000) * 1_000);
}

/** How a node id of Camunda 8 is doing, by the store's time: a holder's own clock decides nothing that is shown, and is compared with the others'. */
export function camundaStatus(
  id: number,
  { lease, claimMs }: CamundaReading,
  age: Interval,
  { durationMs, storeNow }: { readonly durationMs: number | undefined; readonly storeNow: Interval },
): NodeStatus {
  const { kind, version, taskId, timestamp, knownNodes, acquirable } = lease;
  const unheld = { free: 'vacant', released: 'released', 'given-up': 'retired' } as const;
  const isExpired = timestamp !== undefined && storeNow.min > timestamp;
  const offsetMs = claimMs !== undefined && durationMs !== undefined ? Math.round(claimMs - durationMs) : undefined;
  const camunda = { acquirable, clockOffsetMs: offsetMs ?? null, warning: warningOf(id, lease, claimMs, durationMs) ?? null };
  return {
    ...nodeStatus(id, { kind: 'lease', lease: { kind: 'vacant' } }, age, 0),
    ...{ state: kind === 'held' ? (isExpired ? 'expired' : 'held') : unheld[kind], version, taskId, timestamp, knownNodes, camunda },
    ...(kind === 'held' && { durationMs }),
  };
}

function warningOf(id: number, { kind, nodeId, acquirable }: CamundaLease, claimMs = 0, durationMs = claimMs): string | undefined {
  if (kind !== 'held') return undefined;
  if (nodeId !== id) return `its body says node id ${nodeId}: the holder works as that one, and renews ${nodeId}.json`;
  if (!acquirable) return 'it is held, although scaling down has given it up';
  const seconds = (ms: number) => `${Math.abs(Math.round(ms / 1_000))} s`;
  if (claimMs <= durationMs / 3)
    return `its holder’s clock is ${seconds(claimMs - durationMs)} behind: it expires before it is renewed, and another task may take it`;
  const offsetMs = claimMs - durationMs;
  if (Math.abs(offsetMs) <= CLOCK_TOLERANCE_MS) return undefined;
  return `its holder’s clock is ${seconds(offsetMs)} ${offsetMs > 0 ? 'ahead of' : 'behind'} the other holders’, or its lease duration is another one`;
}

/** Reads what there is of restores. @throws {StoreError} */
export async function readRestores(session: StoreSession, signal: AbortSignal): Promise<readonly RestoreReport[]> {
  const { objects } = await session.listPage(RESTORES, { signal, folders: true });
  const keys = objects.map(({ key }) => key).filter((key) => key.startsWith(RESTORES) && key !== RESTORES);
  const read = async (key: string, own: AbortSignal): Promise<readonly RestoreReport[]> => {
    const object = await session.read(key, { signal: own });
    if (object === undefined) return [];
    try {
      return [{ ...decodeCamundaRestore(object.body), problem: null }];
    } catch (error) {
      return [
        {
          restoreId: key.slice(RESTORES.length),
          restoredNodes: [],
          problem: error instanceof LeaseUnreadableError ? `it ${error.problem}` : explain(error),
        },
      ];
    }
  };
  return (await concurrently(keys.slice(0, MAX_RESTORES), MAX_RESTORES, read, signal)).flat();
}
