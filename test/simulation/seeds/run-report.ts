import { renderTable } from '../../../src/app/kit/answer.js';
import { formatSetting } from '../../../src/app/kit/terminal/text.js';
import { digest } from '../checks/history-digest.js';
import { RECIPES } from '../engines.js';
import type { ShrunkViolation } from './seed-messages.js';
import type { RunResult } from './seed-pool.js';
import { DEFAULT_SIZE, type PlantChoice, type SimulateOptions } from './simulate-options.js';

/** Everything that there is to say about a run. */
export interface RunReport {
  readonly options: SimulateOptions;
  readonly plant: PlantChoice | undefined;
  readonly result: RunResult;
  readonly shrunk: ShrunkViolation | undefined;
  /** True when somebody ended the run before it was over. */
  readonly interrupted: boolean;
}

/** What is going to be run. */
export function header(
  { seeds, maxMs, from, size, jobs, engine, only }: SimulateOptions,
  plant: PlantChoice | undefined,
): string {
  const amount = maxMs === undefined ? counted(seeds, 'seed') : `seeds for ${maxMs / 1_000} s`;
  const parts = [
    `${amount} from ${from}`,
    ...(engine === RECIPES ? [] : [`${size.hosts} hosts × ${size.ids} ids × ${formatSetting(size.spanMs)}`]),
    counted(jobs, 'job'),
    ...(engine === 'shipped' ? [] : [`engine ${engine}`]),
    ...(only === undefined ? [] : [`faults ${only.join(', ')} alone`]),
    ...(plant === undefined ? [] : [`planted ${plant.name}: ${plant.breaks}`]),
  ];
  return parts.join(' · ');
}

/** What is known so far, in one line. */
export function progressLine({ seeds, maxMs }: SimulateOptions, { tally, tookMs }: RunResult): string {
  const of =
    maxMs === undefined ? ` of ${grouped(seeds)}` : ` in ${Math.floor(tookMs / 1_000)} of ${maxMs / 1_000} s`;
  const rate = perSecond(tally.seeds, tookMs);
  return `${grouped(tally.seeds)}${of} · ${rate} seeds/s · ${counted(tally.tenures, 'tenure')} · ${counted(tally.violations, 'violation')}`;
}

/** How to run one seed again as it was. */
export function replayCommand({ options, plant }: RunReport, seed: number): string {
  const { hosts, ids, spanMs } = options.size;
  const flags = [
    '--seeds 1',
    `--from ${seed}`,
    plant && `--plant ${plant.name}`,
    options.engine !== 'shipped' && `--engine ${options.engine}`,
    options.traces && '--traces',
    options.only && `--only ${options.only.join(',')}`,
    hosts !== DEFAULT_SIZE.hosts && `--hosts ${hosts}`,
    ids !== DEFAULT_SIZE.ids && `--ids ${ids}`,
    spanMs !== DEFAULT_SIZE.spanMs && `--span ${formatSetting(spanMs)}`,
  ];
  return ['npm run simulate --', ...flags.filter((flag) => typeof flag === 'string')].join(' ');
}

/** The report for people. Ends in a line break. */
export function textReport(report: RunReport): string {
  const { options, result, interrupted } = report;
  const { histories } = result;
  const parts = [
    ...histories.map(({ seed, lines }) => [`seed ${seed}:`, ...lines].join('\n')),
    [figures(result, options.jobs), '', ...faultTable(result)].join('\n'),
    [...(interrupted ? ['interrupted: this is the report so far'] : []), verdict(report)].join('\n'),
  ];
  return `${parts.join('\n\n')}\n`;
}

