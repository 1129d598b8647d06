import { leaseTiming } from '../../lease/model/lease-timing.js';
import { type Damage, damageOf } from '../../monitor/listed-cluster.js';
import { type ClusterReport, clusterReport } from '../../monitor/status-report.js';
import type { Interval, LeaseStore } from '../../store/lease-store.js';
import type { ProbeReport } from '../../store/probe/probe-report.js';
import { formatDuration, formatSetting } from '../terminal/text.js';
import type { ClusterCheckup } from './cluster-checkup.js';
import type { CostReport } from './cost-finding.js';
import { type Finding, finding, isSound } from './finding.js';

/** What `doctor --json` prints. Every field is always there, null where there is nothing to say. */
export interface Diagnosis {
  /** Null where node ids come from ZooKeeper alone: then there is nothing to say of a store. */
  readonly store: string | null;
  /** False: at least one finding, of the store or of ZooKeeper, is a fault. */
  readonly ok: boolean;
  /** On the store and the cluster in it. */
  readonly findings: readonly Finding[];
  /** The median time of a request, in milliseconds; null when the store could not be probed. */
  readonly latencyMs: number | null;
  /** The store's clock minus this host's, in milliseconds; null when the store gives no time. */
  readonly clockOffsetMs: readonly [min: number, max: number] | null;
  /** Null when there is no cluster, or it could not be read. */
  readonly cluster: ClusterReport | null;
  /** Of all node ids, or of a new cluster where there is none; null when that is unknown. */
  readonly cost: CostReport | null;
  readonly damaged: readonly Damage[];
  /** Null when there is no discovery. */
  readonly zookeeper: ZooKeeperDiagnosis | null;
}

/**
 * What `doctor --json` prints of ZooKeeper: every field is always there, null where there is nothing to say.
 */
export interface ZooKeeperDiagnosis {
  /** The connect string. */
  readonly zookeeper: string;
  /** False: at least one finding is a fault. */
  readonly ok: boolean;
  readonly findings: readonly Finding[];
  /** Each by itself, in the order of the connect string. */
  readonly servers: readonly ServerCheck[];
  /** How long a session outlives its connection, in milliseconds: as asked for, and as granted. */
  readonly sessionTimeoutMs: { readonly asked: number; readonly granted: number | null };
  /**
   * The median times of requests that read, and that write, in milliseconds; null when they did not get
   * through.
   */
  readonly latencyMs: { readonly read: number; readonly write: number } | null;
}

/** Whether one of the servers can be used, by itself. */
export interface ServerCheck {
  /** As it is in the connect string: host and port. */
  readonly server: string;
  readonly ok: boolean;
  /** From the first packet until there is a session, in milliseconds; null where there is none. */
  readonly latencyMs: number | null;
  /** Why it cannot be used; null where it can. */
  readonly problem: string | null;
}

/** A smaller offset between the clocks counts as none, in milliseconds. */
const NOTEWORTHY_OFFSET_MS = 1_000;
/** AWS refuses signed requests whose time is off by more than this, in milliseconds. */
const SIGNATURE_LIMIT_MS = 15 * 60_000;
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

/** How the store's clock and this host's compare. No lease depends on that; signatures of AWS do. */
export function clockFinding({ min, max }: Interval, signs = true): Finding {
  if (!Number.isFinite(min) || !Number.isFinite(max)) return finding('clock', 'ok', 'tells no time');
  const offset = min > 0 ? min : max < 0 ? -max : 0;
  if (offset <= NOTEWORTHY_OFFSET_MS) return finding('clock', 'ok', 'agrees with that of this host');
  const harm =
    !signs || offset < SIGNATURE_LIMIT_MS
      ? 'harmless for leases, which trust no host’s clock'
      : `AWS refuses signatures that are ${formatSetting(SIGNATURE_LIMIT_MS)} off: the first request is made twice, and temporary credentials may be renewed too late`;
  return finding(
    'clock',
    'warning',
    `at least ${formatDuration(offset)} ${min > 0 ? 'ahead of' : 'behind'} that of this host (${harm})`,
  );
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
export function clusterFindings(status: ClusterCheckup | undefined): Finding[] {
  if (status === undefined)
    return [
      finding('cluster', 'ok', 'none yet: nodelease init creates one, and so does the first nodelease run'),
    ];
  const { cluster, totals, foreign } = status;
  const held = totals.hints ? `about ${totals.held}` : `${totals.held}`;
  const settings = `duration ${formatSetting(cluster.durationMs)}, grace ${formatSetting(cluster.graceMs)}`;
  const pending = cluster.bootstrapped ? '' : ', not all lease objects have been created yet';
  return [
    finding('cluster', 'ok', `${cluster.size} node ids, ${held} of them held; ${settings}${pending}`),
    ...(foreign === undefined
      ? []
      : [
          finding(
            'cluster',
            'fault',
            `${foreign}, beside the cluster of nodelease: one of the two has to move`,
          ),
        ]),
    ...damageFindings(status),
  ];
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

/** Puts the findings together. */
export function diagnosis(
  store: string | null,
  findings: readonly Finding[],
  facts: DiagnosisFacts,
): Diagnosis {
  const { probe, status, cost, zookeeper } = facts;
  const offset = probe?.clockOffsetMs;
  const tellsTime = offset !== undefined && Number.isFinite(offset.min) && Number.isFinite(offset.max);
  return {
    store,
    ok: isSound(findings) && zookeeper?.ok !== false,
    findings,
    latencyMs: probe?.latencyMs ?? null,
    clockOffsetMs: tellsTime ? [Math.floor(offset.min), Math.ceil(offset.max)] : null,
    cluster: status ? clusterReport(status.cluster) : null,
    cost: cost ?? null,
    damaged: status ? damageOf(status) : [],
    zookeeper: zookeeper ?? null,
  };
}
