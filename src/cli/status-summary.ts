import type { PagedCluster } from '../monitor/paged-cluster.js';
import { type Paint, paintFor } from './color.js';
import type { Screen } from './io.js';
import { cut } from './table.js';
import { formatSetting, pluralize, printable } from './text.js';

/** How many holders of ids that were given up are named; the others are counted. */
const NAMED = 8;

/** One line that counts the node ids, as far as a terminal has room for it. */
export function fittedSummary(status: PagedCluster, screen: Screen | undefined): string {
  const columns = screen?.columns ?? Number.POSITIVE_INFINITY;
  const { cluster } = status;
  const bits = pluralize(cluster.idWidth, 'bit');
  const settings = `; duration ${formatSetting(cluster.durationMs)}, grace ${formatSetting(cluster.graceMs)}`;
  // That the counts are hints is not to be lost for want of room.
  const ends = [`${settings}, node ids ${bits} wide`, `${settings}, node ids ${bits}`, settings, ...(status.totals.hints ? [''] : [])];
  const fitting = ends.find((end) => counts(status, plain).length + end.length <= columns);
  if (fitting !== undefined) return counts(status, paintFor(screen?.color ?? false)) + fitting;
  return cut(counts(status, plain) + (ends.at(-1) ?? ''), columns);
}

function plain(text: string): string {
  return text;
}

function counts({ totals }: PagedCluster, paint: Paint): string {
  const { held, free, neverHeld, expired } = totals;
  const damaged = paint(`damaged ${totals.damaged}`, totals.damaged > 0 ? 'red' : undefined);
  const rare = (['evicted', 'retired'] as const).map((state) => (totals[state] ? `, ${state} ${totals[state]}` : '')).join('');
  const counts = `held ${held}, free ${free}${totals.hints ? ` (${neverHeld} never held)` : ''}, expired ${expired}, ${damaged}${rare}`;
  return totals.hints ? `by a LIST: ${counts}` : counts;
}

/** One line on the holders of ids that the cluster has given up; none where there are none. */
export function drainingLine({ draining }: PagedCluster, screen: Screen | undefined): string[] {
  if (draining.length === 0) return [];
  const named = draining.slice(0, NAMED).map(({ id, taskId }) => `${id} (${taskId ?? 'nobody knows whom'})`);
  const more = draining.length > NAMED ? ` and ${draining.length - NAMED} more` : '';
  const text = printable(
    `draining: ${pluralize(draining.length, 'node id')} beyond the cluster's size held still: ${named.join(', ')}${more}`,
  );
  return [paintFor(screen?.color ?? false)(screen === undefined ? text : cut(text, screen.columns), 'yellow')];
}
