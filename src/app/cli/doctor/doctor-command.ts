import { SETTLING } from '../../../core/lease/model/cluster-config.js';
import { markCluster, readCluster } from '../../../core/lease/session/cluster-store.js';
import { whileStoreIsBusy } from '../../../core/lease/session/store-retry.js';
import { type StoreSession, UNHURRIED_LISTING_MS } from '../../../core/lease/session/store-session.js';
import { type ProbeOptions, probeStore, THOROUGH } from '../../../core/store/probe/probe.js';
import { storeKindOf } from '../../../core/store/stores.js';
import { examineCamunda, isCamunda } from '../../camunda/camunda-report.js';
import { complain, sayJson, sayLines } from '../../kit/answer.js';
import { type Call, interruptible, onAllocated, onStore, reported } from '../../kit/call.js';
import { type Finding, faultOf, finding } from '../../kit/finding.js';
import { ExitCode, type Io } from '../../kit/io.js';
import { type Color, paintFor, pluralize, printable } from '../../kit/terminal/text.js';
import { clusterPart } from '../../products.js';
import type { Settings } from '../../settings/settings.js';
import { checkUp } from './cluster-checkup.js';
import {
  type CostTerms,
  clusterFindings,
  costFinding,
  costReport,
  type Diagnosis,
  type DiagnosisFacts,
  diagnosis,
  paceFindings,
  probeFindings,
  refusalFinding,
  versionsFinding,
} from './diagnosis.js';
import { examineZooKeeper, type ZooKeeperDiagnosis } from './zookeeper-diagnosis.js';

/** The options of `doctor`, as they are on the command line. */
interface DoctorOptions {
  /** Whether tasks may use the store again after an earlier probe has failed, if this one finds no fault. */
  readonly accept?: boolean;
}

/**
 * `nodelease doctor`: proves that the store keeps its conditions, looks for damage, and examines ZooKeeper
 * where that is used. It is safe next to running tasks. Its scratch objects and znodes are removed, also when
 * it is interrupted.
 */
export function doctorCommand(call: Call<DoctorOptions>): Promise<number> {
  const { options, settings, io } = call;
  const allocated = onAllocated(call)?.settings.zookeeper;
  if (allocated !== undefined) {
    const work = async (signal: AbortSignal) => {
      const zookeeper = await examineZooKeeper({ ...io, settings: allocated, allocates: true, signal });
      return showDiagnosis(diagnosis(null, [], { zookeeper }), options, io);
    };
    return reported(call, () => interruptible(io, work));
  }
  return onStore(call, (session) =>
    interruptible(io, async (signal) => {
      const { zookeeper } = settings;
      // The tests of nodelease prove the conditions of its own stores.
      const races = session.store.remote ? THOROUGH : {};
      const lookAtZooKeeper =
        zookeeper && (() => examineZooKeeper({ ...io, settings: zookeeper, allocates: false, signal }));
      const how = { ...io, ...races, ...options, signal, terms: settings };
      return showDiagnosis(await examine(session, how, lookAtZooKeeper), options, io);
    }),
  );
}

