import { type Damage, damageOf } from '../../monitor/listed-cluster.js';
import { type ClusterReport, clusterReport } from '../../monitor/status-report.js';
import type { Interval } from '../../store/lease-store.js';
import type { ProbeReport, ProbeStatus } from '../../store/probe/probe-report.js';
import { formatDuration, formatSetting } from '../terminal/text.js';
import type { ClusterCheckup } from './cluster-checkup.js';
import type { CostReport } from './cost-finding.js';
import type { Finding } from './finding.js';
import type { ZooKeeperDiagnosis } from './zookeeper-diagnosis.js';

/** What `doctor --json` prints. Every field is always there, null where there is nothing to say. */
export interface Diagnosis {
  readonly store: string;
  /** False: at least one finding, of the store or of ZooKeeper, is a fault. */
  readonly ok: boolean;
  /** On the store and the cluster in it. */
  readonly findings: readonly Finding[];
  /** The median time of a request, in milliseconds; null when the store could not be probed. */
  readonly latencyMs: number | null;
  /** The store's clock minus this host's, in milliseconds; null when the store tells no time. */
  readonly clockOffsetMs: readonly [min: number, max: number] | null;
  /** Null when there is no cluster, or it could not be read. */
  readonly cluster: ClusterReport | null;
  /** Of all node ids, or of a new cluster where there is none; null when that is unknown. */
  readonly cost: CostReport | null;
  readonly damaged: readonly Damage[];
  /** Null when there is no discovery. */
  readonly zookeeper: ZooKeeperDiagnosis | null;
}

/** A smaller offset between the clocks counts as none, in milliseconds. */
const NOTEWORTHY_OFFSET_MS = 1_000;
/** AWS refuses signed requests whose time is off by more than this, in milliseconds. */
const SIGNATURE_LIMIT_MS = 15 * 60_000;
/** How many damaged node ids are named; the others are counted. */
const NAMED = 100;

/** The findings of a probe that got through: its checks, the latency, the clock. */
export function probeFindings({ checks, latencyMs, requests, clockOffsetMs }: ProbeReport): Finding[] {
  const latency = `${latencyMs.toFixed(1)} ms, the median of ${requests} requests`;
  return [...checks, { id: 'latency', title: 'latency', status: 'ok', detail: latency }, clockFinding(clockOffsetMs)];
}

/** How the store's clock and this host's compare. No lease depends on that; signatures of AWS do. */
export function clockFinding({ min, max }: Interval): Finding {
  const clock = { id: 'clock', title: 'clock' };
  if (!Number.isFinite(min) || !Number.isFinite(max)) return { ...clock, status: 'ok', detail: 'tells no time' };
  const offset = min > 0 ? min : max < 0 ? -max : 0;
  if (offset <= NOTEWORTHY_OFFSET_MS) return { ...clock, status: 'ok', detail: 'agrees with that of this host' };
  const direction = min > 0 ? 'ahead of' : 'behind';
  const harm =
    offset < SIGNATURE_LIMIT_MS
      ? 'harmless for leases, which trust no host’s clock'
      : `AWS refuses signatures that are ${formatSetting(SIGNATURE_LIMIT_MS)} off: the first request is made twice, and temporary credentials may be renewed too late`;
  return { ...clock, status: 'warning', detail: `at least ${formatDuration(offset)} ${direction} that of this host (${harm})` };
}

/** The findings on the cluster, or on its absence. */
export function clusterFindings(status: ClusterCheckup | undefined): Finding[] {
  const finding = (state: ProbeStatus, detail: string): Finding => ({ id: 'cluster', title: 'cluster', status: state, detail });
  if (status === undefined) return [finding('ok', 'none yet: nodelease init creates one, and so does the first nodelease run')];
  const { cluster, totals, foreign } = status;
  const held = totals.hints ? `about ${totals.held}` : `${totals.held}`;
  const settings = `duration ${formatSetting(cluster.durationMs)}, grace ${formatSetting(cluster.graceMs)}`;
  const pending = cluster.bootstrapped ? '' : ', not all lease objects have been created yet';
  return [
    finding('ok', `${cluster.size} node ids, ${held} of them held; ${settings}${pending}`),
    ...(foreign === undefined ? [] : [finding('fault', `${foreign}, beside the cluster of nodelease: one of the two has to move`)]),
    ...damageFindings(status),
  ];
}

