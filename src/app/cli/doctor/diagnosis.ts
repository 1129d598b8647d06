import { leaseTiming } from '../../../core/lease/model/lease-timing.js';
import type { LeaseStore } from '../../../core/store/lease-store.js';
import { lockNameOf } from '../../../core/store/lock-url.js';
import type { ProbeReport } from '../../../core/store/probe/probe-report.js';
import { damageOf } from '../../../node/monitor/listed-cluster.js';
import { clusterReport } from '../../../node/monitor/status-report.js';
import { clockFinding, type Finding, finding, isSound, isTime } from '../../kit/finding.js';
import { formatDuration, formatSetting } from '../../kit/terminal/text.js';
import type { ClusterCheckup } from './cluster-checkup.js';
import type { CostReport } from './cost-finding.js';
import type { ZooKeeperDiagnosis } from './zookeeper-diagnosis.js';

/** How many damaged node ids are named; the others are counted. */
const NAMED = 100;

/**
 * The findings of a probe that got through: its checks, the latency, the clock.
 * @param signs whether requests are signed with the time
 */
export function probeFindings(
  { checks, latencyMs, requests, clockOffsetMs }: ProbeReport,
  signs: boolean,
): Finding[] {
  const latency = `${latencyMs.toFixed(1)} ms, the median of ${requests} requests`;
  return [...checks, finding('latency', 'ok', latency), clockFinding(clockOffsetMs, signs)];
}

/** A finding where leases are renewed more often than the store keeps up with. */
export function paceFindings(
  { minWriteIntervalMs = 0 }: Pick<LeaseStore, 'minWriteIntervalMs'>,
  durationMs: number,
): Finding[] {
  const { renewEveryMs } = leaseTiming(durationMs);
  if (renewEveryMs >= minWriteIntervalMs) return [];
  const pace = `a lease of ${formatSetting(durationMs)} is renewed every ${formatDuration(renewEveryMs)}`;
  const limit = `this store keeps up with one write of an object every ${formatSetting(minWriteIntervalMs)}`;
  const detail = `${pace}, and ${limit}: use a duration of ${formatSetting(3 * minWriteIntervalMs)} or more`;
  return [finding('pace', 'warning', detail, 'pace of renewals')];
}

/** The findings on the cluster, or on its absence. */
export function clusterFindings(status: ClusterCheckup | undefined, url: string): Finding[] {
  if (status === undefined) {
    const lock = lockNameOf(url);
    const none =
      lock === undefined
        ? 'none yet: nodelease init creates one, and so does the first nodelease run'
        : `none yet: no task has used lock ${lock}`;
    return [finding('cluster', 'ok', none)];
  }
  const { cluster, totals, foreign } = status;
  const held = totals.hints ? `about ${totals.held}` : `${totals.held}`;
  const settings = `duration ${formatSetting(cluster.durationMs)}, grace ${formatSetting(cluster.graceMs)}`;
  const pending = cluster.bootstrapped ? '' : ', not all lease objects have been created yet';
  const findings = [
    finding('cluster', 'ok', `${cluster.size} node ids, ${held} of them held; ${settings}${pending}`),
  ];
  if (foreign !== undefined) {
    const clash = `${foreign}, next to the cluster of nodelease: one of the two has to move`;
    findings.push(finding('cluster', 'fault', clash));
  }
  return [...findings, ...damageFindings(status)];
}

/** The finding that an earlier probe has failed, so that no task uses the store. */
export function refusalFinding(reason: string, passed: boolean, accepted: boolean): Finding {
  if (accepted)
    return finding(
      'earlier-probe',
      'ok',
      `had found that ${reason}: accepted all the same, tasks use the store from now on`,
    );
  const way = passed
    ? 'this one has found no fault: nodelease doctor --accept has the store used again'
    : 'use another store';
  return finding('earlier-probe', 'fault', `found that ${reason}; no task uses the store since; ${way}`);
}

function damageFindings(status: ClusterCheckup): Finding[] {
  const { nodes, cluster, totals } = status;
  const damage = damageOf(status);
  // By hints, the damaged ones are the absent ones, read or not.
  const unread = totals.hints ? totals.damaged - nodes.filter(({ state }) => state === 'absent').length : 0;
  const more = Math.max(0, damage.length - NAMED) + Math.max(0, unread);
  const faults = damage
    .slice(0, NAMED)
    .map(({ id, problem }) => `node id ${id}: ${problem} (nodelease init --repair restores it)`);
  if (more > 0) faults.push(`and ${more} more node ids: nodelease status --all names them`);
  const sound = faults.length === 0 ? ['none is damaged'] : [];
  if (totals.hints) {
    const read = `read were ${nodes.length} of ${cluster.size}, the ones that stand out in a LIST and some by chance`;
    sound.push(`${read}: nodelease status --all reads all of them`);
  }
  return [
    ...faults.map((detail) => finding('lease-objects', 'fault', detail)),
    ...(sound.length > 0 ? [finding('lease-objects', 'ok', sound.join('; '))] : []),
  ];
}

/** What was found out in addition to the findings. */
export interface DiagnosisFacts {
  probe?: ProbeReport;
  status?: ClusterCheckup | undefined;
  cost?: CostReport;
  zookeeper?: ZooKeeperDiagnosis | undefined;
}

/** What `doctor --json` prints. Every field is always there, null where there is nothing to say. */
export type Diagnosis = ReturnType<typeof diagnosis>;

/**
 * Puts the findings together.
 * @param store its URL; null where node ids come from ZooKeeper alone: then there is nothing to say of a
 * store
 * @param findings on the store and the cluster in it
 */
export function diagnosis(
  store: string | null,
  findings: readonly Finding[],
  { probe, status, cost, zookeeper }: DiagnosisFacts,
) {
  const offset = probe?.clockOffsetMs;
  return {
    store,
    /** False: at least one finding, of the store or of ZooKeeper, is a fault. */
    ok: isSound(findings) && zookeeper?.ok !== false,
    findings,
    /** The median time of a request, in milliseconds; null when the store could not be probed. */
    latencyMs: probe?.latencyMs ?? null,
    /** The store's clock minus this host's, in milliseconds; null when the store gives no time. */
    clockOffsetMs:
      offset && isTime(offset) ? ([Math.floor(offset.min), Math.ceil(offset.max)] as const) : null,
    /** Null when there is no cluster, or it could not be read. */
    cluster: status ? clusterReport(status.cluster) : null,
    /** Of all node ids, or of a new cluster where there is none; null when that is unknown. */
    cost: cost ?? null,
    damaged: status ? damageOf(status) : [],
    /** Null when there is no discovery. */
    zookeeper: zookeeper ?? null,
  };
}
