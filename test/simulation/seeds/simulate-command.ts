import { CommanderError } from 'commander';
import { ExitCode } from '../../../src/app/kit/io.js';
import { explain } from '../../../src/core/base/errors.js';
import { header, jsonReport, progressLine, textReport } from './run-report.js';
import { SeedPool } from './seed-pool.js';
import { SeedThreadError } from './seed-thread.js';
import { listPlants, type PlantChoice, readOptions, type SimulateOptions } from './simulate-options.js';

/** Everything outside of the command that it may touch. */
export interface SimulateIo {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** How wide the terminal is that standard error is; undefined where it is none. */
  readonly columns: () => number | undefined;
  /** Aborts when the user has seen enough. */
  readonly interrupted: AbortSignal;
}

/** Where the code is that simulates. */
export interface SimulateCode<Plant extends PlantChoice> {
  /** The folder with the compiled simulator; its URL ends in a slash. */
  readonly folder: URL;
  readonly plants: readonly Plant[];
  /** Makes a copy of that folder, and of the engine, with a bug planted. */
  readonly plantTree: (plant: Plant) => Promise<URL>;
}

/** A promise was broken; 0 says that none was. */
const VIOLATED = 1;
/** As a shell reports a process that was ended by SIGINT. */
const INTERRUPTED = 130;
/** Simulations that shrinking may take: some seconds. */
const MOST_SHRINKING_RUNS = 400;
/** The least time between two progress lines, in milliseconds. */
const PROGRESS_MS = 100;

/**
 * `npm run simulate`: runs seeds, and reports on them. Resolves to the exit code: 0, 1 with a violation, 64
 * for a wrong call, 70 when the simulator itself failed, 130 when it was interrupted before a violation was
 * found.
 */
export async function simulateCommand<Plant extends PlantChoice>(
  args: readonly string[],
  { folder, plants, plantTree }: SimulateCode<Plant>,
  io: SimulateIo,
): Promise<number> {
  let options: SimulateOptions;
  try {
    options = readOptions(args, plants, { out: io.stdout, err: io.stderr });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    throw error;
  }
  if (options.listPlants) {
    io.stdout(listPlants(plants));
    return ExitCode.ok;
  }
  const plant = plants.find(({ name }) => name === options.plant);
  // In one JSON object there is no place for a header; here the first seed of a run that died can be found
  // all the same.
  (options.json ? io.stderr : io.stdout)(`${header(options, plant)}\n`);
  try {
    const home = plant === undefined ? folder : await plantTree(plant);
    return await simulateSeeds(options, plant, new URL('seed-worker.js', asFolder(home)), io);
  } catch (error) {
    if (!(error instanceof SeedThreadError)) throw error;
    io.stderr(`simulate: ${explain(error)}\n`);
    return ExitCode.internal;
  }
}

async function simulateSeeds(
  options: SimulateOptions,
  plant: PlantChoice | undefined,
  code: URL,
  io: SimulateIo,
): Promise<number> {
  const { seeds, maxMs, jobs, size, only, engine, traces, history, from } = options;
  const pool = await SeedPool.start({
    code,
    jobs: Math.min(jobs, seeds),
    size,
    only,
    engine,
    traces,
    recording: history,
    from,
  });
  const onInterrupt = () => pool.stop();
  if (io.interrupted.aborted) onInterrupt();
  io.interrupted.addEventListener('abort', onInterrupt, { once: true });
  const progress = new ProgressLine(io);
  try {
    const result = await pool.run(seeds, maxMs, (soFar) => progress.show(() => progressLine(options, soFar)));
    progress.clear();
    const { violated } = result;
    const toShrink = options.shrink && !io.interrupted.aborted ? violated : undefined;
    progress.show(() =>
      toShrink === undefined
        ? ''
        : `seed ${toShrink.seed} fails; looking for the smallest part of it that does`,
    );
    const shrunk = toShrink && (await pool.shrink(toShrink.seed, MOST_SHRINKING_RUNS));
    progress.clear();
    const interrupted = io.interrupted.aborted;
    io.stdout((options.json ? jsonReport : textReport)({ options, plant, result, shrunk, interrupted }));
    if (violated !== undefined) return VIOLATED;
    return interrupted ? INTERRUPTED : ExitCode.ok;
  } finally {
    io.interrupted.removeEventListener('abort', onInterrupt);
    progress.clear();
    await pool.end();
  }
}

function asFolder(url: URL): URL {
  return url.pathname.endsWith('/') ? url : new URL(`${url.href}/`);
}

/** A line on a terminal that is written again and again in the same place; nothing anywhere else. */
class ProgressLine {
  #shownAt = Number.NEGATIVE_INFINITY;
  #shown = false;

  constructor(private readonly io: SimulateIo) {}

  show(line: () => string): void {
    const columns = this.io.columns();
    const now = performance.now();
    if (columns === undefined || now - this.#shownAt < PROGRESS_MS) return;
    this.#shownAt = now;
    this.#shown = true;
    this.io.stderr(`\r\x1b[K${line().slice(0, columns - 1)}`);
  }

  clear(): void {
    if (this.#shown) this.io.stderr('\r\x1b[K');
    this.#shown = false;
    this.#shownAt = Number.NEGATIVE_INFINITY;
  }
}
