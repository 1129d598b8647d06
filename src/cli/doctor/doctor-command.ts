import { explain, NodeLeaseError } from '../../base/errors.js';
import { markCluster, readCluster } from '../../lease/session/cluster-store.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../../lease/session/store-session.js';
import type { Settings } from '../../settings/settings.js';
import type { LeaseStore } from '../../store/lease-store.js';
import { type ProbeOptions, type ProbeReport, probeStore, THOROUGH } from '../../store/probe/probe.js';
import { complain, interruptible, onStore, reported, sayJson, sayLines } from '../commands/store-command.js';
import { allocatedSettings } from '../commands/zookeeper-command.js';
import { ExitCode } from '../exit-codes.js';
import { type Color, paintFor } from '../terminal/color.js';
import type { Io } from '../terminal/io.js';
import { pluralize, printable } from '../terminal/text.js';
import { type ClusterCheckup, checkUp } from './cluster-checkup.js';
import { type CostReport, type CostTerms, costFinding, costReport, parsePrices } from './cost-finding.js';
import {
  type AllocatedDiagnosis,
  allocatedDiagnosis,
  clusterFindings,
  type Diagnosis,
  diagnosis,
  probeFindings,
  refusalFinding,
} from './diagnosis.js';
import type { Finding } from './finding.js';
import { examineZooKeeper, type ZooKeeperDiagnosis } from './zookeeper-diagnosis.js';

/** The options of `doctor`, as they stand on the command line. */
export interface DoctorOptions {
  readonly json?: boolean;
  /** Whether tasks may use the store again after an earlier probe has failed, if this one finds no fault. */
  readonly accept?: boolean;
  readonly putPrice?: string;
  readonly getPrice?: string;
}

/**
 * `nodelease doctor`: proves that the store keeps its conditions, looks for damage, and examines ZooKeeper where that is used. It is safe beside
 * running tasks. Its scratch objects and znodes are removed, also when it is interrupted. Resolves to the exit code.
 */
export function doctorCommand(options: DoctorOptions, settings: Settings, io: Io): Promise<number> {
  const prices = parsePrices(options.putPrice, options.getPrice);
  const allocated = allocatedSettings(settings);
  if (allocated !== undefined) {
    const work = async (signal: AbortSignal) => {
      const zookeeper = await examineZooKeeper(allocated.zookeeper, true, io, signal);
      return showDiagnosis(allocatedDiagnosis(zookeeper), options, io);
    };
    return reported(settings, io, () => interruptible(io, work));
  }
  return onStore(settings, io, (session) =>
    interruptible(io, async (signal) => {
      const { zookeeper, nodes, durationMs, settingsIntervalMs, endpoint } = settings;
      const terms = { nodes, durationMs, settingsIntervalMs, endpoint, prices };
      // The tests of nodelease prove the conditions of its own stores.
      const races = session.store.remote ? THOROUGH : {};
      const lookAtZooKeeper = zookeeper && (() => examineZooKeeper(zookeeper, false, io, signal));
      const result = await examine(session, { ...io, ...races, signal, terms, accept: options.accept }, lookAtZooKeeper);
      return showDiagnosis(result, options, io);
    }),
  );
}

/** How a store is examined. */
export interface ExamineOptions extends ProbeOptions {
  /** See {@link DoctorOptions}. */
  readonly accept?: boolean | undefined;
  readonly terms?: CostTerms | undefined;
}

/**
 * Examines a store, and ZooKeeper where there is discovery. Their failures are findings, too.
 *
 * @throws `options.signal.reason` when it aborts
 */
