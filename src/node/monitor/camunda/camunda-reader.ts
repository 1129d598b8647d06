import { concurrently } from '../../../core/base/concurrently.js';
import { explain } from '../../../core/base/errors.js';
import {
  type CamundaLease,
  decodeCamundaLease,
  decodeCamundaRestore,
} from '../../../core/lease/camunda/camunda-codec.js';
import { CAMUNDA_MARKER } from '../../../core/lease/camunda/camunda-format.js';
import { type LeaseState, nodeIdOf } from '../../../core/lease/model/lease-state.js';
import type { LeaseReading } from '../../../core/lease/operate/inspect.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import type { StoredObject } from '../../../core/store/lease-store.js';
import type { ForeignNode, RestoreReport } from '../../wire/status-report.js';
import type { ForeignReader } from '../format-reader.js';
import { versionMemory } from './version-memory.js';

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

/** Reads a cluster of Camunda 8. */
export function camundaReader(): ForeignReader {
  const factsOf = new WeakMap<LeaseReading, CamundaFacts>();
  /** The duration of most holders; 0 while it is unknown. */
  let durationMs = 0;
  return {
    tombstoneMaxBytes: 0,
    hasGaps: true,

    // All empty objects have one etag, whatever their metadata say.
    mayRepeatEtag: (row) => row?.size === 0,

    // There is no grace, and there are no unique ids. A LIST does not show which of the leases have expired.
    configOf(objects) {
      const size = 1 + objects.reduce((highest, { key }) => Math.max(highest, nodeIdOf(key) ?? -1), -1);
      const bootstrapped = objects.some(({ key }) => key === CAMUNDA_MARKER);
      return {
        size,
        durationMs: Number.POSITIVE_INFINITY,
        graceMs: 0,
        idWidth: 0,
        idFloor: 0,
        bootstrapped,
        generation: 0,
        peak: size,
        proven: true,
      };
    },

    report: async (session, signal) => ({
      format: 'camunda',
      restores: await readRestores(session, signal),
    }),

    readingOf(object) {
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

    // No holder writes the duration: it is the median of their claims, in whole seconds. The previous value is
    // kept while it is right within a second.
    refined(config, known) {
      const claims = [...known].map(({ reading }) => factsOf.get(reading)?.claimMs ?? 0);
      const sorted = claims.filter((ms) => ms > 0).sort((a, b) => a - b);
      const median = sorted[(sorted.length - 1) >> 1];
      if (median !== undefined && Math.abs(median - durationMs) >= 1_000)
        durationMs = Math.max(1_000, Math.round(median / 1_000) * 1_000);
      return { ...config, durationMs };
    },

    nodeOf(id, reading) {
      const facts = factsOf.get(reading);
      return facts && { camunda: camundaNode(id, facts, durationMs) };
    },

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

function clockWarning(offsetMs: number, durationMs: number): string | null {
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
