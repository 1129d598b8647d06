import { CLUSTER_DEFAULTS, type ClusterConfig } from '../../../core/lease/model/cluster-config.js';
import { monthlyCost, S3_STANDARD_PRICES } from '../../../core/lease/session/renewal-cost.js';
import { type Finding, finding } from '../../kit/finding.js';
import { formatSetting } from '../../kit/terminal/text.js';
import type { Settings } from '../../settings/settings.js';

/**
 * What the cost is calculated from; of the settings the nodes and the duration are for a cluster that does
 * not exist yet.
 */
export type CostTerms = Pick<Settings, 'nodes' | 'durationMs' | 'settingsIntervalMs' | 'endpoint'>;

const DAYS_PER_MONTH = 30;

/** What it costs to hold all node ids of a cluster, or of a new one, for `doctor --json`. */
export type CostReport = ReturnType<typeof costReport>;

/** See {@link CostReport}. */
export function costReport(
  cluster: Pick<ClusterConfig, 'size' | 'durationMs'> | undefined,
  terms: CostTerms = {},
) {
  const { settingsIntervalMs } = terms;
  const nodes = cluster?.size ?? terms.nodes ?? CLUSTER_DEFAULTS.nodes;
  const durationMs = cluster?.durationMs ?? terms.durationMs ?? CLUSTER_DEFAULTS.durationMs;
  const { put, get, dollars } = monthlyCost({ nodes, durationMs, settingsIntervalMs });
  return {
    nodes,
    durationMs,
    /** How often a holder reads the cluster's settings; null for at each renewal. */
    settingsIntervalMs: settingsIntervalMs ?? null,
    /** In a month of 30 days, for all node ids together. */
    putsPerMonth: put,
    getsPerMonth: get,
    dollarsPerMonth: Math.round(dollars * 1e6) / 1e6,
    /** Dollars per 1,000 requests. */
    putPrice: S3_STANDARD_PRICES.put,
    getPrice: S3_STANDARD_PRICES.get,
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
  const cost = `${isElsewhere ? 'on S3 ' : ''}${dollarsText(dollarsPerMonth)}${each}, at ${prices}`;
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
