import type { Settings } from '../config.js';
import { ConfigError, explain, NodeLeaseError } from '../errors.js';
import { markCluster, readCluster } from '../lease/cluster-store.js';
import type { RequestPrices } from '../lease/renewal-cost.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../lease/store-session.js';
import type { LeaseStore } from '../store/lease-store.js';
import { type ProbeOptions, type ProbeReport, probeStore, THOROUGH } from '../store/probe.js';
import { type AllocatedDiagnosis, allocatedDiagnosis } from './allocated-diagnosis.js';
import { type AllocatedSettings, allocatedSettings } from './allocated-settings.js';
import { type ClusterCheckup, checkUp } from './cluster-checkup.js';
import { type Paint, paintFor } from './color.js';
import { type CostReport, type CostTerms, costFinding, costReport } from './cost-finding.js';
import { clusterFindings, type Diagnosis, diagnosis, type Finding, probeFindings, refusalFinding } from './diagnosis.js';
import { ExitCode, exitCodeOfSignal } from './exit-codes.js';
import type { Io } from './io.js';
import { Interrupted, SignalRelay } from './signal-relay.js';
import { complain, onStore, reportFailure } from './store-command.js';
import { pluralize, printable } from './text.js';
import { examineZooKeeper, type ZooKeeperDiagnosis } from './zookeeper-diagnosis.js';

/** How `doctor` shows what it finds. */
export interface DoctorOptions {
  readonly json: boolean;
  /** Whether a store that an earlier probe has found wanting is to be used again if no fault is found. @default false */
  readonly accept?: boolean;
  /** What requests cost, where somebody says so. */
  readonly prices?: RequestPrices | undefined;
}

/**
 * `nodelease doctor`: proves that the store keeps its conditions, looks for damage, and examines ZooKeeper where that is used. Safe beside
 * running tasks; its scratch objects and znodes are removed, also when it is interrupted. Resolves to the exit code.
 */
export function doctorCommand(options: DoctorOptions, settings: Settings, io: Io): Promise<number> {
  const allocated = allocatedSettings(settings);
  if (allocated !== undefined) return diagnoseAllocated(options, allocated, io);
  return onStore(settings, io, async (session) => {
    const signals = new SignalRelay(io.signals);
    try {
      const signal = signals.interrupted;
      const { zookeeper: discovery } = settings;
      const look = discovery && (() => examineZooKeeper(discovery, false, io, signal));
      const { nodes, durationMs, settingsIntervalMs, endpoint } = settings;
      const terms = { nodes, durationMs, settingsIntervalMs, endpoint, prices: options.prices };
      // Conditions of a store of our own are tested elsewhere.
      const races = session.store.remote ? THOROUGH : {};
      return showDiagnosis(await examine(session, { ...io, ...races, signal, terms, accept: options.accept }, look), options, io);
    } finally {
      signals.close();
    }
  });
}

/** The same where node ids come from ZooKeeper alone: there is no store to be opened. */
async function diagnoseAllocated(options: DoctorOptions, settings: AllocatedSettings, io: Io): Promise<number> {
  io.onWarning((warning) => complain(io, `warning: ${explain(warning)}`));
  const signals = new SignalRelay(io.signals);
  try {
    return showDiagnosis(allocatedDiagnosis(await examineZooKeeper(settings.zookeeper, true, io, signals.interrupted)), options, io);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (error instanceof Interrupted) return exitCodeOfSignal(error.signal);
    return reportFailure(error, settings, io);
  } finally {
    signals.close();
  }
}

/** How a store is examined. */
export interface ExamineOptions extends ProbeOptions {
  /** See {@link DoctorOptions}. */
  readonly accept?: boolean | undefined;
  readonly terms?: CostTerms | undefined;
}

/**
 * Examines a store, and ZooKeeper where there is discovery. What it finds, their failures included, are findings.
 *
 * @throws `options.signal.reason` when it aborts
 */
