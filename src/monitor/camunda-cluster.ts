import { concurrently } from '../base/concurrently.js';
import { explain } from '../base/errors.js';
import {
  CAMUNDA_MARKER,
  type CamundaLease,
  decodeCamundaLease,
  decodeCamundaRestore,
} from '../lease/model/camunda-codec.js';
import type { ClusterConfig } from '../lease/model/cluster-config.js';
import { nodeIdOf } from '../lease/model/lease-state.js';
import type { CamundaNode, LeaseReading } from '../lease/operate/inspect.js';
import type { StoreSession } from '../lease/session/store-session.js';
import type { ListedObject, StoredObject } from '../store/lease-store.js';

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

/** What a lease object of Camunda 8 says besides its lease. */
export interface CamundaFacts extends Omit<CamundaLease, 'lease'> {
  /**
   * From its writing, by the store's time, to the expiry that stands in it, in milliseconds: duration plus
   * clock offset. Undefined without a holder.
   */
  readonly claimMs: number | undefined;
}

/**
 * Holders' clocks that differ by more than this disagree, in seconds: requests take time, and S3 tells whole
 * seconds.
 */
const CLOCK_TOLERANCE_S = 3;
const RESTORES = 'restore/';
/** Maximum number of restores that are read. */
const MAX_RESTORES = 20;

/**
 * Settings under which the leases of Camunda 8 are shown as those of nodelease. They have no grace, and tell
 * no unique ids. Which of them have expired no LIST tells.
 */
export function camundaConfig(objects: readonly ListedObject[]): ClusterConfig {
  const size = 1 + objects.reduce((highest, { key }) => Math.max(highest, nodeIdOf(key) ?? -1), -1);
  const bootstrapped = objects.some(({ key }) => key === CAMUNDA_MARKER);
  const durationMs = Number.POSITIVE_INFINITY;
  return {
    size,
    durationMs,
    graceMs: 0,
    idWidth: 0,
    idFloor: 0,
    bootstrapped,
    generation: 0,
    peak: size,
    proven: true,
  };
}

/**
 * Understands a lease object. The duration of a held one is such that it expires when the store's time passes
 * the expiry that stands in it. Never throws.
 */
export function camundaReadingOf(
  object: StoredObject | undefined,
): LeaseReading & { readonly camunda?: CamundaFacts } {
  if (object === undefined) return { kind: 'absent' };
  const { body, metadata, age, storeTime } = object;
  try {
    const { lease, ...facts } = decodeCamundaLease(body, metadata);
    if (lease.kind !== 'held') return { kind: 'lease', lease, camunda: { ...facts, claimMs: undefined } };
    // S3 tells the time of writing cut to whole seconds: half of one later on average, a whole one later at
    // most.
    const [writtenAt, cutMs] = [storeTime.max - age.max, storeTime.max - storeTime.min];
    const claimMs = lease.timestamp - writtenAt - cutMs / 2;
    const durationMs = lease.timestamp - writtenAt - cutMs;
    return {
      kind: 'lease',
      lease: { ...lease, durationMs },
      camunda: { ...facts, claimMs: Number.isFinite(claimMs) ? claimMs : undefined },
    };
  } catch (error) {
    return { kind: 'unreadable', problem: explain(error) };
  }
}

/**
 * The duration that most holders renew by, in whole seconds, since none writes it: the median of what they
 * claim.
 *
 * @param before what it was before, 0 for none; it stays so while that is true within a second
 */
export function camundaDurationMs(claimsMs: readonly number[], before: number): number {
  const sorted = claimsMs.filter((ms) => ms > 0).sort((a, b) => a - b);
  const median = sorted[(sorted.length - 1) >> 1];
  if (median === undefined || Math.abs(median - before) < 1_000) return before;
  return Math.max(1_000, Math.round(median / 1_000) * 1_000);
}

/**
 * What else is known of a node id.
 * @param durationMs what most holders renew by; 0 where that is not known
 */
export function camundaNode(
  id: number,
  { nodeId = id, acquirable, claimMs }: CamundaFacts,
  durationMs: number,
): CamundaNode {
  const seconds = Math.round(((claimMs ?? durationMs) - durationMs) / 1_000);
  const offsetMs = durationMs > 0 && Math.abs(seconds) > CLOCK_TOLERANCE_S ? seconds * 1_000 : 0;
  const lost = `its body says node id ${nodeId}: the holder works as that one, and renews ${nodeId}.json`;
  return {
    ...{ acquirable, clockOffsetMs: claimMs === undefined ? null : offsetMs },
    warning: nodeId === id ? clockWarning(offsetMs, durationMs) : lost,
  };
}

function clockWarning(offsetMs: number, durationMs: number): string | null {
  if (offsetMs === 0) return null;
  const offset = `${Math.abs(offsetMs) / 1_000} s ${offsetMs > 0 ? 'ahead of' : 'behind'}`;
  // A holder renews after a third.
  const harm =
    offsetMs < (durationMs * -2) / 3 ? ': it expires before it is renewed, and another task may take it' : '';
  return `its holder’s clock is ${offset} the other holders’, or its lease duration is another one${harm}`;
}

/** Reads what there is of restores. @throws {StoreError} */
export async function readRestores(
  session: StoreSession,
  signal: AbortSignal,
): Promise<readonly RestoreReport[]> {
  const { objects } = await session.listPage(RESTORES, { signal, folders: true });
  const keys = objects.map(({ key }) => key).filter((key) => key.startsWith(RESTORES));
  const read = async (key: string, own: AbortSignal): Promise<RestoreReport> => {
    const restoreId = key.slice(RESTORES.length);
    const object = await session.read(key, { signal: own });
    try {
      return { restoreId, restoredNodes: decodeCamundaRestore(object?.body ?? ''), problem: null };
    } catch (error) {
      return { restoreId, restoredNodes: [], problem: explain(error) };
    }
  };
  return concurrently(keys.slice(0, MAX_RESTORES), MAX_RESTORES, read, signal);
}