export async function examine(
  session: StoreSession,
  options: ExamineOptions,
  lookAtZooKeeper?: () => Promise<ZooKeeperDiagnosis>,
): Promise<Diagnosis> {
  const { store } = session;
  const { signal, terms } = options;
  const findings: Finding[] = [];
  let probe: ProbeReport | undefined;
  let status: ClusterCheckup | undefined;
  let cost: CostReport | undefined;
  try {
    // As `run` begins: a wrong address, region or right is reported in the same words, before anything is written.
    if (store.remote) await session.listPage(undefined, { timeoutMs: UNHURRIED_LISTING_MS, ...(signal && { signal }) });
    probe = await probeStore(store, options);
    findings.push(...probeFindings(probe));
  } catch (error) {
    findings.push(failure('store', error, signal));
  }
  // A store that does not answer is not asked a second time.
  if (probe !== undefined) {
    try {
      status = await checkUp(session, options);
      cost = costReport(status?.cluster, terms);
      findings.push(...clusterFindings(status));
      const reason = status?.cluster.proofFailed;
      if (reason !== undefined) {
        const accepted = options.accept === true && probe.ok && (await acceptStore(session));
        findings.push(refusalFinding(reason, probe.ok, accepted));
      }
      findings.push(costFinding(cost, isPaid(store, terms)));
    } catch (error) {
      findings.push(failure('cluster', error, signal));
    }
  }
  signal?.throwIfAborted();
  return diagnosis(store.url, findings, { probe, status, cost, zookeeper: await lookAtZooKeeper?.() });
}

/** Has the store used again. Resolves to false where another program changed the settings meanwhile. */
async function acceptStore(session: StoreSession): Promise<boolean> {
  const cluster = await readCluster(session);
  return cluster !== undefined && (await markCluster(session, cluster, 'proven')) !== undefined;
}

/** Whether the prices apply: the default ones are those of S3, and not those of another server. */
function isPaid({ remote }: LeaseStore, { endpoint, prices }: CostTerms = {}): boolean {
  return remote && (endpoint === undefined || prices !== undefined);
}

function failure(id: 'store' | 'cluster', error: unknown, signal: AbortSignal | undefined): Finding {
  signal?.throwIfAborted();
  if (!(error instanceof NodeLeaseError)) throw error;
  return { id, title: id, status: 'fault', detail: explain(error) };
}

/** Shows a diagnosis, its faults once more on standard error, in one line. Returns the exit code. */
export function showDiagnosis(result: Diagnosis | AllocatedDiagnosis, { json = false }: DoctorOptions, io: Io): number {
  const { store, ok, zookeeper } = result;
  const parts: readonly (readonly [subject: string, findings: readonly Finding[]])[] = [
    ...(store === null ? [] : [[store, result.findings] as const]),
    ...(zookeeper === null ? [] : [[`ZooKeeper at ${zookeeper.zookeeper}`, zookeeper.findings] as const]),
  ];
  if (json) sayJson(io, result);
  else {
    const warnings = parts.flatMap(([, findings]) => findings).filter(({ status }) => status === 'warning').length;
    const verdict = warnings === 0 ? 'All is well.' : `No faults, ${pluralize(warnings, 'warning')}.`;
    const lines = parts.flatMap(([subject, findings]) => [
      printable(subject === store ? `The store ${subject}` : subject),
      ...findings.map((finding) => findingLine(finding, io)),
    ]);
    sayLines(io, ok ? [...lines, verdict] : lines);
  }
  if (ok) return ExitCode.ok;
  const faults = parts.flatMap(([subject, findings]) => {
    const texts = findings
      .filter(({ status }) => status === 'fault')
      .map(({ id, title, detail }) => (id === 'zookeeper-server' ? `${title}: ${detail}` : detail));
    return texts.length === 0 ? [] : [`${subject}: ${pluralize(texts.length, 'fault')}: ${texts.join('; ')}`];
  });
  complain(io, faults.join('; '));
  return ExitCode.storeUnusable;
}

const LABELS: Readonly<Record<Finding['status'], readonly [text: string, color: Color]>> = {
  ok: ['ok   ', 'green'],
  warning: ['warn ', 'yellow'],
  fault: ['FAULT', 'red'],
};

function findingLine({ title, status, detail }: Finding, io: Io): string {
  const label = paintFor(io.screen())(...LABELS[status]);
  return `  ${label}  ${title}${detail === '' ? '' : `: ${printable(detail)}`}`;
}
