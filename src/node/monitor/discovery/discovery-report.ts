import { objectIn } from '../../../core/base/fields.js';
import type { Assignment } from '../../../zookeeper/discovery/assignment.js';
import type { DiscoveryReport, EntryReport } from '../../wire/tree-report.js';
import { type DiscoveryEntry, type DiscoverySnapshot, nodeIdOfRef } from './discovery-snapshot.js';

/** The report on a part of the tree, or on its absence. */
export function discoveryReport(
  zookeeper: string,
  path: string,
  snapshot: DiscoverySnapshot | undefined,
): DiscoveryReport {
  const nodes: (EntryReport & { clusterNodeId: number })[] = [];
  const services = new Map<string, EntryReport[]>();
  const endpoints = new Map<string, Map<string, (EntryReport & { ref: string })[]>>();
  const nodesOf = (service: string) => ensure(services, service, []);
  const keysOf = (endpoint: string) => ensure(endpoints, endpoint, new Map());
  const refsOf = (endpoint: string, key: string) => ensure(keysOf(endpoint), key, []);
  // Folders first: services without any node are listed, too.
  for (const folder of snapshot?.emptyFolders ?? []) {
    const [, , branch, first, second] = folder.split('/');
    if (first === undefined) continue;
    if (branch === 'servicetypes') nodesOf(first);
    if (branch === 'endpoints' && second === undefined) keysOf(first);
    if (branch === 'endpoints' && second !== undefined) refsOf(first, second);
  }
  for (const entry of snapshot?.entries ?? []) {
    const { parsed } = entry;
    const report = entryReport(entry);
    if (parsed.kind === 'node') nodes.push({ clusterNodeId: parsed.clusterNodeId, ...report });
    else if (parsed.kind === 'service') nodesOf(parsed.service).push(report);
    else refsOf(parsed.endpoint, parsed.key).push({ ref: parsed.ref, ...report });
  }
  return {
    zookeeper,
    path,
    exists: snapshot !== undefined,
    nodes,
    services: sorted(services).map(([service, members]) => ({ service, nodes: members })),
    endpoints: sorted(endpoints).map(([endpoint, keys]) => ({
      endpoint,
      keys: sorted(keys).map(([key, refs]) => ({ key, refs })),
    })),
    foreign: snapshot?.foreign ?? [],
  };
}

/** The report on one announcement. */
export function entryReport({
  path,
  parsed,
  assignment,
  text,
  sessionId,
  problem,
}: DiscoveryEntry): EntryReport {
  const { service, address, port }: Partial<Assignment> = assignment ?? {};
  const byName = parsed.kind === 'node' ? parsed.nodeId : nodeIdOfRef(parsed.ref);
  return {
    path,
    nodeId: byName ?? assignment?.nodeId ?? null,
    version: assignment?.version ?? null,
    taskId: assignment?.taskId ?? null,
    service: typeof service === 'string' ? service : parsed.kind === 'service' ? parsed.service : null,
    address: typeof address === 'string' ? address : null,
    port: typeof port === 'number' ? port : null,
    sessionId: sessionId ?? null,
    data: assignment ?? objectIn(text ?? '') ?? null,
    problem: problem ?? null,
  };
}

function ensure<K, V>(map: Map<K, V>, key: K, fresh: V): V {
  const value = map.get(key) ?? fresh;
  map.set(key, value);
  return value;
}

function sorted<V>(map: ReadonlyMap<string, V>): [string, V][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}
