import { parseInteger } from '../config/values.js';
import { MAX_NODE_IDS } from '../lease/lease-state.js';
import type { StatusReport } from '../monitor/status-report.js';

/** A part of the node ids, as somebody asked for it. */
export interface LeasesPage {
  readonly from: number;
  readonly limit: number;
}

const LIMIT = { default: 100, most: 1_000 };

/**
 * Reads `?from=ID&limit=N`, either of which may be left out; undefined where both are.
 *
 * @throws {ConfigError} when one is no number, out of its bounds, or given twice
 */
export function leasesPageOf(url: string): LeasesPage | undefined {
  const { searchParams } = new URL(url);
  const [from, limit] = ['from', 'limit'].map((name) => (searchParams.has(name) ? searchParams.getAll(name).join(',') : undefined));
  if (from === undefined && limit === undefined) return undefined;
  return {
    from: parseInteger(from ?? '0', 'from', 0, MAX_NODE_IDS - 1),
    limit: parseInteger(limit ?? String(LIMIT.default), 'limit', 1, LIMIT.most),
  };
}

/** The report with the node ids of the page only. One beyond all of them has none. */
export function pagedReport(report: StatusReport, { from, limit }: LeasesPage): StatusReport {
  const rest = report.nodes.filter(({ id }) => id >= from);
  return { ...report, nodes: rest.slice(0, limit), page: { from, limit, next: rest[limit]?.id ?? null } };
}
