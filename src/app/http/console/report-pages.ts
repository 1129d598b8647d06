import { MAX_NODE_IDS } from '../../../core/lease/model/lease-state.js';
import { parseInteger } from '../../../core/settings/setting.js';
import type { ReportPage, StatusReport } from '../../../node/wire/status-report.js';

/** Node ids in one page at most: the memory that a slow client takes, at some 400 bytes a node id. */
const PAGE_SIZE = 1_000;
const DEFAULT_LIMIT = 100;

/**
 * Reads `?from=ID&limit=N`, either of which may be left out; undefined where both are.
 *
 * @throws {ConfigError} when one is no number, out of its bounds, or given twice
 */
export function leasesPageOf(url: string): { from: number; limit: number } | undefined {
  const { searchParams } = new URL(url);
  const [from, limit] = ['from', 'limit'].map((name) =>
    searchParams.has(name) ? searchParams.getAll(name).join(',') : undefined,
  );
  if (from === undefined && limit === undefined) return undefined;
  return {
    from: parseInteger(from ?? '0', 'from', 0, MAX_NODE_IDS - 1),
    limit: parseInteger(limit ?? String(DEFAULT_LIMIT), 'limit', 1, PAGE_SIZE),
  };
}

/** Reads `?ids=3,17`. @throws {ConfigError} when these are no node ids */
export function idsOf(url: string): ReadonlySet<number> {
  const ids = new URL(url).searchParams.get('ids') ?? '';
  return new Set(ids.split(',').map((id) => parseInteger(id, 'ids', 0, MAX_NODE_IDS - 1)));
}

/** The report with the node ids of the page only. One beyond all of them has none. */
export function pagedReport(
  report: StatusReport,
  { from, limit }: { from: number; limit: number },
): StatusReport {
  const first = report.nodes.findIndex(({ id }) => id >= from);
  const rest = first < 0 ? [] : report.nodes.slice(first, first + limit + 1);
  return { ...report, nodes: rest.slice(0, limit), page: { from, limit, next: rest[limit]?.id ?? null } };
}

/**
 * The report in the parts that are sent: all of it, or, with more node ids than a page has, the first page
 * and then the node ids of the others.
 */
export const partsOf = onceEach((report: StatusReport): readonly [StatusReport, ...ReportPage[]] => {
  if (report.nodes.length <= PAGE_SIZE) return [report];
  const first = pagedReport(report, { from: 0, limit: PAGE_SIZE });
  const others: ReportPage[] = [];
  for (let from = first.page?.next; from != null; from = others.at(-1)?.page?.next) {
    const { nodes, page } = pagedReport(report, { from, limit: PAGE_SIZE });
    others.push({ nodes, page });
  }
  return [first, ...others];
});

/**
 * JSON as bytes, which all clients share: that of a large cluster takes hundreds of kilobytes. What it is
 * made from must not change.
 */
export const jsonOf = onceEach((data: object): Uint8Array => Buffer.from(JSON.stringify(data)));

/** Makes the value of each object once. */
function onceEach<K extends object, V>(make: (from: K) => V): (from: K) => V {
  const made = new WeakMap<K, V>();
  return (from) => {
    const value = made.get(from) ?? make(from);
    made.set(from, value);
    return value;
  };
}
