import { concurrently } from '../../../core/base/concurrently.js';
import { explain } from '../../../core/base/errors.js';
import {
  type CamundaLease,
  decodeCamundaLease,
  decodeCamundaRestore,
} from '../../../core/lease/camunda/camunda-codec.js';
import { CAMUNDA_MARKER } from '../../../core/lease/camunda/camunda-format.js';
import type { ClusterConfig } from '../../../core/lease/model/cluster-config.js';
import { type LeaseState, nodeIdOf } from '../../../core/lease/model/lease-state.js';
import type { LeaseReading, NodeStatus } from '../../../core/lease/operate/inspect.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import type { ListedObject, StoredObject } from '../../../core/store/lease-store.js';
import type { ForeignNode, ForeignReport, RestoreReport } from '../../wire/status-report.js';
import type { LeaseChange } from '../lease-changes.js';

/** The facts of a lease object of Camunda 8 in addition to its lease. */
interface CamundaFacts extends Omit<CamundaLease, 'lease'> {
  /**
   * From its writing, by the store's time, to the expiry in it, in milliseconds: duration plus clock offset.
   * Undefined without a holder.
   */
  readonly claimMs: number | undefined;
}

/**
 * Holders' clocks that differ by more than this disagree, in seconds: requests take time, and S3 reports
 * whole seconds.
 */
const CLOCK_TOLERANCE_S = 3;
const RESTORES = 'restore/';
/** Maximum number of restores that are read. */
const MAX_RESTORES = 20;

export type CamundaReader = ReturnType<typeof camundaReader>;

/**
 * Reads a cluster of Camunda 8. It remembers the facts of its own readings that the lease does not contain, and
 * the previous scans.
 */
export function camundaReader() {
  const factsOf = new WeakMap<LeaseReading, CamundaFacts>();
  /** The duration of most holders; 0 while it is unknown. */
  let durationMs = 0;
  return {
    /**
     * The settings with which the leases are shown like those of nodelease, by the complete listing. There is no
     * grace, and there are no unique ids. A LIST does not show which of the leases have expired.
     */
    configOf(objects: readonly ListedObject[]): ClusterConfig {
      const size = 1 + objects.reduce((highest, { key }) => Math.max(highest, nodeIdOf(key) ?? -1), -1);
      const bootstrapped = objects.some(({ key }) => key === CAMUNDA_MARKER);
      return {
        size,
        durationMs: Number.POSITIVE_INFINITY,
        longestMs: Number.POSITIVE_INFINITY,
        graceMs: 0,
        idWidth: 0,
        idFloor: 0,
        bootstrapped,
        generation: 0,
        peak: size,
        proven: true,
      };
    },

    /** What the report on the cluster has in addition. @throws {StoreError} */
    report: async (session: StoreSession, signal?: AbortSignal): Promise<ForeignReport> => ({
      format: 'camunda',
      restores: await readRestores(session, signal),
    }),

    /** Decodes a lease object. Never throws. */
    readingOf(object: StoredObject | undefined): LeaseReading {
      if (object === undefined) return { kind: 'absent' };
      try {
        const [lease, facts] = decode(object);
        const reading = { kind: 'lease', lease } as const;
        factsOf.set(reading, facts);
        return reading;
      } catch (error) {
        return { kind: 'unreadable', problem: explain(error) };
      }
    },

    /**
     * The settings, with what the lease objects say of them. No holder writes the duration: it is the median of
     * their claims, in whole seconds. The previous value is kept while it is right within a second.
     */
    refined(config: ClusterConfig, known: Iterable<{ readonly reading: LeaseReading }>): ClusterConfig {
      const claims = [...known].map(({ reading }) => factsOf.get(reading)?.claimMs ?? 0);
      const sorted = claims.filter((ms) => ms > 0).sort((a, b) => a - b);
      const median = sorted[(sorted.length - 1) >> 1];
      if (median !== undefined && Math.abs(median - durationMs) >= 1_000)
        durationMs = Math.max(1_000, Math.round(median / 1_000) * 1_000);
      return { ...config, durationMs };
    },

    /** What the report on a node id has in addition; undefined if the object cannot be read. */
    nodeOf(id: number, reading: LeaseReading): ForeignNode | undefined {
      const facts = factsOf.get(reading);
      return facts && { camunda: camundaNode(id, facts, durationMs) };
    },

    /** What went wrong since the last call, other than changes of leases. */
    changes: versionMemory(),
  };
}

