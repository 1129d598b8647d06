import type { RunExplanation } from '../model/merged-trace.js';
import { describeId, FIRST } from './act.js';
import type { Tenure, Violation } from './judge.js';
import type { ChaosProgress, ChaosResult } from './run-chaos.js';
import type { SlotSpec } from './slot.js';

/** Exit codes that no fault may lead to: a wrong call, an unforeseen error. */
const UNFORESEEN = [1, 64, 70, 126, 127];
/** Of a task that was asked to end. */
const TERMINATED = 143;
/** Signals that were not sent. */
const UNSENT: readonly (NodeJS.Signals | null)[] = [
  'SIGABRT',
  'SIGSEGV',
  'SIGBUS',
  'SIGILL',
  'SIGTRAP',
  'SIGPIPE',
];
/** The share of acts that may get lost before the observer counts as blind. */
const LOST_SHARE = 0.01;

/** From how many expected tenures on every sort of task is sure to have had one. */
const CONCLUSIVE_TENURES = 10;

/**
 * The least number of tenures that a run of this length has to show: for every node id, one in 2.25 expiries
 * (100 in 3 minutes as the command runs it), in a short run one in five.
 */
export function leastTenures({
  elapsedMs,
  lengthMs,
  ids,
  durationMs,
  graceMs,
}: Pick<ChaosResult, 'elapsedMs' | 'lengthMs' | 'ids' | 'durationMs' | 'graceMs'>): number {
  const share = lengthMs < 120_000 ? 5 : 2.25;
  return Math.ceil((Math.min(elapsedMs, lengthMs) * ids) / (share * (durationMs + graceMs)));
}

/** What is wrong with a run; nothing, when it passed. */
export function failuresOf(result: ChaosResult): string[] {
  const { findings, storeProblems, specs, ends, leftovers, faults, shards, late, audit } = result;
  const failures = [
    ...findings.violations.map((violation) => describeViolation(violation, result)),
    ...storeProblems,
    ...(audit && audit.code !== 0 ? [`nodelease audit, exit code ${audit.code}: ${audit.verdict}`] : []),
    ...pathFailures(result),
  ];
  const least = leastTenures(result);
  if (findings.tenures.length < least)
    failures.push(
      `only ${findings.tenures.length} tenures were seen; a run of this length has to show ${least}`,
    );
  const acted = ends.filter(({ taskId }) => taskId !== undefined).map(({ spec }) => spec);
  if (least >= CONCLUSIVE_TENURES) failures.push(...absentees(specs, acted));
  const moved = shardTenures(result);
  if (moved < 2 * shards) failures.push(`only ${moved} tenures of ${shards} shards were seen`);
  if (faults.length === 0) failures.push('no fault happened');
  if (findings.disordered > 0)
    failures.push(`${findings.disordered} acts came out of order: the observer cannot be trusted`);
  if (findings.lost > findings.acts * LOST_SHARE)
    failures.push(`${findings.lost} acts were lost: the observer was blind for too long`);
  for (const { spec, code, log } of ends)
    if (spec.spared && code !== TERMINATED)
      failures.push(`a ${describeSpec(spec)} ended with ${code}, and no fault hit it:\n${log}`);
  if (late.length > 0)
    failures.push(`not all have followed the last change of the duration: ${late.join(', ')}`);
  if (leftovers > 0) failures.push(`${leftovers} processes outlived their tasks`);
  for (const { spec, code, signal, log } of ends) {
    if (code !== null && UNFORESEEN.includes(code))
      failures.push(`a ${describeSpec(spec)} ended with exit code ${code}:\n${log}`);
    if (UNSENT.includes(signal)) failures.push(`a ${describeSpec(spec)} ended with ${signal}:\n${log}`);
  }
  return failures;
}

function pathFailures({ explanation }: ChaosResult): string[] {
  if (explanation === undefined) return [];
  const { failure, objects } = explanation;
  if (failure !== undefined) return [`no path of the model: ${failure.text}`];
  return objects === 0 ? ['no lease was traced to the end'] : [];
}

/** How many times a shard had another owner. */
function shardTenures({ findings }: ChaosResult): number {
  return findings.tenures.filter(({ nodeId }) => nodeId >= FIRST.shard && nodeId < FIRST.lock).length;
}

/** One line about a run that goes on. */
export function progressLine({ elapsedMs, lengthMs, glance, faults, ends }: ChaosProgress): string {
  const counts = count(glance.violations);
  return [
    `${clockOf(Math.min(elapsedMs, lengthMs))} of ${clockOf(lengthMs)}`,
    `${glance.tenures} tenures`,
    `${takeOvers(ends)} take-overs`,
    `${glance.acts} acts`,
    `${faults.length} faults`,
    `${counts.overlap} overlaps`,
    `${counts['repeated-version']} repeated versions`,
  ].join(' · ');
}

