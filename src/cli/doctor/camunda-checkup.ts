import { CAMUNDA_MARKER } from '../../lease/model/camunda-codec.js';
import { CLUSTER_KEY } from '../../lease/model/cluster-config.js';
import { findCamunda } from '../../lease/model/foreign-cluster.js';
import type { NodeStatus } from '../../lease/operate/inspect.js';
import type { StoreSession } from '../../lease/session/store-session.js';
import { ClusterReader, type ClusterScan } from '../../monitor/cluster-reader.js';
import { damageOf, totalsOf } from '../../monitor/listed-cluster.js';
import type { ListingPage } from '../../store/lease-store.js';
import type { ProbeOptions, ProbeStatus } from '../../store/probe/probe.js';
import { formatSetting, pluralize, someOf } from '../terminal/text.js';
import type { ClusterCheckup } from './cluster-checkup.js';
import { clockFinding, type Finding, finding } from './diagnosis.js';

/** The longest pause between two looks, in milliseconds: a lease of 30 s is renewed in it. */
const MAX_PAUSE_MS = 11_000;
/** What a lease is taken to last where that cannot be told, in milliseconds: the most that Camunda recommends. */
const LEASE_MS = 15_000;

/**
 * Whether a store holds a cluster of Camunda 8. For one of nodelease it makes a request at most.
 *
 * @param page the first one of the store's listing, where that is known
 * @throws {StoreError}
 */
export async function isCamundas(session: StoreSession, page: ListingPage | undefined, signal?: AbortSignal): Promise<boolean> {
  if (page?.objects.some(({ key }) => key === CLUSTER_KEY)) return false;
  const isWhole = page?.more === false;
  if (!isWhole && (await session.read(CLUSTER_KEY, { signal })) !== undefined) return false;
  const { objects } = isWhole ? page : await session.list({ signal });
  return (await findCamunda(session, objects, { signal })) !== undefined;
}

/** Looks at a cluster of Camunda 8, twice where a lease has expired. Nothing is written. @throws {StoreError} or `signal.reason` */
export async function examineCamunda(
  session: StoreSession,
  { clock, signal = new AbortController().signal }: Pick<ProbeOptions, 'clock' | 'signal'>,
): Promise<{ readonly findings: readonly Finding[]; readonly status: ClusterCheckup | undefined }> {
  const reader = new ClusterReader(session, clock);
  const scan = await reader.scan(signal);
  const { hints, nodes, camunda } = scan;
  const expired = nodes.filter(({ state }) => state === 'expired');
  let renewed: readonly NodeStatus[] = [];
  if (hints !== undefined && expired.length > 0) {
    await clock.sleep(Math.min((hints.cluster.durationMs || LEASE_MS) / 3 + session.store.timeStepMs, MAX_PAUSE_MS), signal);
    const now = new Map((await reader.scan(signal)).nodes.map((node) => [node.id, node]));
    renewed = expired.filter((was) => isRenewal(was, now.get(was.id)));
  }
  const { more } = await session.listPage(undefined, { signal, folders: true });
  const { min, max } = session.storeNow();
  const clockOffset = { min: min - clock.now(), max: max - clock.now() };
  const findings = [
    finding('format', 'format', 'ok', 'Camunda 8: its cluster is looked at, and nothing is written, tried out or repaired'),
    clockFinding(clockOffset),
    ...clusterFindings(scan, more),
    ...renewed.map(renewedFinding),
    ...(camunda?.restores ?? []).map(({ restoreId, restoredNodes, problem }) =>
      finding(
        'restore',
        `restore ${restoreId}`,
        problem === null ? 'ok' : 'fault',
        problem ?? `node ids restored: ${restoredNodes.join(', ') || 'none'}`,
      ),
    ),
  ];
  const status = hints && { cluster: hints.cluster, nodes, totals: totalsOf(nodes, hints), foreign: undefined };
  return { findings, status };
}

function isRenewal(was: NodeStatus, now: NodeStatus | undefined): boolean {
  return now?.taskId === was.taskId && now?.version === was.version && now.timestamp !== was.timestamp;
}

function renewedFinding({ id, taskId }: NodeStatus): Finding {
  const why = 'the clock of its host is behind by most of the lease duration, or more';
  const detail = `node id ${id}: ${taskId} renews its lease after it has expired, so that another task may take it meanwhile: ${why}`;
  return finding('renewed-late', 'renewals', 'fault', detail);
}

function clusterFindings({ nodes, hints }: ClusterScan, hasMoreKeys: boolean): Finding[] {
  if (hints === undefined) return [];
  const { cluster, rows } = hints;
  const found = (id: string, title: string, status: ProbeStatus, detail: string) => finding(id, title, status, detail);
  const held = nodes.filter(({ state }) => state === 'held').length;
  const lasting = cluster.durationMs > 0 ? `; leases of about ${formatSetting(cluster.durationMs)}, as the holders’ times tell` : '';
  const findings = [found('cluster', 'cluster', 'ok', `${pluralize(rows.size, 'node id')}, ${held} of them held${lasting}`)];
  if (!cluster.bootstrapped) {
    const missing = `${CAMUNDA_MARKER} is missing: the next broker that starts creates the node ids anew that are absent`;
    findings.push(found('marker', 'marker', 'warning', missing));
  }
  const gaps = nodes.filter(({ state }) => state === 'absent').map(({ id }) => String(id));
  if (gaps.length > 0) {
    const counted = nodes.filter(({ state, camunda }) => state !== 'absent' && camunda?.acquirable !== false);
    const beyond = counted.filter(({ id }) => id >= counted.length).map(({ id }) => String(id));
    const tried = `Camunda counts ${counted.length} and tries 0 to ${counted.length - 1}`;
    const lost = beyond.length > 0 ? `${tried}, so that node id ${someOf(beyond)} is never taken` : tried;
    findings.push(found('gaps', 'gaps', cluster.bootstrapped ? 'fault' : 'warning', `node id ${someOf(gaps)} has no object: ${lost}`));
  }
  const damage = damageOf({ cluster, nodes: nodes.filter(({ state }) => state !== 'absent') });
  findings.push(
    ...damage.map(({ id, problem }) =>
      found('lease-objects', 'lease objects', 'fault', `node id ${id}: ${problem}: Camunda cannot read it`),
    ),
  );
  if (damage.length === 0) findings.push(found('lease-objects', 'lease objects', 'ok', 'Camunda can read all of them'));
  for (const { id, taskId, camunda } of nodes) {
    if (camunda?.warning) findings.push(found('holders', 'holders', 'warning', `node id ${id} (${taskId}): ${camunda.warning}`));
  }
  if (hasMoreKeys) {
    const harm = 'Camunda counts its node ids on the first page of a listing, of 1,000 keys, and may find too few';
    findings.push(found('keys', 'keys', 'warning', `there are more than 1,000 keys in the bucket: ${harm}`));
  }
  return findings;
}
