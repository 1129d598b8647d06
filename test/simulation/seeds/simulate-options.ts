import { randomInt } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Command, InvalidArgumentError, Option } from 'commander';
import { ENGINE_NAMES, faultKindsOf } from '../engines.js';
import type { SimulationSize } from '../world/conditions.js';

/** What the user of `npm run simulate` wants. */
export interface SimulateOptions {
  /** How many seeds at the most. */
  readonly seeds: number;
  /** How long to go on at the most, in milliseconds of real time; without end when undefined. */
  readonly maxMs: number | undefined;
  /** The first seed. */
  readonly from: number;
  /** The name of a bug to be planted. */
  readonly plant: string | undefined;
  /** A name out of `ENGINE_NAMES`. */
  readonly engine: string;
  /** Faults of these kinds alone; all when undefined. */
  readonly only: readonly string[] | undefined;
  /** How many threads simulate. */
  readonly jobs: number;
  readonly size: Required<SimulationSize>;
  /** Whether to look for a path of the model. */
  readonly traces: boolean;
  /** Whether to print every line of every seed's history. */
  readonly history: boolean;
  /** Whether to look for the smallest part of a violation. */
  readonly shrink: boolean;
  /** Whether to report as one JSON object. */
  readonly json: boolean;
  /** Nothing but the list of the bugs that can be planted is wanted. */
  readonly listPlants: boolean;
}

/** A bug that can be planted, as the command line knows it. */
export interface PlantChoice {
  readonly name: string;
  /** What it breaks, in one sentence. */
  readonly breaks: string;
  /** What it is planted in. @default the lease engine */
  readonly engine?: string;
}

export const DEFAULT_SIZE: Required<SimulationSize> = { hosts: 8, ids: 4, spanMs: 75_000 };

/** The engines that a model is a model of. */
const TRACED = ['shipped', 'sticky', 'shards'];
/** The faults of all engines' worlds. */
const KINDS = [...new Set(ENGINE_NAMES.flatMap(faultKindsOf))];

const DEFAULT_SEEDS = 1_000;
const MOST_SEEDS = 100_000_000;
/** Seeds are 32 bits wide; further ones would repeat the first. */
const SEEDS_END = 2 ** 32;
/** Histories are kept in memory until the end, tens of kilobytes each. */
const MOST_HISTORIES = 1_000;
/** Faults need some time before those of the longest leases are over. */
const LEAST_SPAN_MS = 65_000;
const MOST_SPAN_MS = 86_400_000;
const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

type Flags = Omit<SimulateOptions, 'maxMs' | 'size' | 'from' | 'seeds'> & {
  readonly seeds?: number;
  readonly seconds?: number;
  readonly from?: number;
  readonly hosts: number;
  readonly ids: number;
  readonly span: number;
};

/**
 * Reads a command line.
 *
 * @param args what follows `npm run simulate --`
 * @param plants the bugs that can be planted
 * @param write takes the help, and complaints: one line for each
 * @throws {CommanderError} with exit code 0 when help was wanted and given, and with another one when
 * something is wrong
 */
