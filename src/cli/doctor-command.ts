import type { Settings } from '../config.js';
import { explain, NodeLeaseError } from '../errors.js';
import { type ClusterStatus, inspectCluster } from '../lease/inspect.js';
import type { StoreSession } from '../lease/store-session.js';
import { type ProbeOptions, type ProbeReport, probeStore } from '../store/probe.js';
import { clusterFindings, type Diagnosis, diagnosis, type Finding, probeFindings } from './diagnosis.js';
import { ExitCode } from './exit-codes.js';
import { type Paint, paintFor, printable } from './ink.js';
import type { Io } from './io.js';
import { SignalRelay } from './signal-relay.js';
import { complain, onStore } from './store-command.js';

/** How `doctor` shows what it finds. */
export interface DoctorOptions {
  readonly json: boolean;
}

/**
 * `nodelease doctor`: proves that the store keeps its conditions, and looks for damage. Safe beside running tasks; its scratch objects are
 * removed, also when it is interrupted. Resolves to the exit code.
 */
export function doctorCommand(options: DoctorOptions, settings: Settings, io: Io): Promise<number> {
  return onStore(settings, io, async (session) => {
    const signals = new SignalRelay(io.signals);
    try {
      return showDiagnosis(await examine(session, { ...io, signal: signals.interrupted }), options, io);
    } finally {
      signals.close();
    }
  });
}

/**
 * Examines a store. What it finds, the failures of the store included, are findings.
 *
 * @throws `options.signal.reason` when it aborts
 */
export async function examine(session: StoreSession, options: ProbeOptions): Promise<Diagnosis> {
  const { store } = session;
  const findings: Finding[] = [];
  let probe: ProbeReport | undefined;
  let status: ClusterStatus | undefined;
  try {
    probe = await probeStore(store, options);
    findings.push(...probeFindings(probe));
  } catch (error) {
    findings.push(failure('store', 'store', error, options.signal));
  }
  // Who cannot be reached once need not be waited for a second time.
  if (probe !== undefined) {
    try {
      status = await inspectCluster(session);
      findings.push(...clusterFindings(status));
    } catch (error) {
      findings.push(failure('cluster', 'cluster', error, options.signal));
    }
  }
  options.signal?.throwIfAborted();
  return diagnosis(store.url, findings, { probe, status });
}

function failure(id: string, title: string, error: unknown, signal: AbortSignal | undefined): Finding {
  signal?.throwIfAborted();
  if (!(error instanceof NodeLeaseError)) throw error;
  return { id, title, status: 'fault', detail: explain(error) };
}

/** Shows a diagnosis. Returns the exit code; the faults stand on standard error, too, in one line. */
export function showDiagnosis(result: Diagnosis, { json }: DoctorOptions, io: Io): number {
  if (json) io.stdout(`${JSON.stringify(result)}\n`);
  else {
    const paint = paintFor(io.screen()?.color ?? false);
    io.stdout(`The store ${printable(result.store)}\n`);
    for (const finding of result.findings) io.stdout(`${findingLine(finding, paint)}\n`);
    const warnings = result.findings.filter(({ status }) => status === 'warning').length;
    if (result.ok) io.stdout(warnings === 0 ? 'All is well.\n' : `No faults, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}.\n`);
  }
  if (result.ok) return ExitCode.ok;
  const faults = result.findings.filter(({ status }) => status === 'fault').map(({ detail }) => detail);
  complain(io, `${result.store}: ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}: ${faults.join('; ')}`);
  return ExitCode.storeUnusable;
}

function findingLine({ title, status, detail }: Finding, paint: Paint): string {
  const label = { ok: paint('ok   ', 'green'), warning: paint('warn ', 'yellow'), fault: paint('FAULT', 'red') }[status];
  return `  ${label}  ${title}${detail === '' ? '' : `: ${printable(detail)}`}`;
}