/** How a store is examined. */
interface ExamineOptions extends ProbeOptions, DoctorOptions {
  readonly terms?: (CostTerms & Pick<Settings, 'cluster'>) | undefined;
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
  const { clock, random, signal, terms = {} } = options;
  const { cloudPrices, prices } = storeKindOf(store.url) ?? {};
  const whenNotBusy = whileStoreIsBusy({ clock, random, signal });
  const findings: Finding[] = [];
  const facts: DiagnosisFacts = {};
  let versionsDays = 0;
  try {
    // As `run` begins: a wrong address, region or right is reported in the same words, before anything is
    // written.
    if (store.remote)
      await whenNotBusy(() => session.listPage(undefined, { timeoutMs: UNHURRIED_LISTING_MS, signal }));
    if (await whenNotBusy(() => isCamunda(session, signal))) {
      const { findings, status } = await whenNotBusy(() => examineCamunda(session, options));
      return diagnosis(store.url, findings, { status, zookeeper: await lookAtZooKeeper?.() });
    }
    facts.probe = await probeStore(store, options);
    findings.push(...probeFindings(facts.probe, cloudPrices !== undefined));
    for (const { id, status, detail, keptDays = 0 } of (await store.describe?.({ signal })) ?? []) {
      findings.push(finding(id, status, detail));
      versionsDays = Math.max(versionsDays, keptDays);
    }
  } catch (error) {
    findings.push(faultOf('store', error, signal));
  }
  // A store that does not answer is not asked a second time.
  if (facts.probe !== undefined) {
    try {
      facts.status = await whenNotBusy(() => checkUp(session, options));
      facts.cost = costReport(facts.status?.cluster, terms, prices);
      findings.push(...clusterFindings(facts.status, store.url, terms.cluster));
      const { cluster } = facts.status ?? {};
      // An epoch that no task has recorded yet, or one that has not settled (rule 10).
      const isNew = cluster && (await whenNotBusy(() => session.epoch())) !== cluster.epoch?.store;
      if (isNew || cluster?.epoch?.settling) findings.push(finding('epoch', 'warning', SETTLING));
      const { readPart } = await clusterPart();
      const part = cluster && (await whenNotBusy(() => readPart(session, cluster, { signal })));
      if (part) findings.push(part.finding);
      const reason = facts.status?.cluster.proofFailed;
      if (reason !== undefined) {
        const accepted = options.accept === true && facts.probe.ok && (await acceptStore(session));
        findings.push(refusalFinding(reason, facts.probe.ok, accepted));
      }
      findings.push(
        costFinding(facts.cost, cloudPrices, terms.endpoint !== undefined),
        ...(versionsDays > 0 ? [versionsFinding(facts.cost, versionsDays)] : []),
        ...paceFindings(store, facts.cost.durationMs),
      );
    } catch (error) {
      findings.push(faultOf('cluster', error, signal));
    }
  }
  signal?.throwIfAborted();
  return diagnosis(store.url, findings, { ...facts, zookeeper: await lookAtZooKeeper?.() });
}

/** Has the store used again. Resolves to false where another program changed the settings meanwhile. */
async function acceptStore(session: StoreSession): Promise<boolean> {
  const cluster = await readCluster(session);
  return cluster !== undefined && (await markCluster(session, cluster, 'proven')) !== undefined;
}

/** Shows a diagnosis, its faults once more on standard error, in one line. Returns the exit code. */
export function showDiagnosis(result: Diagnosis, { json }: Call['options'], io: Io): number {
  const { store, ok, findings, zookeeper } = result;
  const subject = `ZooKeeper at ${zookeeper?.zookeeper}`;
  const parts = [
    ...(store === null ? [] : [{ subject: store, title: `The store ${store}`, findings }]),
    ...(zookeeper ? [{ subject, title: subject, findings: zookeeper.findings }] : []),
  ];
  if (json) sayJson(io, result);
  else {
    const warnings = parts
      .flatMap(({ findings }) => findings)
      .filter(({ status }) => status === 'warning').length;
    const verdict = warnings === 0 ? 'All is well.' : `No faults, ${pluralize(warnings, 'warning')}.`;
    const lines = parts.flatMap(({ title, findings }) => [
      printable(title),
      ...findings.map(({ title, status, detail }) => {
        const label = paintFor(io.screen())(...LABELS[status]);
        return `  ${label}  ${title}${detail === '' ? '' : `: ${printable(detail)}`}`;
      }),
    ]);
    const isEmpty = store !== null && !result.cluster;
    const end = isEmpty ? `${verdict} There is no cluster at ${store} yet.` : verdict;
    sayLines(io, ok ? [...lines, printable(end)] : lines);
  }
  if (ok) return ExitCode.ok;
  const faults = parts.flatMap(({ subject, findings }) => {
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
