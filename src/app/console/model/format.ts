import type { ClusterEvent, TreeReport } from '../../../node/wire/cluster-snapshot.js';
import type { ReportHead } from '../../../node/wire/status-report.js';

/**
 * A span of time in milliseconds, at least 0, for people: `3.2 s`, `48 s`, `4 min`, `2 h 10 min`, `3 d 4 h`.
 * Cut, not rounded.
 */
export function formatDuration(ms: number): string {
  const tenths = Math.floor(Math.max(0, ms) / 100);
  if (tenths < 100) return `${Math.floor(tenths / 10)}.${tenths % 10} s`;
  const seconds = Math.floor(tenths / 10);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  const [text, rest] =
    hours < 24 ? [`${hours} h`, `${minutes % 60} min`] : [`${Math.floor(hours / 24)} d`, `${hours % 24} h`];
  return rest.startsWith('0') ? text : `${text} ${rest}`;
}

/** A setting in milliseconds, exactly: `1 h`, `15 s`, `1.5 s`, `500 ms`. */
export function formatSetting(ms: number): string {
  if (ms >= 60_000 && ms % 60_000 === 0) return formatDuration(ms);
  return ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`;
}

/** `1 node`, `2,000 nodes`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? noun : plural}`;
}

/**
 * The clock offset between this host and a store, at least and at most, as a clause about the store's clock.
 */
export function formatOffset([min, max]: readonly [min: number, max: number]): string {
  if (min <= 0 && max >= 0) {
    const most = Math.max(-min, max);
    return most < 1 ? 'the same as this host’s' : `within ${formatShort(most)} of this host’s`;
  }
  const [from, to] = min > 0 ? [min, max] : [-max, -min];
  const side = min > 0 ? 'ahead of' : 'behind';
  const range =
    formatShort(from) === formatShort(to) ? formatShort(to) : `${formatShort(from)} to ${formatShort(to)}`;
  return `${range} ${side} this host’s`;
}

/** A short span in milliseconds: `0.4 ms`, `12 ms`, `1.2 s`. */
export function formatShort(ms: number): string {
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`;
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`;
}

/** A moment as people here write it: the time of day. */
export const clockTime = (at: number) => new Date(at).toLocaleTimeString('sv');

/** The beginning and the end of a long name: names of tasks differ at either. */
export function shortName(name: string): string {
  return name.length > 20 ? `${name.slice(0, 10)}…${name.slice(-9)}` : name;
}

/**
 * Scans are closer together while a page is open, in milliseconds: after a longer time it is unknown when
 * something happened.
 */
const GAP_MS = 10_000;

/** What happened, and after a gap since when it may have. */
export function eventText({ text, at, since }: ClusterEvent): string {
  return isAfterGap(at, since) ? `${text} (last look: ${clockTime(since)})` : text;
}

/** How long ago it happened, at most after a gap. */
export function eventAgo({ at, since }: ClusterEvent, now: number): string {
  const isGap = isAfterGap(at, since);
  const ms = now - (isGap ? since : at);
  if (ms < 1_000) return 'just now';
  return `${isGap ? 'up to ' : ''}${formatDuration(Math.floor(ms / 1_000) * 1_000).replace('.0 s', ' s')} ago`;
}

function isAfterGap(at: number, since: number | null): since is number {
  return since !== null && at - since > GAP_MS;
}

/** How many holders are named; the others are counted. */
const NAMED = 3;

/** The holders of ids that the cluster has given up, as one text; none without any. */
export function drainingText({ draining }: Pick<ReportHead, 'draining'>): string[] {
  if (draining.length === 0) return [];
  const named = draining
    .slice(0, NAMED)
    .map(({ id, taskId }) => `${id} by ${taskId ?? 'a task without a name'}`);
  const more = draining.length - named.length;
  return [`draining: ${named.join(', ')}${more > 0 ? ` and ${more.toLocaleString('en')} more` : ''}`];
}

/**
 * How the discovery tree and the leases, as the server has compared them and found no problem, agree, in
 * words.
 */
export function agreementText(
  { nodes: held }: NonNullable<ReportHead['discovery']>,
  tree: TreeReport | null,
): string {
  const ids = new Set<number | null>(held.map(({ id }) => id));
  const shown = tree?.nodes ?? [];
  const others = shown.filter(({ nodeId }) => !ids.has(nodeId)).length;
  // Nodes with a fixed id have no lease, and those of dead tasks stay as long as their sessions.
  if (others > 0) return `${others} of ${counted(shown.length, 'node')} in the tree without a lease`;
  return ids.size > 0 ? 'agrees with the leases' : 'no lease to compare it with';
}
