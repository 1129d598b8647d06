import { CAMUNDA_MARKER } from '../../core/lease/camunda/camunda-format.js';
import { CLUSTER_KEY } from '../../core/lease/model/cluster-config.js';
import { findForeign } from '../../core/lease/model/foreign-cluster.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../../core/lease/session/store-session.js';
import type { ProbeOptions } from '../../core/store/probe/probe.js';
import { ClusterReader } from '../../node/monitor/cluster-reader.js';
import { damageOf, type PagedCluster, totalsOf } from '../../node/monitor/listed-cluster.js';
import { type RestoreReport, warningOf } from '../../node/wire/status-report.js';
import { clockFinding, type Finding, finding } from '../kit/finding.js';
import { formatSetting, pluralize, someOf } from '../kit/terminal/text.js';

/**
 * The pause between two looks, in milliseconds: a lease of 30 s is renewed in it, and Camunda recommends 5 to
 * 15 s.
 */
const PAUSE_MS = 11_000;

type Examined = Pick<PagedCluster, 'cluster' | 'nodes' | 'totals'>;

/**
 * Whether the cluster in a store is one of Camunda 8. For a cluster of nodelease it takes a read.
 * @throws {StoreError}
 */
export async function isCamunda(session: StoreSession, signal?: AbortSignal): Promise<boolean> {
  if ((await session.read(CLUSTER_KEY, { signal })) !== undefined) return false;
  const timeoutMs = Math.max(UNHURRIED_LISTING_MS, session.listTimeoutMs);
  const { objects } = await session.list({ signal, timeoutMs });
  return (await findForeign(session, objects, { signal })) !== undefined;
}

/**
 * Looks at a cluster of Camunda 8, twice where a lease has expired. Nothing is written.
 * @throws {StoreError} or `signal.reason`
 */
export async function examineCamunda(
  session: StoreSession,
  { clock, signal }: Pick<ProbeOptions, 'clock' | 'signal'>,
): Promise<{ readonly findings: readonly Finding[]; readonly status?: Examined }> {
  const reader = new ClusterReader(session, clock);
  const { hints, nodes, foreign, clockOffsetMs } = await reader.scan(signal);
  if (hints === undefined) return { findings: [] };
  const expired = nodes.filter(({ state }) => state === 'expired');
  if (expired.length > 0) await clock.sleep(PAUSE_MS, signal);
  const later = expired.length > 0 ? (await reader.scan(signal)).nodes : [];
  const [min, max] = clockOffsetMs ?? [Number.NaN, Number.NaN];
  const status = { cluster: hints.cluster, nodes, totals: totalsOf(nodes, hints) };
  const findings = [
    finding(
      'format',
      'ok',
      'Camunda 8: its cluster is looked at, and nothing is written, tried out or repaired',
    ),
    clockFinding({ min, max }),
    ...clusterFindings(status),
    ...expired
      .filter(({ id, taskId, version, timestamp }) => {
        const now = later[id];
        return now?.taskId === taskId && now?.version === version && now.timestamp !== timestamp;
      })
      .map(renewedFinding),
    ...(foreign?.restores ?? []).map((restore) =>
      finding(
        'restore',
        restore.problem === null ? 'ok' : 'fault',
        restoredText(restore),
        `restore ${restore.restoreId}`,
      ),
    ),
  ];
  return { findings, status };
}

function renewedFinding({ id, taskId }: NodeStatus): Finding {
  const detail = `node id ${id}: ${taskId} renews its lease after it has expired, so that another task may take it meanwhile: the clock of its host is behind by most of the lease duration, or more`;
  return finding('renewed-late', 'fault', detail, 'renewals');
}

function clusterFindings(status: Examined): Finding[] {
  const { cluster, nodes, totals } = status;
  const lasting =
    cluster.durationMs > 0
      ? `; leases of about ${formatSetting(cluster.durationMs)}, as the holders’ times tell`
      : '';
  const present = nodes.filter(({ state }) => state !== 'absent');
  const findings: Finding[] = [];
  const found = (...of: Parameters<typeof finding>) => findings.push(finding(...of));
  found('cluster', 'ok', `${pluralize(present.length, 'node id')}, ${totals.held} of them held${lasting}`);
  if (!cluster.bootstrapped)
    found(
      'marker',
      'warning',
      `${CAMUNDA_MARKER} is missing: the next broker that starts creates the node ids again that are absent`,
    );
  if (present.length === 0 && cluster.bootstrapped) {
    const harm = `${CAMUNDA_MARKER} says that all node ids have been created, so that no broker creates one, and none can start`;
    found('gaps', 'fault', `no node id has an object: ${harm}`);
  }
  if (present.length < nodes.length) {
    const gaps = someOf(nodes.filter(({ state }) => state === 'absent').map(({ id }) => String(id)));
    const harm =
      'Camunda tries as many node ids from 0 on as there are objects, so that the highest ones are never taken';
    found('gaps', cluster.bootstrapped ? 'fault' : 'warning', `node id ${gaps} has no object: ${harm}`);
  }
  const damage = damageOf({ cluster, nodes: present });
  for (const { id, problem } of damage)
    found('lease-objects', 'fault', `node id ${id}: ${problem}: Camunda cannot read it`);
  if (damage.length === 0) found('lease-objects', 'ok', 'Camunda can read all of them');
  for (const { id, taskId, foreign } of nodes) {
    const warning = warningOf(foreign);
    if (warning) found('holders', 'warning', `node id ${id} (${taskId}): ${warning}`);
  }
  return findings;
}

/** What became of a restore. */
export function restoredText({ restoredNodes, problem }: RestoreReport): string {
  return problem ?? `node ids restored: ${restoredNodes.join(', ') || 'none'}`;
}
