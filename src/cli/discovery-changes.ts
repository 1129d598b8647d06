import type { EntryPlace } from '../monitor/discovery-place.js';
import { type EntryReport, entryReport } from '../monitor/discovery-report.js';
import type { DiscoveryEntry } from '../monitor/discovery-snapshot.js';
import { formatAddress, znodeName } from './discovery-table.js';

/** What becomes of an announcement. `present`: it was there already when the watch began. */
export type ChangeKind = 'present' | 'joined' | 'changed' | 'left';

/** A change of an announcement. */
export interface DiscoveryChange {
  readonly kind: ChangeKind;
  /** As it is now or, for one that has left, as it was last. */
  readonly entry: DiscoveryEntry;
  /** As it was before the change, where it was there. */
  readonly previous: DiscoveryEntry | undefined;
}

/** What became of one path between two looks; undefined where nothing did that anybody would see. */
export function discoveryChange(previous: DiscoveryEntry | undefined, now: DiscoveryEntry | undefined): DiscoveryChange | undefined {
  if (now === undefined) return previous && { kind: 'left', entry: previous, previous };
  if (previous === undefined) return { kind: 'joined', entry: now, previous };
  // Data that is written again as it was is somebody's heartbeat.
  const same = previous.createdZxid === now.createdZxid && previous.text === now.text && previous.problem === now.problem;
  return same ? undefined : { kind: 'changed', entry: now, previous };
}

/** A change as one line of JSON has it: every field is always there, null where there is nothing to say. */
export interface ChangeReport extends EntryReport {
  /** When it was seen, by this host's clock, ISO 8601. */
  readonly time: string;
  readonly change: ChangeKind;
  readonly kind: EntryPlace['kind'];
  /** Null unless it is a node. */
  readonly clusterNodeId: number | null;
  /** The following three are null unless it is an endpoint. */
  readonly endpoint: string | null;
  readonly key: string | null;
  readonly ref: string | null;
  readonly previous: EntryReport | null;
}

/** A change for programs. */
export function changeReport(time: string, { kind: change, entry, previous }: DiscoveryChange): ChangeReport {
  const { place } = entry;
  const endpoint = place.kind === 'endpoint' ? place : undefined;
  return {
    time,
    change,
    kind: place.kind,
    clusterNodeId: place.kind === 'node' ? place.clusterNodeId : null,
    endpoint: endpoint?.endpoint ?? null,
    key: endpoint?.key ?? null,
    ref: endpoint?.ref ?? null,
    ...entryReport(entry),
    previous: previous === undefined ? null : entryReport(previous),
  };
}

/** A change for people, without its time: `node 0 (00/08) joined: version 1, task a`. */
export function changeText({ kind, entry, previous }: DiscoveryChange): string {
  const now = facts(entry);
  const before = kind === 'changed' && previous !== undefined ? facts(previous) : now;
  const texts = now.flatMap(([name, value], index) => {
    const was = before[index]?.[1] ?? '';
    if (was === value) return value === '' ? [] : [`${name} ${value}`.trim()];
    return [`${name} ${was || 'none'} → ${value || 'none'}`];
  });
  if (kind === 'changed' && !texts.some((text) => text.includes(' → '))) texts.push('other fields of its data are new');
  if (entry.problem !== undefined) texts.push(entry.problem);
  return `${subject(entry.place)} ${kind === 'present' ? 'is there' : kind}: ${texts.join(', ')}`;
}

function subject(place: EntryPlace): string {
  switch (place.kind) {
    case 'node':
      return `node ${place.nodeId} (${znodeName(place.clusterNodeId)})`;
    case 'service':
      return `service ${place.service} of ${/^\d+$/.test(place.ref) ? 'node ' : ''}${place.ref}`;
    case 'endpoint':
      return `endpoint ${place.endpoint} key ${place.key} of ${place.ref}`;
  }
}

function facts(entry: DiscoveryEntry): (readonly [name: string, value: string])[] {
  const report = entryReport(entry);
  return [
    ['version', report.version === null ? '' : String(report.version)],
    ['task', report.taskId ?? ''],
    ['service', entry.place.kind === 'service' ? '' : (report.service ?? '')],
    ['address', formatAddress(report)],
    ['session', report.sessionId ?? ''],
  ];
}