export function readOptions(
  args: readonly string[],
  plants: readonly PlantChoice[],
  write: { readonly out: (text: string) => void; readonly err: (text: string) => void },
): SimulateOptions {
  const program = new Command('npm run simulate --')
    .description(
      'Runs the engine for many hosts in virtual time, under faults drawn from seeds, and checks that it keeps its promises.',
    )
    .option(
      '--seeds <n>',
      `how many seeds, unless one fails (default: ${DEFAULT_SEEDS})`,
      whole(1, MOST_SEEDS),
    )
    .addOption(
      new Option('--seconds <s>', 'as many seeds as fit into that time, instead of --seeds')
        .conflicts('seeds')
        .argParser(number(0.1, 1e6)),
    )
    .option('--from <seed>', 'the first seed (default: a new one each time)', whole(0, SEEDS_END - 1))
    .option('--plant <bug>', 'plants a bug in the engine, which then has to be found', plantName(plants))
    .option('--list-plants', 'lists the bugs that can be planted', false)
    .option('--engine <name>', `what to run: ${ENGINE_NAMES.join(', ')}`, oneOf(ENGINE_NAMES), 'shipped')
    .option(
      '--only <kinds>',
      `faults of these kinds alone, with commas between them: ${KINDS.join(', ')}`,
      faultKinds,
    )
    .option('--jobs <n>', 'how many threads', whole(1, 256), availableParallelism())
    .option('--hosts <n>', 'hosts of one seed', whole(1, 10_000), DEFAULT_SIZE.hosts)
    .option('--ids <n>', 'node ids of one seed', whole(1, 10_000), DEFAULT_SIZE.ids)
    .addOption(
      new Option('--span <time>', 'virtual time of one seed, such as 75s or 5m')
        .argParser(span)
        .default(DEFAULT_SIZE.spanMs, '75s'),
    )
    .option('--traces', `checks that what happens is a path of the model (${TRACED.join(', ')})`, false)
    .option('--history', 'prints everything that happens in each seed', false)
    .option('--no-shrink', 'leaves a violation as it was found')
    .option('--json', 'reports in one JSON object', false)
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({
      writeOut: write.out,
      writeErr: write.err,
      outputError: (text) => write.err(`simulate: ${oneLine(text)}\n`),
    });
  const flags = program.parse(args, { from: 'user' }).opts<Flags>();
  const {
    seeds = flags.seconds === undefined ? DEFAULT_SEEDS : MOST_SEEDS,
    seconds,
    hosts,
    ids,
    span: spanMs,
    ...rest
  } = flags;
  const from = flags.from ?? randomInt(2 ** 31);
  // With a time to go on for, the number is no more than a bound.
  const room = seconds === undefined ? seeds : Math.min(seeds, SEEDS_END - from);
  if (from + room > SEEDS_END)
    program.error(`--from: expected at most ${SEEDS_END - seeds} for ${seeds} seeds, got ${from}`);
  if (rest.history && (seconds !== undefined || seeds > MOST_HISTORIES)) {
    program.error(`--history: expected --seeds from 1 to ${MOST_HISTORIES} with it`);
  }
  const { plant, only } = rest;
  const engine = plants.find(({ name }) => name === plant)?.engine ?? rest.engine;
  if (rest.traces && !TRACED.includes(engine))
    program.error(`--traces: expected one of ${TRACED.join(', ')} as --engine, got ${engine}`);
  return {
    ...rest,
    engine,
    plant,
    only,
    seeds: room,
    maxMs: seconds && seconds * 1_000,
    from,
    size: { hosts, ids, spanMs },
  };
}

/** Which bugs there are, one a line. */
export function listPlants(plants: readonly PlantChoice[]): string {
  const width = Math.max(0, ...plants.map(({ name }) => name.length));
  return plants.map(({ name, breaks }) => `${name.padEnd(width)}  ${breaks}\n`).join('');
}

/**
 * Commander puts the option and the value before what is thrown; its sentences end in a full stop, and may
 * have a suggestion behind them.
 */
function oneLine(text: string): string {
  return text
    .replace(/^error: /, '')
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/\.$/, '');
}

function wrong(text: string, expected: string): InvalidArgumentError {
  return new InvalidArgumentError(`Expected ${expected}, got ${JSON.stringify(text)}`);
}

function number(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw wrong(text, `a number from ${least} to ${most}`);
  };
}

function whole(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw wrong(text, `a whole number from ${least} to ${most}`);
  };
}

function span(text: string): number {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Number(digits) * UNITS[unit as keyof typeof UNITS];
  if (ms >= LEAST_SPAN_MS && ms <= MOST_SPAN_MS) return ms;
  throw wrong(text, 'a time from 65s to 24h');
}

function oneOf(names: readonly string[]): (text: string) => string {
  return (text) => {
    if (names.includes(text)) return text;
    throw wrong(text, `one of ${names.join(', ')}`);
  };
}

function plantName(plants: readonly PlantChoice[]): (text: string) => string {
  return (text) => {
    if (plants.some(({ name }) => name === text)) return text;
    throw wrong(text, `one of ${plants.map(({ name, breaks }) => `${name} (${breaks})`).join('; ')}`);
  };
}

function faultKinds(text: string): string[] {
  const kinds = text.split(',');
  const unknown = kinds.find((kind) => !KINDS.includes(kind));
  if (unknown === undefined) return kinds;
  throw wrong(unknown, `kinds of faults (${KINDS.join(', ')})`);
}