/** A lease with a duration with which it expires when the store's time passes the expiry in it. */
function decode({ body, metadata, age, storeTime }: StoredObject): [LeaseState, CamundaFacts] {
  const { lease, ...facts } = decodeCamundaLease(body, metadata);
  if (lease.kind !== 'held') return [lease, { ...facts, claimMs: undefined }];
  // S3 cuts the time of writing to whole seconds: the true one is half a second later on average, and a
  // second at most.
  const cutMs = storeTime.max - storeTime.min;
  const sinceWrittenMs = lease.timestamp - (storeTime.max - age.max);
  const claimMs = sinceWrittenMs - cutMs / 2;
  return [
    { ...lease, durationMs: sinceWrittenMs - cutMs },
    { ...facts, claimMs: Number.isFinite(claimMs) ? claimMs : undefined },
  ];
}

/** @param durationMs the duration of most holders; 0 if it is unknown */
function camundaNode(
  id: number,
  { nodeId = id, acquirable, claimMs }: CamundaFacts,
  durationMs: number,
): Required<ForeignNode>['camunda'] {
  const seconds = Math.round(((claimMs ?? durationMs) - durationMs) / 1_000);
  const offsetMs = durationMs > 0 && Math.abs(seconds) > CLOCK_TOLERANCE_S ? seconds * 1_000 : 0;
  const lost = `its body says node id ${nodeId}: the holder works as that one, and renews ${nodeId}.json`;
  return {
    acquirable,
    clockOffsetMs: claimMs === undefined ? null : offsetMs,
    warning: nodeId === id ? clockWarning(offsetMs, durationMs) : lost,
  };
}

function clockWarning(offsetMs: number, durationMs: number) {
  if (offsetMs === 0) return null;
  const offset = `${Math.abs(offsetMs) / 1_000} s ${offsetMs > 0 ? 'ahead of' : 'behind'}`;
  // A holder renews after a third.
  const harm =
    offsetMs < (durationMs * -2) / 3 ? ': it expires before it is renewed, and another task may take it' : '';
  return `its holder’s clock is ${offset} the other holders’, or its lease duration is another one${harm}`;
}

async function readRestores(
  session: StoreSession,
  signal: AbortSignal | undefined,
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

/**
 * Remembers the last version of each node id, and finds the versions that came back since the last call, or
 * were used by two tasks: these have then written under one fencing token.
 */
function versionMemory() {
  const lastOf = new Map<
    number,
    { readonly version: number; readonly holder: string | null; readonly isHeld: boolean }
  >();
  return (nodes: readonly NodeStatus[]) =>
    nodes.flatMap(({ id, state, version, taskId = null }): LeaseChange[] => {
      if (state === 'absent' || state === 'unreadable') return [];
      const last = lastOf.get(id);
      const previousTaskId = last?.holder ?? null;
      lastOf.set(id, { version, holder: taskId ?? previousTaskId, isHeld: taskId !== null });
      if (last === undefined || version > last.version) return [];
      const isSame = version === last.version;
      // A renewal keeps the version, and so does a release.
      if (isSame && (taskId === null || (last.isHeld && taskId === previousTaskId))) return [];
      const what = isSame
        ? `version ${version} of node id ${id} is used again by ${taskId}, after its use by ${previousTaskId ?? 'another task'}`
        : `the version of node id ${id} has gone back from ${last.version} to ${version}`;
      const text = `${what}: what was written under it can no longer be distinguished`;
      return [{ kind: 'version-repeated', nodeId: id, version, taskId, previousTaskId, text }];
    });
}
