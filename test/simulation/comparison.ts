// Runs the shipped engine and others under each kind of fault alone, and prints as a table in Markdown
// which promises broke: node .harness/test/simulation/comparison.js [--seeds N] [--from S] [--jobs N]

import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { explain } from '../../src/core/base/errors.js';
import { COMPARED_FAULTS, type ComparedFaults } from './comparison/compared-faults.js';
import type { Cell } from './comparison/comparison-cell.js';
import { comparisonTable, firstSeeds } from './comparison/comparison-table.js';
import { CONTESTANTS, type Contestant } from './comparison/contestants.js';
import type { CellOrder } from './comparison-worker.js';
import { plantTree } from './plant-tree.js';
import { PLANTS } from './plants.js';

interface ComparisonOptions {
  readonly from: number;
  readonly seeds: number;
  readonly jobs: number;
}

const USAGE = 64;
const SOFTWARE = 70;

/** The command line is wrong. */
class UsageError extends Error {}

try {
  await compareAll(readOptions(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`comparison: ${explain(error)}\n`);
  process.exitCode = error instanceof UsageError ? USAGE : SOFTWARE;
}

async function compareAll(options: ComparisonOptions): Promise<void> {
  const columns: (readonly (Cell | undefined)[])[] = [];
  for (const contestant of CONTESTANTS) columns.push(await compareOne(contestant, options));
  const rows = COMPARED_FAULTS.map((faults, row) => ({
    faults,
    cells: columns.map((column) => column[row]),
  }));
  process.stdout.write(`${comparisonTable(CONTESTANTS, rows)}\n${firstSeeds(CONTESTANTS, rows)}`);
}

/** One column, from top to bottom. */
async function compareOne(
  contestant: Contestant,
  options: ComparisonOptions,
): Promise<readonly (Cell | undefined)[]> {
  const code = new URL('comparison-worker.js', await folderOf(contestant));
  const cells: (Cell | undefined)[] = COMPARED_FAULTS.map(() => undefined);
  const todo = [...COMPARED_FAULTS.entries()].filter(
    ([, { needed }]) => needed === undefined || !contestant.lacks.includes(needed),
  );
  await Promise.all(
    Array.from({ length: Math.min(options.jobs, todo.length) }, async () => {
      const worker = new Worker(code);
      try {
        for (let next = todo.shift(); next !== undefined; next = todo.shift()) {
          const [row, faults] = next;
          cells[row] = await cellFrom(worker, orderFor(contestant, faults, options));
          if (process.stderr.isTTY) process.stderr.write(`${contestant.title}: ${faults.name}: done\n`);
        }
      } finally {
        await worker.terminate();
      }
    }),
  );
  return cells;
}

function orderFor(
  { engine, lacks }: Contestant,
  faults: ComparedFaults,
  { from, seeds }: ComparisonOptions,
): CellOrder {
  const only = faults.only.filter((kind) => !lacks.includes(kind));
  return { faults: { ...faults, only }, engine, from, seeds };
}

function cellFrom(worker: Worker, order: CellOrder): Promise<Cell> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      worker.off('message', onMessage);
      worker.off('error', onError);
      worker.off('exit', onExit);
    };
    const onMessage = (cell: Cell) => {
      settle();
      resolve(cell);
    };
    const onError = (error: unknown) => {
      settle();
      reject(new Error(`${order.engine} under ${order.faults.name}: ${String(error)}`, { cause: error }));
    };
    const onExit = (code: number) => onError(`its thread ended with exit code ${code}`);
    worker.on('message', onMessage);
    worker.on('error', onError);
    worker.on('exit', onExit);
    worker.postMessage(order);
  });
}

async function folderOf({ plant: name }: Contestant): Promise<URL> {
  if (name === undefined) return new URL('./', import.meta.url);
  const plant = PLANTS.find((one) => one.name === name);
  if (plant === undefined) throw new Error(`there is no plant ${name}`);
  return plantTree(plant);
}

function readOptions(args: readonly string[]): ComparisonOptions {
  const text = { type: 'string' } as const;
  const values = parsed(
    () => parseArgs({ args: [...args], options: { from: text, seeds: text, jobs: text } }).values,
  );
  return {
    from: whole('--from', values.from, 0, 0, 2 ** 31),
    seeds: whole('--seeds', values.seeds, 2_000, 1, 1_000_000),
    jobs: whole('--jobs', values.jobs, availableParallelism(), 1, 256),
  };
}

function parsed<Values>(parse: () => Values): Values {
  try {
    return parse();
  } catch (error) {
    throw new UsageError(explain(error));
  }
}

function whole(
  option: string,
  text: string | undefined,
  otherwise: number,
  least: number,
  most: number,
): number {
  if (text === undefined) return otherwise;
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(
    `${option}: expected a whole number from ${least} to ${most}, got ${JSON.stringify(text)}`,
  );
}