/** The figures of a run that has ended. */
export function summary(result: ChaosResult): string {
  const { findings, faults, ends, storeLooks, elapsedMs, lengthMs, specs } = result;
  const counts = count(findings.violations);
  const tenures = (kind: string) => findings.tenures.filter((tenure) => tenure.kind === kind).length;
  const onClock = (hours: number) =>
    ends.filter(({ spec, taskId }) => spec.clockHours === hours && taskId !== undefined).length;
  const rows: [string, string | number][] = [
    [
      'length',
      `${clockOf(Math.min(elapsedMs, lengthMs))}, ${specs.length} tasks at a time, ${result.ids} node ids, leases of ${result.durationMs} ms`,
    ],
    ['tenures', `${findings.tenures.length} (run: ${tenures('run')}, library: ${tenures('library')})`],
    ...(result.shards > 0
      ? [['shards', `${result.shards}, ${shardTenures(result)} tenures`] as [string, string]]
      : []),
    ['on wrong clocks', `${onClock(10)} tenures at +10 h, ${onClock(-10)} at -10 h`],
    ['take-overs', `${takeOvers(ends)} of expired leases`],
    ...(specs.some(({ spared }) => spared)
      ? [
          [
            'spared',
            `${specs.filter(({ spared }) => spared).length} tasks, ${sparedEnds(ends)} of them ended early`,
          ] as [string, string],
        ]
      : []),
    ['tasks', `${ends.length} ended: ${tally(ends.map(({ code, signal }) => String(signal ?? code)))}`],
    [
      'acts',
      `${findings.acts} seen, ${findings.lost} lost, ${findings.late} refused by their token (decided on before a pause)`,
    ],
    ['store', `${storeLooks} looks at lease objects`],
    ['faults', faults.length],
    ...Object.entries(tallied(faults.map(({ name }) => name))).map(([name, times]): [string, number] => [
      `  ${name}`,
      times,
    ]),
    ...(result.explanation ? [['traces', pathOf(result.explanation)] as [string, string]] : []),
    ['audit', result.audit?.verdict.trim() ?? 'the store keeps no history'],
    ['overlaps', counts.overlap],
    ['repeated versions', counts['repeated-version']],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

function pathOf({ events, objects, tasks, forced, unheard, late, leftOut, failure }: RunExplanation): string {
  const left = Object.entries(leftOut).map(([what, times]) => `, ${times} left out: ${what}`);
  const found = failure ? 'no path of the model' : 'a path of the model';
  return [
    `${found}: ${events} events of ${objects} leases, ${tasks} tasks`,
    `${unheard} writes applied and not heard of, ${late} renewals past the stop point, after a pause or a read, ${forced} forced releases of unknown age${left.join('')}`,
  ].join('; ');
}

/** How many tasks ended that no fault hit, before they were asked to. */
function sparedEnds(ends: ChaosProgress['ends']): number {
  return ends.filter(({ spec, code }) => spec.spared && code !== TERMINATED).length;
}

/** Which sort of task, or of host, never had a node id: what is said of it would rest on nothing. */
export function absentees(specs: readonly SlotSpec[], acted: readonly SlotSpec[]): string[] {
  const kinds = [...new Set(specs.map(({ kind }) => kind))].filter(
    (kind) => !acted.some((spec) => spec.kind === kind),
  );
  const clocks = [...new Set(specs.map(({ clockHours }) => clockHours))].filter(
    (hours) => !acted.some((spec) => spec.clockHours === hours),
  );
  return [
    ...kinds.map((kind) => `no ${kind} task ever acted`),
    ...clocks.map((hours) => `no task whose clock is ${hours} h off ever acted`),
  ];
}

function describeSpec({ kind, clockHours }: SlotSpec): string {
  return `${kind} task${clockHours === 0 ? '' : ` on a host ${Math.abs(clockHours)} h ${clockHours > 0 ? 'ahead' : 'behind'}`}`;
}

/** A task that held its id until the next one had waited for its lease to expire says so in its log. */
function takeOvers(ends: ChaosProgress['ends']): number {
  return ends.filter(({ from }) => from === 'expired').length;
}

function count(violations: readonly Violation[]): Record<Violation['type'], number> {
  const counts = { overlap: 0, 'repeated-version': 0 };
  for (const { type } of violations) counts[type] += 1;
  return counts;
}

/** What happened, and to whom, with what was done to the two tasks and what they said. */
function describeViolation(violation: Violation, { faults, ends }: ChaosResult): string {
  const [one, two] =
    violation.type === 'overlap' ? [violation.earlier, violation.later] : [violation.first, violation.second];
  const headline =
    violation.type === 'overlap'
      ? `overlap of ${describeId(one.nodeId)}, found by ${violation.by}, by ${violation.byMicros} µs`
      : `version ${one.version} of ${describeId(one.nodeId)} was used twice`;
  const lines = [headline];
  for (const tenure of [one, two]) {
    lines.push(`  ${describeTenure(tenure)}`);
    for (const { name, at, lengthMs, taskId } of faults)
      if (taskId === tenure.taskId) lines.push(`    ${at} ${name}, ${lengthMs} ms`);
    for (const { taskId, log } of ends)
      if (taskId === tenure.taskId) lines.push(...log.split('\n').map((line) => `    ${line}`));
  }
  return lines.join('\n');
}

function describeTenure({ version, taskId, kind, acts, believedBy, believedUntil }: Tenure): string {
  return `version ${version}, task ${taskId} (${kind}), ${acts} acts, from ${believedBy} to ${believedUntil}`;
}

function tallied(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function tally(names: readonly string[]): string {
  return Object.entries(tallied(names))
    .map(([name, times]) => `${name} × ${times}`)
    .join(', ');
}

/** Milliseconds as minutes and seconds: 2:05. */
function clockOf(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