/** The finding that an earlier probe has failed, so that no task uses the store. */
export function refusalFinding(reason: string, passed: boolean, accepted: boolean): Finding {
  const probe = { id: 'earlier-probe', title: 'earlier probe' };
  if (accepted)
    return { ...probe, status: 'ok', detail: `had found that ${reason}: accepted all the same, tasks use the store from now on` };
  const way = passed ? 'this one has found no fault: nodelease doctor --accept has the store used again' : 'use another store';
  return { ...probe, status: 'fault', detail: `found that ${reason}; no task uses the store since; ${way}` };
}

function damageFindings(status: ClusterCheckup): Finding[] {
  const { nodes, cluster, totals } = status;
  const damage = damageOf(status);
  const finding = (state: ProbeStatus, detail: string): Finding => ({ id: 'lease-objects', title: 'lease objects', status: state, detail });
  const read = totals.hints
    ? `read were ${nodes.length} of ${cluster.size}, those that stand out in a LIST and some by chance: nodelease status --all reads all of them`
    : '';
  // By hints, the damaged ones are the absent ones, read or not.
  const unread = totals.hints ? totals.damaged - nodes.filter(({ state }) => state === 'absent').length : 0;
  const more = Math.max(0, damage.length - NAMED) + Math.max(0, unread);
  if (damage.length === 0 && more === 0) return [finding('ok', ['none is damaged', read].filter((text) => text !== '').join('; '))];
  const named = damage.slice(0, NAMED).map(({ id, problem }) => `node id ${id}: ${problem} (nodelease init --repair restores it)`);
  const others = more > 0 ? [`and ${more} more node ids: nodelease status --all names them`] : [];
  const faults = [...named, ...others].map((detail) => finding('fault', detail));
  return read === '' ? faults : [...faults, finding('ok', read)];
}

/** What was found out besides the findings; undefined where it was not. */
export interface DiagnosisFacts {
  readonly probe: ProbeReport | undefined;
  readonly status: ClusterCheckup | undefined;
  readonly cost: CostReport | undefined;
  readonly zookeeper: ZooKeeperDiagnosis | undefined;
}

/** Puts the findings together. */
export function diagnosis(store: string, findings: readonly Finding[], { probe, status, cost, zookeeper }: DiagnosisFacts): Diagnosis {
  const offset = probe?.clockOffsetMs;
  const tellsTime = offset !== undefined && Number.isFinite(offset.min) && Number.isFinite(offset.max);
  return {
    store,
    ok: findings.every((finding) => finding.status !== 'fault') && zookeeper?.ok !== false,
    findings,
    latencyMs: probe?.latencyMs ?? null,
    clockOffsetMs: tellsTime ? [Math.floor(offset.min), Math.ceil(offset.max)] : null,
    cluster: status ? clusterReport(status.cluster) : null,
    cost: cost ?? null,
    damaged: status ? damageOf(status) : [],
    zookeeper: zookeeper ?? null,
  };
}

/** What `doctor --json` prints where node ids come from ZooKeeper alone: the fields of {@link Diagnosis}, with nothing to say of a store. */
export interface AllocatedDiagnosis extends Omit<Diagnosis, 'store'> {
  readonly store: null;
  readonly zookeeper: ZooKeeperDiagnosis;
}

/** The diagnosis of ZooKeeper as that of everything that the node ids rest on. */
export function allocatedDiagnosis(zookeeper: ZooKeeperDiagnosis): AllocatedDiagnosis {
  const nothing = { findings: [], latencyMs: null, clockOffsetMs: null, cluster: null, cost: null, damaged: [] };
  return { store: null, ok: zookeeper.ok, ...nothing, zookeeper };
}
