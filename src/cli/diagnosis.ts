import { type Damage, damageOf } from '../monitor/damage.js';
import { type ClusterReport, clusterReport } from '../monitor/status-report.js';
import type { Interval } from '../store/lease-store.js';
import type { ProbeReport, ProbeStatus } from '../store/probe-report.js';
import type { ClusterCheckup } from './cluster-checkup.js';
import type { CostReport } from './cost-finding.js';
import { formatDuration, formatSetting } from './text.js';
import type { ZooKeeperDiagnosis } from './zookeeper-diagnosis.js';

/** One line of what `doctor` found. */
export interface Finding {
  readonly id: string;
  /** What was looked at. */
  readonly title: string;
  /** `fault`: no leases can, or should, be kept there. `warning`: somebody should look into it. */
  readonly status: ProbeStatus;
  /** What was seen; empty when there is nothing to say. */
  readonly detail: string;
}

/** What `doctor --json` prints: every field is always there, null where there is nothing to say. */
export interface Diagnosis {
  readonly store: string;
  /** False: at least one finding, of the store or of ZooKeeper, is a fault. */
  readonly ok: boolean;
  /** On the store, and what is in it. */
  readonly findings: readonly Finding[];
  /** The median time of a request, in milliseconds; null when the store could not be probed. */
  readonly latencyMs: number | null;
  /** The store's clock minus this host's, in milliseconds; null when the store tells no time. */
  readonly clockOffsetMs: readonly [min: number, max: number] | null;
  /** Null when there is no cluster, or it could not be read. */
  readonly cluster: ClusterReport | null;
  /** Of all node ids, those of a new cluster where there is none; null when it is not known whether there is one. */
  readonly cost: CostReport | null;
  readonly damaged: readonly Damage[];
  /** Null when there is no discovery. */
  readonly zookeeper: ZooKeeperDiagnosis | null;
}

/** An offset of the clocks that somebody may wonder about, in milliseconds. */
const NOTEWORTHY_OFFSET_MS = 1_000;
/** Signed requests whose time is off by more than this are refused by AWS, in milliseconds. */
const SIGNATURE_LIMIT_MS = 15 * 60_000;

/** The findings of a probe that got through: its checks, the latency, the clock. */
export function probeFindings({ checks, latencyMs, requests, clockOffsetMs }: ProbeReport): Finding[] {
  const latency = `${latencyMs.toFixed(1)} ms, the median of ${requests} requests`;
  return [...checks, { id: 'latency', title: 'latency', status: 'ok', detail: latency }, clockFinding(clockOffsetMs)];
}

/** How the store's clock and this host's compare: for people. No lease rests on it; signatures of AWS do, which are then made by the store's time. */
export function clockFinding({ min, max }: Interval): Finding {
  const finding = (status: ProbeStatus, detail: string): Finding => ({
    id: 'clock',
    title: 'clock',
    status,
    detail,
  });
  if (!Number.isFinite(min) || !Number.isFinite(max)) return finding('ok', 'tells no time');
  const least = min > 0 ? min : max < 0 ? -max : 0;
  if (least <= NOTEWORTHY_OFFSET_MS) return finding('ok', 'agrees with that of this host');
  const direction = min > 0 ? 'ahead of' : 'behind';
  const harm =
    least < SIGNATURE_LIMIT_MS
      ? 'harmless for leases, which trust no host’s clock'
      : `AWS refuses signatures that are ${formatSetting(SIGNATURE_LIMIT_MS)} off: the first request is made twice, and temporary credentials may be renewed too late`;
  return finding('warning', `at least ${formatDuration(least)} ${direction} that of this host (${harm})`);
}

/** The findings of a look at the cluster, or at its absence. */
export function clusterFindings(status: ClusterCheckup | undefined): Finding[] {
  const finding = (state: ProbeStatus, detail: string): Finding => ({ id: 'cluster', title: 'cluster', status: state, detail });
  if (status === undefined) return [finding('ok', 'none yet: nodelease init creates one, and so does the first nodelease run')];
  const { cluster, totals, foreign } = status;
  const { size, durationMs, graceMs, bootstrapped } = cluster;
  const held = totals.hints ? `about ${totals.held}` : `${totals.held}`;
  const pending = bootstrapped ? '' : ', not all lease objects have been created yet';
  return [
    finding(
      'ok',
      `${size} node ids, ${held} of them held; duration ${formatSetting(durationMs)}, grace ${formatSetting(graceMs)}${pending}`,
    ),
    ...(foreign === undefined ? [] : [finding('fault', `${foreign}, beside the cluster of nodelease: one of the two has to move`)]),
    ...damageFindings(status),
  ];
}

/** That an earlier probe has found the store wanting, so that no task uses it. */
export function refusalFinding(reason: string, passed: boolean, accepted: boolean): Finding {
  const finding = (status: ProbeStatus, detail: string): Finding => ({ id: 'earlier-probe', title: 'earlier probe', status, detail });
  if (accepted) return finding('ok', `had found that ${reason}: accepted all the same, tasks use the store from now on`);
  const way = passed ? 'this one has found no fault: nodelease doctor --accept has the store used again' : 'use another store';
  return finding('fault', `found that ${reason}; no task uses the store since; ${way}`);
}

/** How many damaged node ids are named; the others are counted. */
const NAMED = 100;

function damageFindings(status: ClusterCheckup): Finding[] {
  const { nodes, cluster, totals } = status;
  const damage = damageOf(status);
  const finding = (status: ProbeStatus, detail: string): Finding => ({ id: 'lease-objects', title: 'lease objects', status, detail });
  const read = totals.hints
    ? `read were ${nodes.length} of ${cluster.size}, those that stand out in a LIST and some by chance: nodelease status --all reads all of them`
    : '';
  // By hints these are the absent ones, whether they were read or not.
  const unread = totals.hints ? totals.damaged - nodes.filter(({ state }) => state === 'absent').length : 0;
  const more = Math.max(0, damage.length - NAMED) + Math.max(0, unread);
  if (damage.length === 0 && more === 0) return [finding('ok', ['none is damaged', read].filter((text) => text !== '').join('; '))];
  const named = damage.slice(0, NAMED).map(({ id, problem }) => `node id ${id}: ${problem} (nodelease init --repair restores it)`);
  const others = more > 0 ? [`and ${more} more node ids: nodelease status --all names them`] : [];
  const faults = [...named, ...others].map((detail) => finding('fault', detail));
  return read === '' ? faults : [...faults, finding('ok', read)];
}

/** Puts the findings together. */
export function diagnosis(
  store: string,
  findings: readonly Finding[],
  facts: {
    readonly probe: ProbeReport | undefined;
    readonly status: ClusterCheckup | undefined;
    readonly cost?: CostReport | undefined;
    readonly zookeeper?: ZooKeeperDiagnosis | undefined;
  },
): Diagnosis {
  const offset = facts.probe?.clockOffsetMs;
  return {
    store,
    ok: findings.every(({ status }) => status !== 'fault') && facts.zookeeper?.ok !== false,
    findings,
    latencyMs: facts.probe?.latencyMs ?? null,
    clockOffsetMs:
      offset && Number.isFinite(offset.min) && Number.isFinite(offset.max) ? [Math.floor(offset.min), Math.ceil(offset.max)] : null,
    cluster: facts.status ? clusterReport(facts.status.cluster) : null,
    cost: facts.cost ?? null,
    damaged: facts.status === undefined ? [] : damageOf(facts.status),
    zookeeper: facts.zookeeper ?? null,
  };
}