/** The report for programs: one object on one line. */
export function jsonReport(report: RunReport): string {
  const { options, plant, result, shrunk, interrupted } = report;
  const { tally, violated, histories, tookMs, cpuMs } = result;
  const violation = violated && {
    seed: violated.seed,
    ...violated.violation,
    ...(shrunk && {
      shrunk: {
        ...shrunk.violation,
        hosts: shrunk.hosts,
        faults: shrunk.faults,
        of: shrunk.of,
        runs: shrunk.runs,
        minimal: shrunk.minimal,
        history: shrunk.history,
      },
    }),
    replay: replayCommand(report, violated.seed),
  };
  const { from, size, jobs, engine, only } = options;
  return `${JSON.stringify({
    from,
    ...size,
    jobs,
    engine,
    ...(only && { only }),
    ...(plant && { plant: plant.name }),
    interrupted,
    ...tally,
    seconds: tookMs / 1_000,
    cpuSeconds: cpuMs / 1_000,
    seedsPerSecond: rate(tally.seeds, tookMs),
    seedsPerSecondAndJob: rate(tally.seeds, tookMs * jobs),
    seedsPerCpuSecond: rate(tally.seeds, cpuMs),
    ...(violation && { violation }),
    ...(histories.length > 0 && { histories }),
  })}\n`;
}

function figures({ tally, tookMs, cpuMs }: RunResult, jobs: number): string {
  const rows: (readonly [string, string])[] = [
    ['seeds', grouped(tally.seeds)],
    ['tenures', grouped(tally.tenures)],
    ['take-overs', grouped(tally.takeOvers)],
    ['requests', grouped(tally.requests)],
    ['unique ids', grouped(tally.ids)],
    ['violations', grouped(tally.violations)],
    ...Object.entries(tally.traced).map(([what, count]) => [what, grouped(count)] as const),
    ['seconds', (tookMs / 1_000).toFixed(1)],
    ['CPU seconds', (cpuMs / 1_000).toFixed(1)],
    ['seeds/s', perSecond(tally.seeds, tookMs)],
    ['seeds/s, each job', perSecond(tally.seeds, tookMs * jobs)],
    ['seeds/CPU second', perSecond(tally.seeds, cpuMs)],
  ];
  const width = Math.max(...rows.map(([, value]) => value.length));
  const named = Math.max(18, ...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(named)} ${value.padStart(width)}`).join('\n');
}

function faultTable({ tally }: RunResult): string[] {
  const rows = Object.entries(tally.faults).map(([kind, { times, seeds }]) => [
    kind,
    grouped(times),
    grouped(seeds),
  ]);
  return renderTable(['FAULT', ['TIMES', 'right'], ['SEEDS', 'right']], rows, undefined);
}

function verdict(report: RunReport): string {
  const { options, result, shrunk } = report;
  const { violated, tally } = result;
  const { from } = options;
  if (violated === undefined)
    return tally.seeds === 0
      ? 'no seed was run'
      : `no violation in ${counted(tally.seeds, 'seed')} from ${from}`;
  const { seed, violation } = violated;
  return [
    `VIOLATION in seed ${seed}, ${(violation.at / 1_000).toFixed(3)} s: ${violation.invariant}`,
    violation.text,
    ...(tally.violations > 1 ? [`(${tally.violations - 1} more in seeds that ran at the same time)`] : []),
    '',
    ...(shrunk === undefined ? [] : [...story(shrunk, options.history), '']),
    'to replay it, with --history for every line of it:',
    `  ${replayCommand(report, seed)}`,
  ].join('\n');
}

function story(
  { hosts, faults, of, runs, minimal, violation, history }: ShrunkViolation,
  whole: boolean,
): string[] {
  const { lines, left } = whole ? { lines: history, left: 0 } : digest(history, violation.text);
  const size = `${hosts.length} of ${counted(of.hosts, 'host')} and ${faults.length} of ${counted(of.faults, 'fault')}`;
  return [
    `it still happens with ${size} (${counted(runs, 'run')}; ${minimal ? 'none of them can be left out' : 'the search ended before it was over'}):`,
    ...lines,
    ...(left === 0
      ? []
      : [
          `(${counted(left, 'line')} left out: reads, listings, marks of waiting tasks, and renewals and unique ids of other node ids)`,
        ]),
  ];
}

function rate(count: number, ms: number): number {
  return ms > 0 ? (count / ms) * 1_000 : 0;
}

function perSecond(count: number, ms: number): string {
  const value = rate(count, ms);
  return value >= 10 ? grouped(Math.round(value)) : value.toFixed(1);
}

function counted(count: number, what: string): string {
  return `${grouped(count)} ${what}${count === 1 ? '' : 's'}`;
}

/** 1234567 as 1,234,567. */
function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