export async function examine(
  session: StoreSession,
  options: ExamineOptions,
  lookAtZooKeeper?: () => Promise<ZooKeeperDiagnosis>,
): Promise<Diagnosis> {
  const { store } = session;
  const findings: Finding[] = [];
  let probe: ProbeReport | undefined;
  let status: ClusterCheckup | undefined;
  let cost: CostReport | undefined;
  try {
    // As `run` begins: what is wrong with the address, the region or the rights is said in the same words, and nothing has been written.
    if (store.remote)
      await session.listPage(undefined, { timeoutMs: UNHURRIED_LISTING_MS, ...(options.signal && { signal: options.signal }) });
    probe = await probeStore(store, options);
    findings.push(...probeFindings(probe));
  } catch (error) {
    findings.push(failure('store', 'store', error, options.signal));
  }
  // Who cannot be reached once need not be waited for a second time.
  if (probe !== undefined) {
    try {
      status = await checkUp(session, options);
      cost = costReport(status?.cluster, options.terms);
      findings.push(...clusterFindings(status));
      const reason = status?.cluster.proofFailed;
      if (reason !== undefined) {
        const accepted = options.accept === true && probe.ok && (await acceptStore(session));
        findings.push(refusalFinding(reason, probe.ok, accepted));
      }
      findings.push(costFinding(cost, isPaid(store, options.terms)));
    } catch (error) {
      findings.push(failure('cluster', 'cluster', error, options.signal));
    }
  }
  options.signal?.throwIfAborted();
  return diagnosis(store.url, findings, { probe, status, cost, zookeeper: await lookAtZooKeeper?.() });
}

/** Has the store used again, whatever an earlier probe found. Resolves to false where somebody else changed the settings meanwhile. */
async function acceptStore(session: StoreSession): Promise<boolean> {
  const cluster = await readCluster(session);
  return cluster !== undefined && (await markCluster(session, cluster, 'proven')) !== undefined;
}

/** At the prices that are named: those of S3 say nothing of what another server at an endpoint of its own costs. */
function isPaid({ remote }: LeaseStore, { endpoint, prices }: CostTerms = {}): boolean {
  return remote && (endpoint === undefined || prices !== undefined);
}

function failure(id: string, title: string, error: unknown, signal: AbortSignal | undefined): Finding {
  signal?.throwIfAborted();
  if (!(error instanceof NodeLeaseError)) throw error;
  return { id, title, status: 'fault', detail: explain(error) };
}

/** Shows a diagnosis. Returns the exit code; the faults stand on standard error, too, in one line. */
export function showDiagnosis(result: Diagnosis | AllocatedDiagnosis, { json }: DoctorOptions, io: Io): number {
  const { zookeeper } = result;
  if (json) io.stdout(`${JSON.stringify(result)}\n`);
  else {
    const paint = paintFor(io.screen()?.color ?? false);
    if (result.store !== null) io.stdout(`The store ${printable(result.store)}\n`);
    for (const finding of result.findings) io.stdout(`${findingLine(finding, paint)}\n`);
    if (zookeeper !== null) io.stdout(`ZooKeeper at ${printable(zookeeper.zookeeper)}\n`);
    for (const finding of zookeeper?.findings ?? []) io.stdout(`${findingLine(finding, paint)}\n`);
    const warnings = [...result.findings, ...(zookeeper?.findings ?? [])].filter(({ status }) => status === 'warning').length;
    if (result.ok) io.stdout(warnings === 0 ? 'All is well.\n' : `No faults, ${pluralize(warnings, 'warning')}.\n`);
  }
  if (result.ok) return ExitCode.ok;
  const faults = [
    result.store === null ? '' : faultsOf(result.store, result.findings),
    zookeeper === null ? '' : faultsOf(`ZooKeeper at ${zookeeper.zookeeper}`, zookeeper.findings),
  ];
  complain(io, faults.filter((text) => text !== '').join('; '));
  return ExitCode.storeUnusable;
}

/** Empty where there are none. */
function faultsOf(subject: string, findings: readonly Finding[]): string {
  const faults = findings.filter(({ status }) => status === 'fault');
  const texts = faults.map(({ id, title, detail }) => (id === 'zookeeper-server' ? `${title}: ${detail}` : detail));
  return faults.length === 0 ? '' : `${subject}: ${pluralize(faults.length, 'fault')}: ${texts.join('; ')}`;
}

function findingLine({ title, status, detail }: Finding, paint: Paint): string {
  const label = { ok: paint('ok   ', 'green'), warning: paint('warn ', 'yellow'), fault: paint('FAULT', 'red') }[status];
  return `  ${label}  ${title}${detail === '' ? '' : `: ${printable(detail)}`}`;
}
