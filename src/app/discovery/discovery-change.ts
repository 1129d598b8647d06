import { type DiscoveryEntry, entryReport } from '../../node/monitor/discovery/discovery-snapshot.js';
import { NODES_PATH } from '../../zookeeper/discovery/tree-paths.js';
import { formatAddress } from '../kit/terminal/text.js';

/** A change of an announcement. */
export interface DiscoveryChange {
  /** `present`: it was there already when the watch began. */
  readonly kind: 'present' | 'joined' | 'changed' | 'left';
  /** As it is now or, for one that has left, as it was last. */
  readonly entry: DiscoveryEntry;
  /** As it was before the change; undefined for a new one. */
  readonly previous: DiscoveryEntry | undefined;
}

/** The change of one path between two readings; undefined without a visible one. */
export function discoveryChange(
  previous: DiscoveryEntry | undefined,
  now: DiscoveryEntry | undefined,
): DiscoveryChange | undefined {
  if (now === undefined) return previous && { kind: 'left', entry: previous, previous };
  if (previous === undefined) return { kind: 'joined', entry: now, previous };
  // The same data, written again, is a heartbeat.
  const same =
    previous.createdZxid === now.createdZxid &&
    previous.text === now.text &&
    previous.problem === now.problem;
  return same ? undefined : { kind: 'changed', entry: now, previous };
}

/** A change for programs, without its time. Every field is always there, or null. */
export function changeReport({ kind: change, entry, previous }: DiscoveryChange) {
  const { parsed } = entry;
  const { endpoint, key, ref } =
    parsed.kind === 'endpoint' ? parsed : { endpoint: null, key: null, ref: null };
  return {
    change,
    kind: parsed.kind,
    /** Null unless it is a node. */
    clusterNodeId: parsed.kind === 'node' ? parsed.clusterNodeId : null,
    // Null unless it is an endpoint.
    endpoint,
    key,
    ref,
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
  if (kind === 'changed' && !texts.some((text) => text.includes(' → ')))
    texts.push('other fields of its data are new');
  if (entry.problem !== undefined) texts.push(entry.problem);
  return `${subject(entry)} ${kind === 'present' ? 'is there' : kind}: ${texts.join(', ')}`;
}

function subject({ path, parsed }: DiscoveryEntry): string {
  switch (parsed.kind) {
    case 'node':
      return `node ${parsed.nodeId} (${path.slice(NODES_PATH.length + 1)})`;
    case 'service':
      return `service ${parsed.service} of ${/^\d+$/.test(parsed.ref) ? 'node ' : ''}${parsed.ref}`;
    case 'endpoint':
      return `endpoint ${parsed.endpoint} key ${parsed.key} of ${parsed.ref}`;
  }
}

function facts(entry: DiscoveryEntry): (readonly [name: string, value: string])[] {
  const report = entryReport(entry);
  return [
    ['version', report.version === null ? '' : String(report.version)],
    ['task', report.taskId ?? ''],
    ['service', entry.parsed.kind === 'service' ? '' : (report.service ?? '')],
    ['address', formatAddress(report)],
    ['session', report.sessionId ?? ''],
  ];
}
