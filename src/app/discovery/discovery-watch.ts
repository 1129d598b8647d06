import {
  type DiscoveryEntry,
  entryOf,
  entryReport,
  parsePath,
  readDiscovery,
} from '../../node/monitor/discovery/discovery-snapshot.js';
import { ChildrenView } from '../../zookeeper/client/children-view.js';
import { DISCOVERY_PATH, NODES_PATH } from '../../zookeeper/discovery/layout.js';
import { complain } from '../kit/answer.js';
import { interruption, type ZooKeeperCall } from '../kit/call.js';
import { showConnection, watchZooKeeper } from '../kit/changes.js';
import { formatAddress, pluralize } from '../kit/terminal/text.js';

const COLORS = { present: undefined, joined: 'green', changed: 'cyan', left: 'yellow' } as const;

/**
 * `nodelease discovery watch`: shows what is announced and then every change, one on a line, until a signal
 * ends it: 0 for SIGINT and SIGTERM. It survives a lost connection: once that is restored, it shows all that
 * has changed meanwhile. Changes of one path in quick succession may be shown as one; in the end, all that is
 * shown adds up to the tree.
 */
export function watchDiscovery(call: ZooKeeperCall): Promise<number> {
  const { io } = call;
  return watchZooKeeper(call, async (zookeeper, show, signal) => {
    const onChange = (change: DiscoveryChange) =>
      show(changeReport(change), COLORS[change.kind], changeText(change));
    const { entries = [], denied = [] } = (await readDiscovery(zookeeper, DISCOVERY_PATH, signal)) ?? {};
    for (const path of denied) complain(io, `${path}: no-auth: these credentials may not read the data`);
    for (const entry of entries) onChange({ kind: 'present', entry, previous: undefined });
    const count =
      entries.length === 0 ? 'no task announces anything' : pluralize(entries.length, 'announcement');
    showConnection(show, 'watching', zookeeper.state, `${count} at ${zookeeper.description}: watching`);
    const known = new Map(entries.map((entry) => [entry.path, entry]));
    const settle = (path: string, now: DiscoveryEntry | undefined) => {
      const change = discoveryChange(known.get(path), now);
      if (now === undefined) known.delete(path);
      else known.set(path, now);
      if (change !== undefined) onChange(change);
    };
    const view = new ChildrenView<DiscoveryEntry>({
      zookeeper,
      clock: io.clock,
      path: DISCOVERY_PATH,
      follow: (path) => {
        const { kind } = parsePath(path);
        if (kind === 'folder') return 'children';
        return kind === 'foreign' || kind === 'internal' ? undefined : 'data';
      },
      decode: (path, znode) => {
        const parsed = parsePath(path);
        return 'nodeId' in parsed || 'ref' in parsed ? entryOf(path, parsed, znode) : undefined;
      },
      unreadable: (path) => known.get(path),
      onValue: settle,
      onChange: () => {
        for (const path of [...known.keys()]) if (!view.has(path)) settle(path, undefined);
      },
    });
    view.start();
    await interruption(signal);
    view.close();
  });
}

/** A change of an announcement. */
interface DiscoveryChange {
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
