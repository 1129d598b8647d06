import { MAX_NODE_IDS } from '../lease/model/lease-state.js';
import type { StatusReport } from '../monitor/status-report.js';
import { parseInteger } from '../settings/values.js';

/** Node ids in one page at most: the memory that a slow client takes, at some 400 bytes a node id. */
export const PAGE_SIZE = 1_000;
const DEFAULT_LIMIT = 100;

/** Which node ids are asked for. */
export interface LeasesPage {
  readonly from: number;
  readonly limit: number;
}

/** The node ids of a further page of a report. */
export type ReportPage = Pick<StatusReport, 'nodes' | 'page'>;

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
    limit: parseInteger(limit ?? String(DEFAULT_LIMIT), 'limit', 1, PAGE_SIZE),
  };
}

/** The report with the node ids of the page only. One beyond all of them has none. */
export function pagedReport(report: StatusReport, { from, limit }: LeasesPage): StatusReport {
  const rest = report.nodes.filter(({ id }) => id >= from);
  return { ...report, nodes: rest.slice(0, limit), page: { from, limit, next: rest[limit]?.id ?? null } };
}

/** Server-sent events as bytes. Each is made once for all clients: that of a large cluster takes hundreds of kilobytes. */
export class SharedMessages {
  readonly #messages = new WeakMap<object, Uint8Array>();
  readonly #parts = new WeakMap<StatusReport, readonly [StatusReport, ...ReportPage[]]>();

  /** One event. The data must not change. */
  message(event: string, data: object | null, field = ''): Uint8Array {
    const made = data && this.#messages.get(data);
    if (made) return made;
    const message = Buffer.from(`${field}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    if (data) this.#messages.set(data, message);
    return message;
  }

  /** The data of an event alone, as JSON. */
  json(event: string, data: object | null): Uint8Array {
    return this.message(event, data).subarray(`event: ${event}\ndata: `.length, -2);
  }

  /** The report in the parts that are sent: all of it, or, with more node ids than a page has, the first page and then the node ids of the others. */
  parts(report: StatusReport): readonly [StatusReport, ...ReportPage[]] {
    const made = this.#parts.get(report);
    if (made) return made;
    const { nodes } = report;
    const pages: ReportPage[] = [];
    for (let start = 0, from = 0; start < nodes.length; start += PAGE_SIZE) {
      const next = nodes[start + PAGE_SIZE]?.id ?? null;
      pages.push({ page: { from, limit: PAGE_SIZE, next }, nodes: nodes.slice(start, start + PAGE_SIZE) });
      from = next ?? from;
    }
    const [first, ...others] = pages;
    const parts = [others.length > 0 ? { ...report, ...first } : report, ...others] as const;
    this.#parts.set(report, parts);
    return parts;
  }
}
