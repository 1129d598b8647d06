import { CLUSTER_DEFAULTS, type ClusterConfig } from '../../../core/lease/model/cluster-config.js';
import { leaseTiming } from '../../../core/lease/model/lease-timing.js';
import { monthlyRequests, S3_STANDARD_PRICES } from '../../../core/lease/session/renewal-cost.js';
import type { LeaseStore } from '../../../core/store/lease-store.js';
import { lockNameOf } from '../../../core/store/lock-url.js';
import type { ProbeReport } from '../../../core/store/probe/probe-report.js';
import { damageOf } from '../../../node/monitor/listed-cluster.js';
import { clusterReport } from '../../../node/monitor/status-report.js';
import { clockFinding, type Finding, finding, isSound, isTime } from '../../kit/finding.js';
import { formatCluster, formatDuration, formatSetting, pluralize } from '../../kit/terminal/text.js';
import type { Settings } from '../../settings/settings.js';
import type { ClusterCheckup } from './cluster-checkup.js';
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
export function clusterFindings(
  status: ClusterCheckup | undefined,
  url: string,
  wanted?: Settings['cluster'],
): Finding[] {
  if (status === undefined && wanted === 'existing')
    return [
      finding('cluster', 'fault', `there is no cluster at ${url}, and only an existing one is to be used`),
    ];
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
  const pending = cluster.bootstrapped ? '' : ', not all lease objects have been created yet';
  const findings = [
    finding(
      'cluster',
      'ok',
      `${pluralize(cluster.size, 'node id')}, ${held} of them held; ${formatCluster(cluster)}${pending}`,
    ),
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

/**
 * What the cost is calculated from; of the settings the nodes and the duration are for a cluster that does
 * not exist yet.
 */
export type CostTerms = Pick<Settings, 'nodes' | 'durationMs' | 'settingsIntervalMs' | 'endpoint'>;

const DAYS_PER_MONTH = 30;

/** What it costs to hold all node ids of a cluster, or of a new one, for `doctor --json`. */
type CostReport = ReturnType<typeof costReport>;

/** See {@link CostReport}. */
export function costReport(
  cluster: Pick<ClusterConfig, 'size' | 'durationMs'> | undefined,
  terms: CostTerms = {},
  prices = S3_STANDARD_PRICES,
) {
  const { settingsIntervalMs } = terms;
  const nodes = cluster?.size ?? terms.nodes ?? CLUSTER_DEFAULTS.nodes;
  const durationMs = cluster?.durationMs ?? terms.durationMs ?? CLUSTER_DEFAULTS.durationMs;
  const { put, get } = monthlyRequests({ nodes, durationMs, settingsIntervalMs });
  return {
    nodes,
    durationMs,
    /** How often a holder reads the cluster's settings; null for at each renewal. */
    settingsIntervalMs: settingsIntervalMs ?? null,
    /** In a month of 30 days, for all node ids together. */
    putsPerMonth: put,
    getsPerMonth: get,
    dollarsPerMonth: Math.round((put * prices.put + get * prices.get) * 1e3) / 1e6,
    /** Dollars per 1,000 requests. */
    putPrice: prices.put,
    getPrice: prices.get,
  };
}

/**
 * @param list where the prices are listed; undefined where requests cost nothing
 * @param isElsewhere whether requests go to another server than that cloud's
 */
export function costFinding(report: CostReport, list: string | undefined, isElsewhere = false): Finding {
  const { nodes, durationMs, settingsIntervalMs, dollarsPerMonth, putPrice, getPrice } = report;
  const held =
    nodes === 1
      ? '1 node id, when it is held'
      : `${nodes.toLocaleString('en-US')} node ids, when all are held`;
  const looks =
    settingsIntervalMs === null ? '' : `, the settings read every ${formatSetting(settingsIntervalMs)}`;
  const prices = `$${putPrice} per 1,000 PUT and $${getPrice} per 1,000 GET (${list})`;
  const each = nodes === 1 ? '' : `, ${dollarsText(dollarsPerMonth / nodes)} for each of them`;
  const cost = `${isElsewhere ? `on ${list?.split(/ Standard|,/)[0]} ` : ''}${dollarsText(dollarsPerMonth)}${each}, at ${prices}`;
  return finding(
    'cost',
    'ok',
    `${held}, with a duration of ${formatSetting(durationMs)}${looks}: ` +
      `${report.putsPerMonth.toLocaleString('en-US')} writes (PUT) and ${report.getsPerMonth.toLocaleString('en-US')} reads (GET) a month to renew them` +
      (list === undefined ? '' : `, ${cost}`),
  );
}

/** What S3 Standard in us-east-1 takes for a gigabyte and month, in dollars. */
const STORAGE_PRICE = 0.023;
/** More than a lease object has, with its key and metadata, in gigabytes. */
const VERSION_GB = 1e-6;

/** @param keptDays how long the store keeps what a renewal has replaced; infinity for ever */
export function versionsFinding({ putsPerMonth }: CostReport, keptDays: number): Finding {
  const isEndless = keptDays === Number.POSITIVE_INFINITY;
  const versions = isEndless ? putsPerMonth : Math.round((putsPerMonth * keptDays) / DAYS_PER_MONTH);
  const gigabytes = versions * VERSION_GB;
  const size = gigabytes.toLocaleString('en-US', { maximumSignificantDigits: 2 });
  const price = `$${STORAGE_PRICE} per GB (S3 Standard, us-east-1)`;
  const what = `${versions.toLocaleString('en-US')} versions ${isEndless ? 'more each month' : 'at a time'}`;
  const cost = `${dollarsText(gigabytes * STORAGE_PRICE)} a month${isEndless ? ' more with each month' : ''}`;
  const detail = `${what}, ${size} GB at 1 KB each: ${cost}, at ${price}`;
  return finding('versions', isEndless ? 'warning' : 'ok', detail, 'kept versions');
}

function dollarsText(dollars: number): string {
  if (dollars > 0 && dollars < 0.005) return 'less than a cent';
  return `$${dollars.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}
